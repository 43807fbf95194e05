"""The part of the driver's interface that the plugin calls by name."""

from .._kernels import launch as launchKernel

__all__ = ["launchKernel"]
