"""Where each element of a spectrum stands: frequencies, and spectra turned so that 0 is in their middle."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError
from tensorcore.formats import only_strided
from tensorcore.ops import rules
from tensorcore.ops.creation.create import arange
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.samples import fourier as samples
from tensorcore.ops.shapes.arrange import roll
from tensorcore.ops.shapes.join import cat
from tensorcore.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _frequencies(
    op: str, numbers: Any, n: int, d: float, out: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    found = out.dtype if out is not None and dtype is None else dtype or dtypes.get_default_dtype()
    found = dtypes.as_dtype(found, op)
    if found.kind not in ("floating", "complex"):
        raise DtypeError(f"{op}: {op} requires a floating point or complex dtype, got {found}; pass torch.float32")
    made = numbers(found, device if out is None else out.device) * (1.0 / (n * d))
    made = made.requires_grad_(requires_grad) if requires_grad else made
    return made if out is None else store(op, made, out)  # type: ignore[no-any-return]


def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The frequency of each element of a transform of ``n`` samples, ``d`` apart: from 0 up, then the negative ones."""
    if layout is not None:
        only_strided("fftfreq", layout)

    def numbers(found: Any, device: Any) -> Any:
        return cat([arange((n + 1) // 2, dtype=found, device=device), arange(-(n // 2), 0, dtype=found, device=device)])

    return _frequencies("fftfreq", numbers, n, d, out, dtype, device, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The frequency of each element of the real transform of ``n`` samples, ``d`` apart."""
    if layout is not None:
        only_strided("rfftfreq", layout)

    def numbers(found: Any, device: Any) -> Any:
        return arange(n // 2 + 1, dtype=found, device=device)

    return _frequencies("rfftfreq", numbers, n, d, out, dtype, device, requires_grad)


def _shifted(op: str, input: Tensor, dim: Any, back: bool) -> Tensor:
    check_tensors(op, input=input)
    dims = rules.wrap_dims(op, dim, input.ndim)
    if not dims:
        return input.clone()  # type: ignore[attr-defined, no-any-return]
    shape = input.native.shape
    return roll(input, tuple([(shape[i] + 1) // 2 if back else shape[i] // 2 for i in dims]), dims)


@operation(samples=samples.shifts, method=False)
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The spectrum with frequency 0 in the middle of each of ``dim`` (of all dims where None)."""
    return _shifted("fftshift", input, dim, False)


@operation(samples=samples.shifts, method=False)
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return _shifted("ifftshift", input, dim, True)
