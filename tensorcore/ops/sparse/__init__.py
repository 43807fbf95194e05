"""Sparse tensors: how they are made, their classes and their arithmetic."""
