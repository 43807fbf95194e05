"""Arrays made from nothing, from numbers, and from other arrays."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes, interop
from tensorcore.array_api.promotion import array
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation import create, grids
from tensorcore.ops.shapes.arrange import tril as _tril
from tensorcore.ops.shapes.arrange import triu as _triu
from tensorcore.tensor import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones",
    "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Dtype = dtypes.dtype | None
Shape = int | tuple[int, ...]


def asarray(obj: Any, /, *, dtype: Dtype = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array of an array's, a buffer's or nested sequences' values; it shares memory where ``copy`` does not forbid it."""
    return interop.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of an object that has ``__dlpack__``."""
    return interop.from_dlpack(x, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Numbers from ``start`` (0 where ``stop`` is left out) in steps, up to and without ``stop``."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # nothing, where PyTorch refuses the sign of the step
        dtype = (
            dtypes.get_default_dtype()
            if dtype is None and any(type(one) is float for one in (start, stop, step))
            else dtype
        )
        stop, step = start, 1
    return create.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Dtype = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last one or, without ``endpoint``, the next."""
    if endpoint:
        return _line(start, stop, num, dtype, device)
    return _line(start, stop, num + 1, dtype, device)[:num]


def _line(start: Any, stop: Any, num: int, dtype: Dtype, device: Any) -> Tensor:
    if dtype is None and any(isinstance(one, complex) for one in (start, stop)):
        dtype = dtypes.get_default_dtype().to_complex()
    return grids.linspace(start, stop, num, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Ones on a diagonal, the main one or the ``k``-th above it, and zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    made: Any = create.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made  # type: ignore[no-any-return]


def _filler(name: str, doc: str) -> Any:
    function, like = getattr(create, name), getattr(create, f"{name}_like")

    def fill(shape: Shape, *, dtype: Dtype = None, device: Any = None) -> Tensor:
        return function(shape, dtype=dtype, device=device)  # type: ignore[no-any-return]

    def fill_like(x: Tensor, /, *, dtype: Dtype = None, device: Any = None) -> Tensor:
        return like(array(f"{name}_like", x), dtype=dtype, device=device)  # type: ignore[no-any-return]

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"{doc} in a shape."
    fill_like.__name__ = fill_like.__qualname__ = f"{name}_like"
    fill_like.__doc__ = f"{doc} in the shape of an array."
    return fill, fill_like


empty, empty_like = _filler("empty", "Undefined values")
ones, ones_like = _filler("ones", "Ones")
zeros, zeros_like = _filler("zeros", "Zeros")


def full(shape: Shape, fill_value: Any, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """One number in a shape."""
    return create.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Dtype = None, device: Any = None) -> Tensor:
    """One number in the shape of an array."""
    return create.full_like(array("full_like", x), fill_value, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, of each array one.

    Args:
        indexing: ``xy``, where the first two dims are those of the second and the first array, or ``ij``.
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: expected indexing to be 'xy' or 'ij', got {indexing!r}; pass one of them")
    return list(grids.meshgrid(*arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and below the ``k``-th diagonal of each matrix, zeros above."""
    return _tril(array("tril", x), k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and above the ``k``-th diagonal of each matrix, zeros below."""
    return _triu(array("triu", x), k)
