"""Helpers of training programs, under PyTorch's names."""
