"""Complex numbers: their parts as views, conjugation, and tensors made of two real ones."""

from __future__ import annotations

from math import gcd
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.creation.create import ones_like
from tensorcore.ops.define import OPS, Op
from tensorcore.ops.inplace import usual_write
from tensorcore.ops.kinds import COMPLEX, REAL, elementwise, operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.samples import elementwise as samples
from tensorcore.ops.shapes.views import viewing
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before, elementwise_way
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "angle", "complex", "conj", "conj_physical", "imag", "is_complex", "is_conj", "is_floating_point", "isreal", "polar", "real",
    "resolve_conj", "resolve_neg",
    "view_as_complex", "view_as_real",
]  # fmt: skip

# Gradients follow PyTorch's convention: a formula multiplies by the conjugate of the derivative, so that
# the gradient of a real loss points where the loss rises fastest.


def conjugate(x: Any) -> Any:
    """The conjugate of a tensor or number where it is complex, else itself: for formulas of either kind."""
    if isinstance(x, Tensor):
        return _conj(x) if x.dtype.is_complex else x
    return x.conjugate() if type(x) is complex_number else x


complex_number = complex

_conj = elementwise("conj_physical", "input", "The conjugate of each element.", takes=COMPLEX, writes=False, method=False,
                    unchanged=REAL, grads=dict(input=lambda g: conjugate(g)), samples=samples.complex_unary,
                    backward_name="ConjBackward0")  # fmt: skip


@operation(samples=samples.unary, writes=True, overwritten=usual_write(_conj.op, COMPLEX, None))  # type: ignore[attr-defined]
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The conjugate of each element; real tensors as they are."""
    if type(input) is not Tensor:
        check_tensors("conj_physical", input=input)
    made = _conj(input) if input.dtype.is_complex else input
    return made if out is None else store("conj_physical", made, out)


@operation(samples=samples.unary)
def conj(input: Tensor) -> Tensor:
    """The conjugate of each element, computed at once; real tensors as they are."""
    if type(input) is not Tensor:
        check_tensors("conj", input=input)
    return _conj(input) if input.dtype.is_complex else input


@operation(samples=samples.unary)
def is_conj(input: Tensor) -> bool:
    """Always False: conjugates are computed at once here."""
    if type(input) is not Tensor:
        check_tensors("is_conj", input=input)
    return False


@operation(samples=samples.unary)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once here."""
    if type(input) is not Tensor:
        check_tensors("resolve_conj", input=input)
    return input


@operation(samples=samples.unary)
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once here."""
    if type(input) is not Tensor:
        check_tensors("resolve_neg", input=input)
    return input


_REAL_OF = {one: one.to_real() for one in dtypes.ALL}.__getitem__
_COMPLEX_OF = {one: one.to_complex() for one in dtypes.ALL}.__getitem__


def _part(name: str, doc: str, grad: Any, dtype_of: Any) -> Op:
    op = Op(name, "input", doc, grads={"input": grad}, kind="view", register=False)
    op.view = viewing(op, dtype_of)  # type: ignore[attr-defined]
    return op


_real = _part("real", "The real parts.", lambda g: complex(g, g.new_zeros(g.shape)), _REAL_OF)
_imag = _part("imag", "The imaginary parts.", lambda g: complex(g.new_zeros(g.shape), g), _REAL_OF)
_as_real = _part("view_as_real", "Real and imaginary part along a last dim of 2.", lambda g: view_as_complex(g.contiguous()),
                 _REAL_OF)  # fmt: skip
_as_complex = _part("view_as_complex", "The pairs along the last dim as complex numbers.",
                    lambda g: view_as_real(g), _COMPLEX_OF)  # fmt: skip
_show_complex = _as_complex.view  # type: ignore[attr-defined]


@operation(samples=samples.complex_unary, method=False)
def real(input: Tensor) -> Tensor:
    """The real parts as a view; a real tensor itself."""
    if type(input) is not Tensor:
        check_tensors("real", input=input)
    return _real.view(input, {}) if input.dtype.is_complex else input  # type: ignore[attr-defined]


@operation(samples=samples.complex_unary, method=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary parts as a view. Raises for real tensors."""
    if type(input) is not Tensor:
        check_tensors("imag", input=input)
    if not input.dtype.is_complex:
        raise DtypeError(
            f"imag: imag is not implemented for tensors with non-complex dtypes, got {input.dtype.name}; use zeros_like"
        )
    return _imag.view(input, {})  # type: ignore[attr-defined]


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value if isinstance(value, Tensor) else self.new_full((), value).real)  # type: ignore[attr-defined]


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value if isinstance(value, Tensor) else self.new_full((), value).real)  # type: ignore[attr-defined]


Tensor.real = property(real, _set_real, doc=real.__doc__)  # type: ignore[attr-defined]
Tensor.imag = property(imag, _set_imag, doc=imag.__doc__)  # type: ignore[attr-defined]


@operation(samples=samples.complex_unary, method=False)
def view_as_real(input: Tensor) -> Tensor:
    """Complex of shape (...) seen as real of shape (..., 2)."""
    if type(input) is not Tensor:
        check_tensors("view_as_real", input=input)
    if not input.dtype.is_complex:
        raise DtypeError(
            f"view_as_real: view_as_real is only supported for complex tensors, got {input.dtype.name}; use unsqueeze(-1)"
        )
    return _as_real.view(input, {})  # type: ignore[attr-defined]


@before("are_pairs")
def _are_pairs(input: Tensor) -> bool:
    """Whether the two elements of each row are neighbours, and begin at an even place of the storage."""
    strides, start = input.device.layout(input.native)
    return strides[-1] == 1 and gcd(2, start, *strides[:-1]) == 2


@operation(samples=samples.pairs_along_last, method=False)
def view_as_complex(input: Tensor) -> Tensor:
    """Real of shape (..., 2) seen as complex of shape (...). The last dim needs stride 1, the others even ones."""
    if type(input) is not Tensor:
        check_tensors("view_as_complex", input=input)
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(
            f"view_as_complex: expected float32 or float64 (there is no complex dtype of float16 here), got "
            f"{input.dtype.name}; use .float()"
        )
    shape = input.native.shape
    if not shape or shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: Tensor must have a last dimension of size 2, got {list(shape)}; use stack(..., -1)"
        )
    if not _are_pairs(input):
        strides = input.device.layout(input.native)[0]
        raise ShapeError(
            f"view_as_complex: Tensor must have a last dimension with stride 1, and even strides and offset elsewhere, got "
            f"strides {strides}; use .contiguous()"
        )
    return _show_complex(input, {})  # type: ignore[no-any-return]


_complex = Op("complex", "real imag", "Complex numbers of these parts.", register=False,
              grads=dict(real=lambda g: real(g), imag=lambda g: imag(g)))  # fmt: skip


_usual = elementwise_way(_complex, again, frozenset([dtypes.float32]), dtypes.complex64, places=True)


@operation(samples=samples.two_real, method=False, way=_usual)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers with these real and imaginary parts, both float32 or both float64."""
    _check_parts("complex", real, imag)
    return _joined(real, imag, out)


def _joined(real: Tensor, imag: Tensor, out: Tensor | None) -> Tensor:
    rules.broadcast("complex", tuple(real.native.shape), tuple(imag.native.shape))
    dtype = real.dtype.to_complex()
    if out is not None and (done := apply_into(_complex, (real, imag), {}, dtype, out)) is not None:
        return done
    made = apply(_complex, (real, imag), dtype=dtype)
    return made if out is None else store("complex", made, out)


_PARTS = frozenset([dtypes.float32, dtypes.float64])


def _check_parts(op: str, real: Tensor, imag: Tensor) -> None:
    if type(real) is Tensor is type(imag) and real.dtype is imag.dtype and real.dtype in _PARTS:
        return
    check_tensors(op, real=real, imag=imag)
    for one in (real, imag):
        if one.dtype not in _PARTS:
            raise DtypeError(
                f"{op}: expected both inputs as float32 or as float64 (there is no complex dtype of float16 here), got "
                f"{real.dtype.name} and {imag.dtype.name}; convert them with .float()"
            )
    if real.dtype is not imag.dtype:
        raise DtypeError(
            f"{op}: Expected object of scalar type {real.dtype.name} but got scalar type {imag.dtype.name} for second "
            f"argument; convert one with .to(...)"
        )


@operation(samples=samples.two_real, method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers with these absolute values and angles (in radians)."""
    _check_parts("polar", abs, angle)
    if type(abs) is Tensor is type(angle) and abs.node is None is angle.node and abs.device is angle.device:
        if abs.native.shape != angle.native.shape:
            rules.broadcast("polar", tuple(abs.native.shape), tuple(angle.native.shape))
        kernel, dtype = abs.device.kernels["polar"], abs.dtype.to_complex()
        if kernel and out is not None and (done := apply_into(OPS["polar"], (abs, angle), {}, dtype, out)) is not None:
            return done  # type: ignore[no-any-return]
        if kernel and out is None:
            return new_tensor(kernel(abs.native, angle.native), dtype, abs.device)
    return _joined(abs * angle.cos(), abs * angle.sin(), out)  # type: ignore[attr-defined]


def _angle_grad(g: Tensor, input: Tensor) -> Tensor:
    if not input.dtype.is_complex:
        return g.new_zeros(g.shape)  # type: ignore[attr-defined]
    # d angle / d(x + iy) = (-y + ix) / |z|**2, and 0 at 0.
    square = input.real * input.real + input.imag * input.imag  # type: ignore[attr-defined]
    nowhere = square == 0
    safe = square.masked_fill(nowhere, 1.0)
    return (g * complex(-input.imag / safe, input.real / safe)).masked_fill(nowhere, 0.0)  # type: ignore[attr-defined]


angle = elementwise("angle", "input", "The angle of each element in radians: of a real one 0 or pi.", gives="float-real",
                    grads=dict(input=_angle_grad), writes=False, samples=samples.nonzero)  # fmt: skip


@operation(samples=samples.unary)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0."""
    if type(input) is not Tensor:
        check_tensors("isreal", input=input)
    return imag(input) == 0 if input.dtype.is_complex else ones_like(input, dtype=dtypes.bool_)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input.is_complex()
