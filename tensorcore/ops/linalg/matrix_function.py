"""Functions of matrices and products in other shapes: exponentials, chains, Vandermonde's matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import FLOATING, INTEGER, operation
from tensorcore.ops.linalg.matrices import LAPACKS, check_square, identity, is_recorded, twin
from tensorcore.ops.linalg.products import chained, cross_way, matmul, one_dtype
from tensorcore.ops.linalg.products import cross as _cross
from tensorcore.ops.linalg.solve import inv, solution
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.record import record
from tensorcore.ops.reductions.reduce import stored
from tensorcore.ops.reductions.scan import plain_powers
from tensorcore.ops.samples import linalg as samples
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["cross", "diagonal", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]

# Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): the coefficients of the
# numerator of Pade's approximant of a degree, and the 1-norm up to which it is exact to a dtype's precision.
_PADE = {
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    13: (
        64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
        10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
    ),
}  # fmt: skip
_LIMIT = {7: 3.925724783138660, 13: 5.371920351148152}
# More halvings than this leave nothing of any number of a dtype.
_MOST = 1100

_REAL = frozenset([dtypes.float32, dtypes.float64])


def _with(made: Tensor, *terms: tuple[float, Tensor]) -> Tensor:
    """A tensor that nobody else has, with so much of each of the others added in its place."""
    for factor, term in terms:
        made.add_(term, alpha=factor)  # type: ignore[attr-defined]
    return made


def _exponential(A: Tensor) -> Tensor:
    """Each matrix halved until Pade's approximant holds, and the result squared as often."""
    size = A.native.shape[-1]
    degree = 7 if A.dtype.to_real() is dtypes.float32 else 13
    if not A.device.capabilities.values or not A.numel():
        return A.contiguous().clone()  # type: ignore[no-any-return, attr-defined]
    sizes = A.abs().sum(-2).amax(-1)  # type: ignore[attr-defined]
    halvings = (sizes / _LIMIT[degree]).clamp_min(1.0).log2().ceil().nan_to_num(0.0, _MOST).clamp_max(_MOST)
    scale = (halvings * -1.0).exp2()
    A = A * scale.unsqueeze(-1).unsqueeze(-1)
    c = _PADE[degree]
    unit = identity(A, size)
    square = A @ A
    fourth = square @ square
    sixth = fourth @ square
    # From the identity on, whose dtype is A's where a region of autocast makes products of another one.
    odd = _with(square * c[3] + unit * c[1], (c[5], fourth), (c[7], sixth))
    even = _with(square * c[2] + unit * c[0], (c[4], fourth), (c[6], sixth))
    if degree == 13:
        odd.add_(sixth @ _with(sixth * c[13], (c[11], fourth), (c[9], square)))  # type: ignore[attr-defined]
        even.add_(sixth @ _with(sixth * c[12], (c[10], fourth), (c[8], square)))  # type: ignore[attr-defined]
    odd = A @ odd
    made = solution(even - odd, even + odd)[0]
    counts = A.device.all_values(halvings.native)
    for i in range(int(counts.max())):
        squared = made @ made
        made = squared if i < counts.min() else where((halvings > i).unsqueeze(-1).unsqueeze(-1), squared, made)
    return made.contiguous()  # type: ignore[no-any-return, attr-defined]


def _exponential_gradient(g: Tensor, A: Tensor) -> Tensor:
    """The derivative in the direction ``g`` at the adjoint of A, a block of a larger exponential (Mathias 1996)."""
    size = A.native.shape[-1]
    turned = A.mH
    above = cat([turned, g], -1)
    below = cat([turned.new_zeros(turned.native.shape), turned], -1)
    return matrix_exp(cat([above, below], -2))[..., :size, size:]


_exp = Op("linalg_matrix_exp", "A", "The exponential of each matrix.", register=False,
          grads=dict(A=_exponential_gradient))  # fmt: skip


@operation(samples=samples.matrix_exp)
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of each square matrix, the sum of ``A**k / k!``."""
    check_square("linalg.matrix_exp", input, narrow=True)
    if input.dtype.itemsize == 2:
        return matrix_exp(input.float()).to(input.dtype)  # type: ignore[attr-defined]
    made = _exponential(twin(input))
    if is_recorded(input):
        record(_exp, (input,), None, made)
    return made


_MULTIPLIED = LAPACKS | FLOATING | INTEGER


@operation(samples=samples.multi_dot, method=False, name="linalg_multi_dot")
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices in the order of fewest multiplications; the first and last may be vectors."""
    op = "linalg.multi_dot"
    if not isinstance(tensors, (tuple, list)):
        raise ArgumentTypeError(f"{op}: expected a tuple of Tensors, got {type(tensors).__name__}; put them in a list")
    if out is None and len(tensors) > 1 and getattr(tensors[0], "dtype", None) in _MULTIPLIED:
        dtype, inner, last = tensors[0].dtype, None, len(tensors) - 1  # what is unusual is said below
        for i, one in enumerate(tensors):
            if type(one) is not Tensor or one.dtype is not dtype:
                break
            shape = one.native.shape
            if len(shape) != 2 and (len(shape) != 1 or 0 < i < last):
                break
            if inner is not None and shape[0] != inner:
                break
            inner = shape[-1]
        else:
            return _multiplied(tensors)
    check_tensors(op, **{f"tensors[{i}]": one for i, one in enumerate(tensors)})
    count = len(tensors)
    if count < 2:
        raise ShapeError(f"{op}: expected at least 2 tensors, got {count}; use the tensor itself")
    for i, one in enumerate(tensors):
        most = (1, 2) if i in (0, count - 1) else (2,)
        if len(one.native.shape) not in most:
            raise ShapeError(
                f"{op}: tensor {i} must be {' or '.join(map(str, most))}D, got {len(one.native.shape)}D; reshape it"
            )
    one_dtype(op, *tensors)
    shapes = [tuple(one.native.shape) for one in tensors]
    for i in range(count - 1):
        if shapes[i][-1] != shapes[i + 1][0]:
            raise ShapeError(
                f"{op}: tensors {i} and {i + 1} with shapes {list(shapes[i])} and {list(shapes[i + 1])} cannot be multiplied, got "
                f"{shapes[i][-1]} columns and {shapes[i + 1][0]} rows"
            )
    return stored(op, _multiplied(tensors), out)  # type: ignore[no-any-return]


def _multiplied(tensors: Sequence[Tensor]) -> Tensor:
    """Of tensors that fit, the first and last of which may be vectors: one after the other from there, which reads each matrix once."""
    if len(tensors[0].native.shape) == 1:
        return reduce(matmul, tensors)
    if len(tensors[-1].native.shape) == 1:
        return reduce(lambda made, one: matmul(one, made), reversed(tensors))
    return chained(tensors)


@operation(samples=samples.vecdot, method=False, name="linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum along ``dim`` of the products of ``y`` with the conjugate of ``x``; shapes broadcast."""
    op = "linalg.vecdot"
    if type(x) is Tensor is type(y) and x.dtype is y.dtype and x.dtype in _REAL and type(dim) is int and out is None:
        ndim = max(len(x.native.shape), len(y.native.shape))
        if -ndim <= dim < ndim:
            return (x * y).sum(dim % ndim)  # type: ignore[no-any-return, attr-defined, operator]
    check_tensors(op, x=x, y=y)
    for one in (x, y):
        if one.dtype.kind not in ("floating", "complex"):
            raise DtypeError(
                f"{op}: Expected a floating point or complex tensor as input, got {one.dtype}; use .float()"
            )
    if x.dtype is not y.dtype:
        raise DtypeError(f"{op}: Expected x and y to have the same dtype, got {x.dtype} and {y.dtype}; convert one")
    at = rules.wrap_dim(op, dim, max(x.ndim, y.ndim))
    return stored(op, (x.conj() * y).sum(at), out)  # type: ignore[no-any-return, attr-defined]


@operation(samples=samples.linalg_cross, method=False, name="linalg_cross", way=cross_way(-1, 2))
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of the vectors along ``dim``, the last one unless named, which has size 3."""
    return _cross(input, other, dim, out=out)


@operation(samples=samples.diagonal, method=False, name="linalg_diagonal")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices in two dims, the last two unless named, as a view."""
    if type(A) is not Tensor:
        check_tensors("linalg.diagonal", A=A)
    return A.diagonal(offset, dim1, dim2)  # type: ignore[no-any-return, attr-defined]


@operation(samples=samples.linalg_vander, method=False, name="linalg_vander")
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers from 0 to ``N - 1`` of each element, (..., n) to (..., n, N); N is n where None."""
    op = "linalg.vander"
    if type(x) is not Tensor:
        check_tensors(op, x=x)
    if x.dtype.kind == "bool" or (x.dtype.kind == "floating" and x.dtype.itemsize == 2):
        raise DtypeError(f"{op}: supports floating point, complex, and integer tensors, got {x.dtype}; convert it")
    x = x if x.native.shape else x.unsqueeze(0)  # type: ignore[attr-defined]
    shape = tuple(x.native.shape)
    count = N if N is not None else shape[-1]
    if count <= 1:
        raise ShapeError(f"{op}: N must be greater than 1, got {count}; pass at least 2")
    if (made := plain_powers(x, count)) is not None:
        return made
    dtype = dtypes.int64 if x.dtype.kind == "integer" else x.dtype
    first = new_tensor(x.device.kernels["full"]((*shape, 1), 1, dtype=dtype), dtype, x.device)
    repeated = x.unsqueeze(-1).expand((*shape, count - 1))  # type: ignore[attr-defined]
    powers = repeated.cumprod(-1)
    return cat([first, powers if powers.dtype is dtype else powers.to(dtype)], -1)


@operation(samples=samples.matrix_power)
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Each matrix multiplied with itself ``n`` times by squaring; its inverse for negative ``n``."""
    check_tensors("matrix_power", input=input)
    n = rules.whole("matrix_power", "n", n)
    shape = tuple(input.native.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"matrix_power: A must be batches of square matrices, got {list(shape)}")
    if n < 0 and input.dtype.kind in ("bool", "integer"):
        raise DtypeError(
            f"matrix_power: Expected a floating point or complex tensor to invert, got {input.dtype.name}; use .float()"
        )
    if n == 0:
        unit = identity(input, shape[-1])
        # A constant, but recorded as PyTorch's is: its gradient is zero.
        made = where(unit == unit, unit, input)
    else:
        if n < 0 and input.dtype.itemsize <= 2:
            raise DtypeError(
                f"matrix_power: Low precision dtypes not supported to invert, got {input.dtype.name}; use .float()"
            )
        base = input if n > 0 else inv(input)
        made, left = None, abs(n)
        while left:
            if left & 1:
                made = base if made is None else matmul(made, base)
            left >>= 1
            base = matmul(base, base) if left else base
        made = made.clone() if made is input else made
    return made if out is None else store("matrix_power", made, out)
