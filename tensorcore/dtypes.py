"""The element types of tensors, and the one table that says what two of them become together."""

from __future__ import annotations

from math import log10
from typing import Any, ClassVar, Self

import ml_dtypes
import numpy as np

from tensorcore.errors import ArgumentTypeError, DtypeError
from tensorcore.shortcuts import before

__all__ = [
    "bfloat16", "bool_", "can_cast", "complex64", "complex128", "dtype", "finfo", "float16", "float32",
    "float64", "get_default_dtype", "iinfo", "int8", "int16", "int32", "int64", "promote_types",
    "set_default_dtype", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


class dtype:
    """The type of a tensor's elements.

    ``numpy`` is the NumPy dtype of the same layout, ``kind`` one of ``bool``, ``integer``,
    ``floating`` and ``complex``, ``itemsize`` the bytes of one element.
    """

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name", "numpy")

    def __init__(self, name: str, kind: str, numpy: object) -> None:
        self.name = name
        self.kind = kind
        self.numpy = np.dtype(numpy)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = kind == "floating"
        self.is_complex = kind == "complex"
        self.is_signed = self.numpy.kind not in "bu"

    def to_real(self) -> dtype:
        """The dtype of this one's real part."""
        return {complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose real part has this dtype."""
        return {float32: complex64, float64: complex128}.get(self, complex64 if self.kind != "complex" else self)

    def __repr__(self) -> str:
        # PyTorch's spelling: printed tensors and programs written for it compare this text.
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple:
        return _named, (self.name,)


bool_ = dtype("bool", "bool", np.bool_)
uint8 = dtype("uint8", "integer", np.uint8)
uint16 = dtype("uint16", "integer", np.uint16)
uint32 = dtype("uint32", "integer", np.uint32)
uint64 = dtype("uint64", "integer", np.uint64)
int8 = dtype("int8", "integer", np.int8)
int16 = dtype("int16", "integer", np.int16)
int32 = dtype("int32", "integer", np.int32)
int64 = dtype("int64", "integer", np.int64)
float16 = dtype("float16", "floating", np.float16)
bfloat16 = dtype("bfloat16", "floating", ml_dtypes.bfloat16)
float32 = dtype("float32", "floating", np.float32)
float64 = dtype("float64", "floating", np.float64)
complex64 = dtype("complex64", "complex", np.complex64)
complex128 = dtype("complex128", "complex", np.complex128)

ALL = (
    bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128,
    uint16, uint32, uint64,
)  # fmt: skip

# The promotion lattice: what a dtype can become without losing its kind. Two dtypes
# become their least common descendant, so this drawing is the whole table.
#
#   bool ─┬─ uint8 ─┐
#         └─ int8 ──┴─ int16 ─ int32 ─ int64 ─┬─ float16 ──┬─ float32 ─┬─ float64 ───┬─ complex128
#                                             └─ bfloat16 ─┘           └─ complex64 ─┘
#
# The wider unsigned ones hang below it as in the array API standard: uint8 ─ uint16 ─ uint32 ─ uint64, each of them also
# fits the signed dtype of the next size, and uint64 and a signed one have nothing in common. (PyTorch refuses them all.)
_WIDER: dict[dtype, tuple[dtype, ...]] = {
    bool_: (uint8, int8),
    uint8: (int16, uint16),
    uint16: (int32, uint32),
    uint32: (int64, uint64),
    uint64: (float16, bfloat16),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: (float16, bfloat16),
    float16: (float32,),
    bfloat16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    complex64: (complex128,),
    complex128: (),
}


def _descendants(start: dtype) -> set[dtype]:
    found = {start}
    for wider in _WIDER[start]:
        found |= _descendants(wider)
    return found


class _Table(dict[tuple[dtype, dtype], dtype]):
    """A dict that says which two dtypes have nothing in common."""

    def __missing__(self, pair: tuple[dtype, dtype]) -> dtype:
        if all(isinstance(one, dtype) for one in pair):
            raise DtypeError(
                f"promote_types: Promotion for uint64 and signed integers is not supported, got {pair[0]} and {pair[1]}; "
                "convert one with .to(...)"
            )
        raise KeyError(pair)


def _table() -> _Table:
    below = {one: _descendants(one) for one in ALL}
    # The least common descendant is the one with the most descendants of its own.
    common = {(a, b): max(below[a] & below[b], key=lambda one: len(below[one])) for a in ALL for b in ALL}
    return _Table(
        {pair: one for pair, one in common.items() if one.kind == "integer" or any(one.kind == of.kind for of in pair)}
    )


PROMOTION = _table()
_BY_NAME = {one.name: one for one in ALL}
BY_NUMPY = {one.numpy: one for one in ALL}
_KINDS = ("bool", "integer", "floating", "complex")
_default = float32


def _named(name: str) -> dtype:
    return _BY_NAME[name]


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can become."""
    try:
        return PROMOTION[type1, type2]
    except KeyError:
        wrong = type2 if isinstance(type1, dtype) else type1
        raise ArgumentTypeError(f"promote_types: expected two dtypes, got {wrong!r}; pass e.g. torch.float32") from None


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a value of dtype ``from_`` may be written into one of dtype ``to``: kinds may rise, never fall."""
    try:
        return _KINDS.index(from_.kind) <= _KINDS.index(to.kind)
    except AttributeError:
        wrong = to if isinstance(from_, dtype) else from_
        raise ArgumentTypeError(f"can_cast: expected two dtypes, got {wrong!r}; pass e.g. torch.float32") from None


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats; ``float32`` unless set otherwise."""
    return _default


# What was worked out under the default dtype of then, and is not known under another.
remembered: list[dict[Any, Any]] = []


def set_default_dtype(d: dtype, /) -> None:
    """Make ``d``, a floating dtype, the dtype of tensors made from Python floats."""
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise ArgumentTypeError(f"set_default_dtype: expected a floating dtype, got {d!r}; pass e.g. torch.float64")
    _default = d
    for known in remembered:
        known.clear()


def default_for(kind: str) -> dtype:
    """The dtype that a Python number of this kind becomes."""
    if kind == "floating":
        return _default
    return {"bool": bool_, "integer": int64}.get(kind) or _default.to_complex()


_PLAIN_NUMBERS = {bool: "bool", int: "integer", float: "floating", complex: "complex"}


def kind_of(number: object) -> str | None:
    """The dtype kind of a Python or NumPy number, None for anything else."""
    if (kind := _PLAIN_NUMBERS.get(type(number))) is not None:
        return kind
    if isinstance(number, (bool, np.bool_)):
        return "bool"
    if isinstance(number, (int, np.integer)):
        return "integer"
    if isinstance(number, (float, np.floating)):
        return "floating"
    if isinstance(number, (complex, np.complexfloating)):
        return "complex"
    return None


def from_numpy_dtype(numpy: object) -> dtype:
    """The dtype of a NumPy dtype's elements."""
    try:
        return BY_NUMPY[numpy if isinstance(numpy, np.dtype) else np.dtype(numpy)]
    except (KeyError, TypeError):
        names = ", ".join(one.name for one in ALL)
        raise ArgumentTypeError(
            f"dtype: expected a NumPy dtype among {names}, got {numpy}; convert the array with .astype(...) first"
        ) from None


def as_dtype(value: object, op: str) -> dtype:
    """``value`` as a dtype: one of ours, or a Python type (``float``, ``int``, ``bool``, ``complex``)."""
    if isinstance(value, dtype):
        return value
    if value in (float, int, bool, complex):
        return {bool: bool_, int: int64, float: float64, complex: complex128}[value]  # type: ignore[index]
    raise ArgumentTypeError(f"{op}: expected dtype to be a torch.dtype, got {value!r}; pass e.g. torch.float32")


class _Limits:
    """What is found once for each dtype, and does not change."""

    dtype: str
    _kept: ClassVar[dict[type, dict[object, Any]]] = {}

    @before("limits", _kept)
    def __new__(cls, type: dtype | None = None) -> Self:
        kept = cls._kept.setdefault(cls, {})
        try:
            return kept[type or _default]  # type: ignore[no-any-return]
        except (KeyError, TypeError):
            made = super().__new__(cls)
            vars(made).update(made._limits(type))
            return kept.setdefault(type or _default, made)  # type: ignore[no-any-return]

    def _limits(self, type: dtype | None) -> dict[str, object]:
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        kind = self.__class__.__name__
        raise AttributeError(f"attribute '{name}' of '{kind}' objects is not writable")

    def __reduce__(self) -> tuple[object, ...]:
        return self.__class__, (_named(self.dtype),)


class finfo(_Limits):
    """Limits of a floating dtype: ``eps``, ``max``, ``min``, ``tiny``, ``smallest_normal``, ``resolution``, ``bits``."""

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def _limits(self, type: dtype | None) -> dict[str, object]:
        type = type or _default
        if getattr(type, "kind", None) not in ("floating", "complex"):
            raise ArgumentTypeError(f"finfo: expected a floating dtype, got {type!r}; iinfo has those of integers")
        type = type.to_real()
        limits = ml_dtypes.finfo(type.numpy)
        normal = float(limits.smallest_normal)
        return {
            "dtype": type.name, "bits": int(limits.bits), "eps": float(limits.eps), "max": float(limits.max),
            "min": float(limits.min), "tiny": normal, "smallest_normal": normal,
            "resolution": 10.0 ** -int(limits.nmant * log10(2)),  # as many digits as any number of so many keeps
        }  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in fields)}, dtype={self.dtype})"


class iinfo(_Limits):
    """Limits of an integer dtype: ``min``, ``max``, ``bits``."""

    bits: int
    max: int
    min: int

    def _limits(self, type: dtype | None) -> dict[str, object]:
        if not isinstance(type, dtype) or type.kind != "integer":
            raise ArgumentTypeError(f"iinfo: expected an integer dtype, got {type!r}; finfo has those of floats")
        limits = np.iinfo(type.numpy)
        return {"dtype": type.name, "bits": int(limits.bits), "min": int(limits.min), "max": int(limits.max)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
