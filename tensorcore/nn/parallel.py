"""``DataParallel``: a module and the devices that PyTorch would spread its batches over."""

from __future__ import annotations

from typing import Any

from tensorcore.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls ``module`` with all of the batch, on the device where its parameters are.

    The outcome is that of PyTorch, which gives each of several devices a part of the batch, wherever the examples do not
    meet inside the module. State dicts have PyTorch's names, which begin with ``module.``.

    Args:
        module: what to call.
        device_ids, output_device, dim: accepted; one device does the work.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                  module_kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """``module(*inputs, **module_kwargs)`` on one device."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
