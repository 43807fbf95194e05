"""A strict stand-in for CuPy on machines without a GPU: put this folder on the path and ``import cupy`` finds it."""
