"""Eigenvalues and eigenvectors, of Hermitian matrices and of all square ones."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, GradientError, LinAlgError, UsageError
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.linalg.matrices import check_square, failure, identity, is_recorded, not_converged
from tensorcore.ops.linalg.solve import solution
from tensorcore.ops.operands import anywhere
from tensorcore.ops.reductions.reduce import return_type, stored
from tensorcore.ops.samples import linalg as samples
from tensorcore.tensor import Tensor

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]

_Eigh, _Eig = [return_type(name, "eigenvalues eigenvectors") for name in ("linalg_eigh", "linalg_eig")]


def differences(values: Tensor) -> Tensor:
    """``values[j] - values[i]`` at (i, j), and 1 on the diagonal, where nothing is divided by it."""
    made = values.unsqueeze(-2) - values.unsqueeze(-1)  # type: ignore[attr-defined]
    return made + identity(values, values.native.shape[-1])  # type: ignore[no-any-return]


def on_diagonal(x: Tensor) -> Tensor:
    """Vectors as diagonal matrices."""
    return x.diag_embed()  # type: ignore[no-any-return, attr-defined]


def off_diagonal(x: Tensor) -> Tensor:
    """The matrices with zeros on the diagonal."""
    return x * (1.0 - identity(x.real if x.dtype.is_complex else x, x.native.shape[-1]))  # type: ignore[no-any-return, attr-defined]


def check_phase(op: str, diagonal: Tensor) -> None:
    """Raise where a gradient depends on the phase of complex vectors, which nobody defines.

    Args:
        diagonal: what the vectors' gradients have along the turn of each vector; it must be 0.
    """
    turn = (diagonal.imag if diagonal.dtype.is_complex else diagonal).detach().abs()  # type: ignore[attr-defined]
    if anywhere(turn > 1e-2):
        raise GradientError(
            f"{op}: the vectors are specified up to multiplication by e^(i phi), got a loss that depends on phi and so is "
            "ill-defined; use what does not change with it, such as the vectors' sizes or projections"
        )


# Giles (2008), 3.1; complex ones: Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the computation of
# complex-valued gradients with application to statistically optimum beamforming" (2017).


def _hermitian(g: list[Tensor | None], out: tuple[Tensor, ...]) -> Tensor | None:
    values, _, v = out
    gl, gv = g[0], g[2]
    if gv is None:
        return None if gl is None else (v * gl.unsqueeze(-2)) @ v.mH  # type: ignore[attr-defined]
    turned = v.mH @ gv
    if v.dtype.is_complex:
        check_phase("linalg.eigh", turned.diagonal(0, -2, -1))
    inner = off_diagonal(turned) / differences(values)
    inner = (inner + inner.mH) / 2  # type: ignore[attr-defined]
    return v @ (inner if gl is None else inner + on_diagonal(gl)) @ v.mH


def _general(g: list[Tensor | None], out: tuple[Tensor, ...]) -> Tensor | None:
    values, _, v = out
    gl, gv = g[0], g[2]
    if gv is None:
        if gl is None:
            return None
        inner = on_diagonal(gl)
        return solution(v.mH, inner @ v.mH)[0]
    turned = v.mH @ gv
    diagonal = turned.diagonal(0, -2, -1)
    check_phase("linalg.eig", diagonal)
    # The vectors have length 1: whatever would make them longer goes.
    along = (v.mH @ v) * diagonal.real.unsqueeze(-2)
    inner = off_diagonal(turned - along) / differences(values).conj()  # type: ignore[attr-defined]
    return solution(v.mH, (inner if gl is None else inner + on_diagonal(gl)) @ v.mH)[0]


_eigh = Op("eigh", "A", "Eigenvalues, info, and vectors of Hermitian matrices.", register=False,
           backward_name="LinalgEighBackward0", grads=dict(A=_hermitian))  # fmt: skip
_eig = Op("eig", "A", "Eigenvalues, info, and vectors of square matrices.", register=False,
          backward_name="LinalgEigBackward0", grads=dict(A=_general))  # fmt: skip


def _symmetric(A: Tensor, UPLO: str, vectors: bool) -> tuple[Tensor, ...]:
    check_square("linalg.eigh", A)
    if not isinstance(UPLO, str):
        raise ArgumentTypeError(f"linalg.eigh: expected UPLO to be a str, got {UPLO!r}; pass 'L' or 'U'")
    if UPLO not in ("L", "U") and UPLO.upper() not in ("L", "U"):
        raise UsageError(f"linalg.eigh: Expected UPLO argument to be 'L' or 'U', got {UPLO!r}; name a triangle")
    options = {"upper": UPLO.upper() == "U", "vectors": vectors or (A.node is not None and is_recorded(A))}
    made = apply(_eigh, (A,), options, dtype=(A.dtype.to_real(), dtypes.int32, A.dtype))
    not_converged("linalg.eigh", made[1])
    return made  # type: ignore[no-any-return]


@operation(samples=samples.hermitian, method=False, name="linalg_eigh")
def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues (real, from the smallest on) and orthonormal eigenvectors (in columns) of Hermitian matrices.

    Shapes: (..., n, n) gives (..., n) and (..., n, n). Of A the triangle ``UPLO`` (L or U) is read; the gradient is that
    of the whole. Vectors are given up to a sign (a phase), and the gradient is infinite where two values are equal.
    """
    values, _, vectors = _symmetric(A, UPLO, True)
    return _Eigh(values, vectors) if out is None else stored("linalg.eigh", _Eigh(values, vectors), out)


@operation(samples=samples.hermitian, method=False, name="linalg_eigvalsh")
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, from the smallest on; see ``eigh``."""
    return stored("linalg.eigvalsh", _symmetric(A, UPLO, False)[0], out)  # type: ignore[no-any-return]


def _found(op: str, A: Tensor, vectors: bool) -> tuple[Tensor, ...]:
    check_square(op, A)
    dtype = A.dtype.to_complex()
    made = apply(_eig, (A,), {"vectors": vectors or is_recorded(A)}, dtype=(dtype, dtypes.int32, dtype))
    failed = failure(made[1])
    if failed is not None and failed[1] < 0:
        raise LinAlgError(f"{op}: {failed[0]}input tensor should not contain infs or NaNs, got some; look for NaN")
    not_converged(op, made[1])
    return made  # type: ignore[no-any-return]


@operation(samples=samples.square, method=False, name="linalg_eig")
def eig(A: Tensor, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors (in columns, of length 1) of square matrices, both complex.

    Shapes: (..., n, n) gives (..., n) and (..., n, n). Values come in LAPACK's order; vectors are given up to a phase.
    """
    values, _, vectors = _found("linalg.eig", A, True)
    return stored("linalg.eig", _Eig(values, vectors), out)


@operation(samples=samples.square, method=False, name="linalg_eigvals")
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of square matrices as complex numbers; see ``eig``."""
    return stored("linalg.eigvals", _found("linalg.eigvals", A, False)[0], out)  # type: ignore[no-any-return]
