"""Tensors from nothing, from data, and from random numbers."""
