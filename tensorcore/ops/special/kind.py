"""The kind of the special functions: elementwise, of floating numbers, written in other ops off the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentTypeError
from tensorcore.ops import rules
from tensorcore.ops.define import OPS
from tensorcore.ops.inplace import usual_write
from tensorcore.ops.kinds import FLOATING, composite, computes_in, install, quick_pair
from tensorcore.ops.operands import NARROW
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.special.tables import Ratio
from tensorcore.shortcuts import place_way
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["of_one", "of_two", "polynomial", "ratio", "where"]

Formula = Callable[..., Any]


def of_one(
    name: str, doc: str, formula: Formula, *, grad: Formula | None = None, samples: Any, method: bool = False,
    writes: bool = False, backward_name: str | None = None,
) -> Callable[..., Tensor]:  # fmt: skip
    """A special function of one tensor; integers become the default floating dtype first.

    Args:
        formula: of a tensor of single or double precision; narrower ones are computed in single precision.
        grad: its derivative's formula; without one the result is off the tape, as PyTorch's is.
    """

    def check(input: Tensor) -> tuple[Tensor]:
        compute = computes_in(name, input)
        return (_plain(input.to(compute), grad is None),)  # type: ignore[attr-defined]

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if input.dtype in NARROW:
            return formula(input.float()).to(input.dtype)  # type: ignore[attr-defined, no-any-return]
        return formula(input)  # type: ignore[no-any-return]

    function.__doc__ = doc
    grads = {} if grad is None else {"input": grad}
    enter = composite(inputs="input", check=check, grads=grads, samples=samples, method=method, writes=writes, name=name,
                      backward_name=backward_name, quick=FLOATING)  # fmt: skip
    call = enter(function)
    call.__module__ = formula.__module__
    OPS[name].off_tape = grad is None
    return call


def of_two(
    name: str, doc: str, formula: Formula, *, grads: dict[str, Formula] | None = None, samples: Any, method: bool = False,
    writes: bool = False, numbers: bool = True,
) -> Callable[..., Tensor]:  # fmt: skip
    """A special function of two tensors that broadcast, or of a tensor and a number; see :func:`of_one`."""

    def check(input: Any, other: Any) -> tuple[Any, ...]:
        tensors = [one for one in (input, other) if isinstance(one, Tensor)]
        if not tensors or (not numbers and len(tensors) < 2):
            raise ArgumentTypeError(
                f"{name}: expected tensors, got {input!r} and {other!r}; wrap them in torch.tensor(...)"
            )
        rules.broadcast(name, *[tuple(one.native.shape) for one in tensors])
        compute = computes_in(name, input, other)
        like: Any = tensors[0]
        return tuple([
            _plain(one.to(compute), not grads) if isinstance(one, Tensor) else like.new_full((), one, dtype=compute)  # type: ignore[attr-defined]
            for one in (input, other)
        ])  # fmt: skip

    def function(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        if input.dtype in NARROW:
            return formula(input.float(), other.float()).to(input.dtype)  # type: ignore[attr-defined, no-any-return]
        return formula(input, other)  # type: ignore[no-any-return]

    function.__doc__ = doc
    enter = composite(
        inputs="input other", check=None, grads=grads, samples=samples, method=False, name=name, quick=FLOATING
    )
    inner = enter(function)
    into = place_way(OPS[name], FLOATING, None)

    def call(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        if out is not None and (done := into(out, input, other)) is not None:
            return done  # type: ignore[no-any-return]
        if (made := quick_pair(name, input, other, numbers, out)) is not None:
            return made
        return inner(*check(input, other)) if out is None else inner(*check(input, other), out=out)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = doc, formula.__module__
    OPS[name].function, OPS[name].off_tape = call, not grads
    if not method:
        return call
    direct = usual_write(OPS[name], FLOATING, None, numbers=False) if writes else None
    return install(call, name, writes=writes, overwritten=direct)


def _plain(x: Any, off: bool) -> Any:
    return x.detach() if off and x.node is not None else x


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's rule, in place; the highest power comes first."""
    if len(coefficients) == 1:
        return x * 0 + coefficients[0]
    made = x * coefficients[0]
    for one in coefficients[1:-1]:
        made = made.add_(one).mul_(x)
    return made.add_(coefficients[-1])


def ratio(x: Any, table: Ratio) -> Any:
    """A rational approximation, see ``tables.py``."""
    kernel = x.device.kernels["rational"]
    if kernel:
        return new_tensor(kernel(x.native, above=table[0], below=table[1]), x.dtype, x.device)
    above = polynomial(x, table[0])
    return above if len(table[1]) == 1 else above.div_(polynomial(x, table[1]))
