"""Modules that learn the sizes of their parameters from the first batch they see."""

from __future__ import annotations

from typing import Any

from tensorcore.nn.uninitialized import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Gives a module parameters without shapes, which ``initialize_parameters`` shapes at the first call.

    A class that derives from this and from a module makes its parameters as ``UninitializedParameter`` and
    overrides ``initialize_parameters(*args, **kwargs)``, which gets the arguments of the first ``forward``.

    Attributes:
        cls_to_become: the class that the module changes to once its shapes are known.
    """

    cls_to_become: Any = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        hook = module.register_forward_pre_hook(LazyModuleMixin._infer_parameters, with_kwargs=True)
        self._initialize_hook: int = hook.id  # not the handle: copies of the module have hooks of their own

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all parameters their shapes, knowing the arguments of the first call; subclasses override it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer of this module still has no shape."""
        return any(is_lazy(one) for one in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self: Any, args: Any, kwargs: Any = None) -> None:
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._forward_pre_hooks.pop(self._initialize_hook, None)
        self._forward_pre_hooks_with_kwargs.pop(self._initialize_hook, None)
        del self._initialize_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def _lazily(self, sizes: dict[str, bool], device: Any, dtype: Any) -> None:
        """Give each name a parameter without a shape, or None."""
        for name, wanted in sizes.items():
            made = UninitializedParameter(device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)  # type: ignore[attr-defined]

    def _lazily_buffered(self, names: tuple[str, ...], device: Any, dtype: Any) -> None:
        for name in names:
            made = UninitializedBuffer(device=device, dtype=dtype)
            self.register_buffer(name, made)  # type: ignore[attr-defined]
