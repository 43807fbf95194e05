"""Parameters and buffers whose shape is not known yet."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.ops.creation.create import empty
from tensorcore.ops.placement import as_device, destination
from tensorcore.parameter import Parameter
from tensorcore.tensor import Tensor

__all__ = ["UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"]


class UninitializedTensorMixin:
    """What both kinds share: a dtype and a device, and no values until ``materialize`` names a shape."""

    __slots__ = ()

    dtype: Any
    device: Any
    _mark = ""

    @property
    def native(self) -> Any:
        raise ArgumentError(
            f"Attempted to use an uninitialized {self._mark}, got one on {self.device}; call the lazy module with a "
            f"batch once, so that it learns its shapes, or materialize(shape)"
        )

    @property
    def shape(self) -> Any:
        raise UsageError(
            f"Can't access the shape of an uninitialized {self._mark}, got one on {self.device}; call the lazy module "
            f"with a batch once, so that it learns its shapes, or materialize(shape)"
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary tensor of this shape, whose values are undefined; the object stays the same."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        made = empty(*sizes, device=self.device if device is None else device, dtype=dtype or self.dtype)
        wants = self.__dict__.pop("_requires_grad", False)
        found: Any = self
        found.__class__ = Tensor
        found.native, found.dtype, found.device = made.native, made.dtype, made.device
        found.requires_grad_(wants)

    @property
    def requires_grad(self) -> bool:
        return self.__dict__.get("_requires_grad", False)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.__dict__["_requires_grad"] = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self.requires_grad = requires_grad
        return self

    @property
    def data(self) -> Any:
        return self

    @data.setter
    def data(self, value: Any) -> None:
        if is_lazy(value):
            self.dtype, self.device = value.dtype, value.device
        else:
            raise ArgumentError(f"data: expected a shape first, got {value!r}; call materialize(shape) before")

    def detach(self) -> Any:
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The same without values on another device or of another dtype."""
        device, dtype = destination(args, kwargs)
        return self._like(self.device if device is None else as_device(device), dtype or self.dtype)

    def _like(self, device: Any, dtype: Any) -> Any:
        made = type(self)(requires_grad=self.requires_grad, device=device, dtype=dtype)  # type: ignore[call-arg]
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._like(self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (type(self), dict(self.__dict__), self.device, self.dtype)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Tensor, metaclass=type(Parameter)):  # type: ignore[misc]
    """A parameter that gets its shape later, by ``materialize`` or from the first batch of a lazy module."""

    __slots__ = ()
    _mark = "parameter"

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        self = _without_values(cls, device, dtype)
        self.__dict__.update(_is_param=True, _requires_grad=requires_grad)
        return self


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer that gets its shape later, by ``materialize`` or from the first batch of a lazy module."""

    __slots__ = ()
    _mark = "buffer"

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        self = _without_values(cls, device, dtype)
        self.__dict__.update(_is_buffer=True, persistent=persistent, _requires_grad=requires_grad)
        return self


def is_lazy(param: Any) -> bool:
    """Whether this is a parameter or buffer without a shape."""
    return isinstance(param, UninitializedTensorMixin)


def _without_values(cls: Any, device: Any, dtype: Any) -> Any:
    self = object.__new__(cls)
    self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype, cls.__name__)
    self.device = as_device(device)
    self.node = self.version = self.trail = None
    return self


def _rebuild(cls: Any, notes: dict[str, Any], device: Any, dtype: Any) -> Any:
    made = cls(device=device, dtype=dtype)
    made.__dict__.update(notes)
    return made
