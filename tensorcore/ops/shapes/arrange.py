"""Elements in another order or only some of them kept: flips, rolls, triangles, diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.errors import DimensionError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op
from tensorcore.ops.inplace import is_free
from tensorcore.ops.kinds import NUMBERS, operation
from tensorcore.ops.linalg.matrices import way_of_matrices
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store, written
from tensorcore.ops.samples import index as samples
from tensorcore.ops.shapes.views_part import diagonal_options
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["diag", "diag_embed", "diagflat", "flip", "fliplr", "flipud", "roll", "rot90", "tril", "triu"]

_flip = Op("flip", "input", "The elements in reverse order along dims.", register=False,
           grads=dict(input=lambda g, dims: flip(g, dims)))  # fmt: skip
_roll = Op("roll", "input", "The elements moved along dims, around the end.", register=False,
           grads=dict(input=lambda g, shifts, dims: roll(g, -shifts) if dims is None else roll(
               g, tuple([-one for one in shifts]), dims)))  # fmt: skip
_rot90 = Op("rot90", "input", "The elements turned in a plane.", register=False,
            grads=dict(input=lambda g, k, dims: rot90(g, -k, dims)))  # fmt: skip
_diag_embed = Op(
    "diag_embed", "input", "Matrices with the input on a diagonal.", kernel="undiagonal", register=False,
    grads=dict(input=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2)),
)  # fmt: skip
_tril = Op("tril", "input", "The lower triangle.", kernel="tri", register=False,
           grads=dict(input=lambda g, diagonal: tril(g, diagonal)))  # fmt: skip
_triu = Op("triu", "input", "The upper triangle.", kernel="tri", register=False,
           grads=dict(input=lambda g, diagonal: triu(g, diagonal)))  # fmt: skip


@operation(samples=samples.flip)
def flip(input: Tensor, *along: Any, dims: Any = None) -> Tensor:
    """The elements in reverse order along ``dims``, as a copy."""
    if type(input) is not Tensor:
        check_tensors("flip", input=input)
    order = rules.as_dims("flip", along if dims is None else (dims,))
    return apply(_flip, (input,), {"dims": rules.wrap_dims("flip", order, input.ndim)})


@operation(samples=samples.unary_plain)
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""
    if type(input) is not Tensor:
        check_tensors("flipud", input=input)
    if input.ndim < 1:
        raise ShapeError("flipud: Input must be >= 1-d, got a 0-d tensor; use unsqueeze(0)")
    return flip(input, 0)


@operation(samples=samples.matrix_plain)
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""
    if type(input) is not Tensor:
        check_tensors("fliplr", input=input)
    if input.ndim < 2:
        raise ShapeError(f"fliplr: Input must be >= 2-d, got {input.ndim}-d; use flip(0)")
    return flip(input, 1)


@operation(samples=samples.roll)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> Tensor:
    """The elements moved by ``shifts`` along ``dims``, those past the end to the start; flattened without ``dims``."""
    if type(input) is not Tensor:
        check_tensors("roll", input=input)
    steps = (shifts,) if isinstance(shifts, int) else rules.as_dims("roll", (shifts,))
    along = (dims,) if isinstance(dims, int) else rules.as_dims("roll", (dims,))
    if not along and len(steps) == 1:
        return apply(_roll, (input,), {"shifts": steps[0], "dims": None})
    if len(steps) != len(along) or not steps:
        raise ShapeError(
            f"roll: shifts and dimensions must align, got shifts: {list(steps)}, dims: {list(along)}; give as many"
        )
    along = tuple([rules.wrap_dim("roll", one, input.ndim) for one in along])
    if not input.native.shape:
        return input.clone()  # type: ignore[attr-defined]
    return apply(_roll, (input,), {"shifts": steps, "dims": along})


@operation(samples=samples.rot90)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The elements turned ``k`` times by 90 degrees in the plane of two dims, from the first towards the second."""
    if type(input) is not Tensor:
        check_tensors("rot90", input=input)
    if len(dims) != 2:
        raise ShapeError(f"rot90: expected total rotation dims == 2, but got dims = {len(dims)}; name two")
    if input.ndim < 2:
        raise ShapeError(f"rot90: expected total dims >= 2, but got total dims = {input.ndim}; use unsqueeze")
    a, b = rules.wrap_dim("rot90", dims[0], input.ndim), rules.wrap_dim("rot90", dims[1], input.ndim)
    if a == b:
        raise ShapeError(
            f"rot90: expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    return apply(_rot90, (input,), {"k": rules.whole("rot90", "k", k) % 4, "dims": (a, b)})


def _triangle(op: Op, upper: bool, input: Tensor, diagonal: int, out: Tensor | None) -> Tensor:
    if type(input) is not Tensor:
        check_tensors(op.name, input=input)
    elif type(diagonal) is int and len(input.native.shape) > 1:
        options = {"diagonal": diagonal, "upper": upper}
        made = apply(op, (input,), options) if out is None else apply_into(op, (input,), options, input.dtype, out)
        if made is not None:
            return made  # type: ignore[no-any-return]
    if input.ndim < 2:
        raise ShapeError(f"{op.name}: input tensor must have at least 2 dimensions, got {input.ndim}; use unsqueeze")
    made = apply(op, (input,), {"diagonal": rules.whole(op.name, "diagonal", diagonal, vectors=True), "upper": upper})
    return made if out is None else store(op.name, made, out)


def _kept(upper: bool) -> Callable[..., bool]:
    """What keeps one side of a diagonal in place, in the calls that most are; whether it did."""

    def kept(input: Tensor, given: tuple[Any, ...], **options: Any) -> bool:
        diagonal = given[0] if len(given) == 1 else options.pop("diagonal", 0) if not given else None
        if type(diagonal) is not int or options or not is_free(input) or len(input.native.shape) < 2:
            return False
        kernel = input.device.kernels["keep_triangle"]
        if not kernel:
            return False
        kernel(input.native, diagonal=diagonal, upper=upper)
        written(input)
        return True

    return kept


@operation(
    samples=samples.tri, writes=True, overwritten=_kept(False),
    way=way_of_matrices(_tril, NUMBERS, {"diagonal": 0}, told={"upper": False}, positions=1),
)  # fmt: skip
def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of each matrix up to ``diagonal``, zeros above."""
    return _triangle(_tril, False, input, diagonal, out)


@operation(
    samples=samples.tri, writes=True, overwritten=_kept(True),
    way=way_of_matrices(_triu, NUMBERS, {"diagonal": 0}, told={"upper": True}, positions=1),
)  # fmt: skip
def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of each matrix from ``diagonal`` on, zeros below."""
    return _triangle(_triu, True, input, diagonal, out)


@operation(samples=samples.diag)
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix with a vector on a diagonal, or a copy of a matrix's diagonal."""
    if type(input) is not Tensor:
        check_tensors("diag", input=input)
    ndim = len(input.native.shape)
    if ndim == 1:
        made = diag_embed(input, diagonal)
    elif ndim == 2:
        if type(input) is Tensor and input.node is None and out is None and type(diagonal) is int:
            kernels = input.device.kernels
            try:  # nobody has to know of a view
                native = kernels["contiguous"](kernels["diagonal"](input.native, offset=diagonal, dim1=0, dim2=1))
                return new_tensor(native, input.dtype, input.device)
            except MemoryError:
                pass  # the complete call makes room
        made = input.diagonal(diagonal).clone()  # type: ignore[attr-defined]
    else:
        raise ShapeError(f"diag: Supports 1D or 2D tensors. Got {input.ndim}D; use diagonal or diag_embed")
    return made if out is None else store("diag", made, out)


@operation(samples=samples.diag_embed)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in the dims ``dim1`` and ``dim2`` with the last dim of ``input`` on their diagonal."""
    if type(input) is not Tensor:
        check_tensors("diag_embed", input=input)
    ndim = len(input.native.shape)
    if not ndim:
        raise DimensionError("diag_embed: expected at least one dim, got a 0-d tensor; use unsqueeze(0)")
    options = diagonal_options("diag_embed", (0,) * (ndim + 1), offset, dim1, dim2)
    *shape, size = input.native.shape
    size += abs(options["offset"])
    first, second = options["dim1"], options["dim2"]
    for at in (first, second) if first < second else (second, first):
        shape.insert(at, size)
    return apply(_diag_embed, (input,), {"shape": tuple(shape), **options})


@operation(samples=samples.unary_plain)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    if type(input) is not Tensor:
        check_tensors("diagflat", input=input)
    return diag_embed(input.reshape(-1), offset)  # type: ignore[attr-defined]
