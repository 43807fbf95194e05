"""What the namespace says of itself: dtypes, their limits and kinds, devices, capabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorcore import dtypes
from tensorcore.array_api.promotion import array, result_type
from tensorcore.backend import registry
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.placement import as_device, get_default_device
from tensorcore.tensor import Tensor

__all__ = ["__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
# Not the standard's, and floating all the same.
_MORE = {"real floating": ("float16", "bfloat16"), "numeric": ("float16", "bfloat16")}


def astype(x: Tensor, dtype: dtypes.dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The elements in another dtype; ``x`` itself where nothing changes and ``copy`` is False."""
    target = array("astype", x).device if device is None else as_device(device)
    return x.to(target, dtype, copy=copy)  # type: ignore[attr-defined, no-any-return]


def can_cast(from_: Any, to: dtypes.dtype, /) -> bool:
    """Whether promotion leads from a dtype, or that of an array, to another one."""
    mine = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return dtypes.promote_types(mine, to) is to
    except dtypes.DtypeError:
        return False


@dataclass(frozen=True)
class FloatLimits:
    """Limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtypes.dtype


@dataclass(frozen=True)
class IntegerLimits:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: dtypes.dtype


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a floating dtype, of the parts of a complex one, or of an array's dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    found = dtypes.finfo(dtype)
    return FloatLimits(found.bits, found.eps, found.max, found.min, found.smallest_normal, dtype.to_real())


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of an integer dtype, or of an array's dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    found = dtypes.iinfo(dtype)
    return IntegerLimits(found.bits, found.max, found.min, dtype)


def isdtype(dtype: dtypes.dtype, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        kind: a dtype, a tuple of kinds, or one of ``bool``, ``signed integer``, ``unsigned integer``, ``integral``,
            ``real floating``, ``complex floating`` and ``numeric``.
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, one) for one in kind])
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ArgumentError(f"isdtype: expected a kind among {', '.join(_KINDS)}, got {kind!r}; pass one of these")
        return dtype.name in _KINDS[kind] or dtype.name in _MORE.get(kind, ())
    if not isinstance(kind, dtypes.dtype):
        raise ArgumentTypeError(
            f"isdtype: expected a dtype, a kind or a tuple of them, got {kind!r}; pass one of these"
        )
    return dtype is kind


class _Info:
    """What ``__array_namespace_info__()`` answers with."""

    def capabilities(self) -> dict[str, Any]:
        """Which of the standard's optional features there are."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where arrays are made unless told otherwise."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtypes.dtype]:
        """The dtypes of arrays made from Python numbers."""
        real = dtypes.get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": dtypes.int64,
                "indexing": dtypes.int64}  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, dtypes.dtype]:
        """The standard's dtypes of a kind, by name."""
        known = {one.name: one for one in dtypes.ALL}
        names = ("bool", *_KINDS["numeric"])
        return {name: known[name] for name in names if kind is None or isdtype(known[name], kind)}

    def devices(self) -> list[Any]:
        """The devices that hold values and are there."""
        found = [registry.device(name) for name in registry.backends() if registry.why_not(name) is None]
        return [one for one in found if one.capabilities.values]


def __array_namespace_info__() -> _Info:
    """An object whose methods tell of dtypes, devices and capabilities."""
    return _Info()
