"""The kinds of ops. A kind supplies what its ops have in common: the call, the method, the operator, the in-place form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import dtype
from tensorcore.errors import ArgumentTypeError, DtypeError
from tensorcore.ops.calls import binary, elementwise as slow, result_type, unary
from tensorcore.ops.define import Op
from tensorcore.ops.inplace import elementwise_inplace, inplace
from tensorcore.ops.views import viewing
from tensorcore.tensor import Tensor

__all__ = ["COMPLEX", "FLOATING", "INTEGER", "NUMBERS", "REAL", "elementwise", "method", "operation", "view"]

BOOL = frozenset([dtypes.bool_])
INTEGER = frozenset(one for one in dtypes.ALL if one.kind == "integer")
FLOATING = frozenset(one for one in dtypes.ALL if one.kind == "floating")
COMPLEX = frozenset(one for one in dtypes.ALL if one.kind == "complex")
REAL = BOOL | INTEGER | FLOATING
NUMBERS = REAL | COMPLEX

Calls = Callable[..., Iterable[Any]]


def elementwise(
    name: str,
    inputs: str,
    doc: str,
    *,
    takes: frozenset[dtype] = NUMBERS,
    gives: str = "same",
    grads: dict[str, Callable[..., Any]] | None = None,
    operator: str | None = None,
    writes: bool = True,
    samples: Calls,
    backward_name: str | None = None,
) -> Callable[..., Tensor]:
    """An op that computes each element of its result from the elements in the same place of its inputs.

    Args:
        takes: the dtypes it computes in.
        gives: ``same`` as it computes in, ``float`` (integers become the default floating dtype first) or ``bool``.
        operator: of the Python operators ``__{operator}__``, ``__r{operator}__`` and ``__i{operator}__``.
        writes: whether there is a form with an underscore.
    """
    op = Op(name, inputs, doc, grads=grads, samples=samples, kind="elementwise", backward_name=backward_name)

    def dtypes_of(op: Op, values: Any) -> tuple[dtype, dtype]:
        compute = result_type(*values)
        if gives == "float" and compute.kind in ("bool", "integer"):
            compute = dtypes.get_default_dtype()
        if compute not in takes:
            raise DtypeError(f'"{name}" not implemented for {compute.name}, got a tensor of it; convert it with .to(...)')
        return compute, dtypes.bool_ if gives == "bool" else compute

    op.dtypes = dtypes_of  # type: ignore[attr-defined]
    accepts = takes if gives != "float" else takes & (FLOATING | COMPLEX)
    accepts = None if accepts == NUMBERS else accepts
    result = dtypes.bool_ if gives == "bool" else None
    if len(op.inputs) == 1:
        call = unary(op, accepts, result)
    elif len(op.inputs) == 2:
        call = binary(op, accepts, result)
    else:

        def call(*values: Any, out: Tensor | None = None) -> Tensor:
            return slow(op, values, out=out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    op.function = call
    setattr(Tensor, name, call)
    if writes:
        written = elementwise_inplace(op)
        written.__name__ = written.__qualname__ = f"{name}_"
        written.__doc__ = f"In-place form of :func:`{name}`."
        setattr(Tensor, f"{name}_", written)
    if operator is not None:
        _operator(call, operator, elementwise_inplace(op) if writes else None, len(op.inputs))
    return call


def _operator(call: Any, operator: str, written: Any, arity: int) -> None:
    if arity == 1:
        setattr(Tensor, f"__{operator}__", call)
        return

    setattr(Tensor, f"__{operator}__", _python_operator(call))
    if operator in ("eq", "ne", "lt", "le", "gt", "ge"):
        return

    def swapped(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor) and dtypes.kind_of(other) is None:
            return NotImplemented
        return slow(call.op, (other, self)) if hasattr(call, "op") else call(other, self)

    setattr(Tensor, f"__r{operator}__", swapped)
    if written is not None:
        setattr(Tensor, f"__i{operator}__", written)


def _python_operator(call: Any) -> Any:
    return call


def method(function: Callable[..., Any], name: str | None = None, *, writes: bool = False) -> Callable[..., Any]:
    """Make ``function`` a method of Tensor, and with ``writes`` its in-place form too."""
    name = name or function.__name__
    setattr(Tensor, name, function)
    if writes:
        written = inplace(f"{name}_", function)
        written.__name__ = written.__qualname__ = f"{name}_"
        written.__doc__ = f"In-place form of :func:`{name}`."
        setattr(Tensor, f"{name}_", written)
    return function


def operation(
    *, samples: Calls | None = None, method: bool = True, writes: bool = False, kind: str = "composite", name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function that is written in other ops, or that calls ``apply`` itself, into the registry.

    Args:
        method: whether it is a method of Tensor too.
        writes: whether there is a form with an underscore.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        title = name or function.__name__
        op = Op(title, _tensor_arguments(function), function.__doc__ or "", samples=samples, kind=kind)
        op.function = function
        if method:
            install = globals()["method"]
            install(function, title, writes=writes)
        return function

    return enter


def _tensor_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def view(name: str, doc: str, *, kernel: str, grad: Callable[..., Any], backward_name: str | None = None) -> Op:
    """An op that shows its input's memory in another way; call it with ``op.view(tensor, options)``."""
    op = Op(name, "input", doc, grads={"input": grad}, kernel=kernel, backward_name=backward_name, kind="view", register=False)
    op.view = viewing(op)  # type: ignore[attr-defined]
    return op
