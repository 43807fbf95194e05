"""How ops that write at places of a tensor are called: into a copy under one name, into the tensor under another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.dtypes import kind_of
from tensorcore.errors import ArgumentTypeError, DtypeError, GradientError, ShapeError
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op, named
from tensorcore.ops.indexing.index import number_of
from tensorcore.ops.inplace import _before, attach, check_writable
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.operands import check_tensors, lifted
from tensorcore.ops.output import check_apart, store, written
from tensorcore.ops.record import record
from tensorcore.ops.samples import index as samples
from tensorcore.ops.signature import checked
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["both", "call", "picked", "renamed", "same_dtype", "scalar"]


def renamed(op: Op, number: int) -> Op:
    """The same op as PyTorch calls it where the value is a tensor, or a number."""
    return Op(op.name, op.inputs, op.doc, grads=op.grads, kernel=op.kernel, register=False,
              backward_name=op.node_name[:-1] + str(number))  # fmt: skip


# What kernels get besides, by the op's name.
_MORE = {"scatter_add": {"reduce": "sum"}}


def _outside(op: Op, error: type[Exception], wrong: Exception) -> None:
    raise error(
        f"{op.name}: expected every index inside its dimension, got one outside: {wrong}; check the index"
    ) from None


@before("place", _MORE, _outside, record)
def call(op: Op, inputs: tuple[Any, ...], options: dict[str, Any], error: type[Exception], write: bool) -> Tensor:
    """Run a primitive whose kernel raises IndexError for an index outside, into a copy or into the first input."""
    if not write:
        inputs = lifted(op.name, *inputs)
    input = inputs[0]
    recording = False
    for one in inputs:
        if isinstance(one, Tensor) and one.node is not None:
            recording = mode.enabled
    if recording and input.dtype.is_complex and op.kernel == "scatter_reduce" and op.name != "scatter_add":
        raise GradientError(
            f"{op.name}: {op.name} does not support automatic differentiation for outputs with complex dtype, got "
            f"{input.dtype.name} that requires grad; detach() it"
        )
    extra = _MORE.get(op.name, {})
    kernel = input.device.kernels[op.kernel]
    try:
        if not write:
            if not extra:
                return apply(op, inputs, options)
            made = new_tensor(kernel(*[one.native for one in inputs], **options, **extra), input.dtype, input.device)
            if recording:
                record(op, inputs, options, made)
            return made
        if recording:
            inputs = (_before(op, input, inputs), *inputs[1:])
        kernel(*[one.native for one in inputs], **options, **extra, out=input.native)
    except IndexError as wrong:
        _outside(op, error, wrong)
    written(input)
    if recording:
        result = new_tensor(input.native, input.dtype, input.device)
        result.version = input.version
        record(op, inputs, options, result)
        if result.node is not None:
            attach(input, result.node)
    return input


def both(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """The function without ``write`` under its name, and as a method with an underscore that writes."""

    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        function = checked(function, name)

        def plain(input: Tensor, *args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
            if not isinstance(input, Tensor):
                raise ArgumentTypeError(
                    f"{name}: expected argument 'input' to be a Tensor, got {input!r}; wrap it in torch.tensor(...)"
                )
            made = function(name, False, input, *args, **kwargs)
            return made if out is None else store(name, made, out, input, *args)

        title = f"{name}_"
        compares = name not in ("masked_scatter", "masked_fill", "index_fill")  # of whose memory PyTorch asks nothing

        @before("written_form", function, title, compares)
        @named(title)
        def written_form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            check_writable(title, input)
            if compares:
                check_apart(title, input, args, all_of_it=True)
            return function(title, True, input, *args, **kwargs)

        plain.__name__ = plain.__qualname__ = name
        plain.__module__ = "tensorcore"  # where pickles find it
        plain.__doc__ = function.__doc__
        plain.__wrapped__ = function  # type: ignore[attr-defined]
        plain.sees_out = True  # type: ignore[attr-defined]
        plain = before("copied_form", function, name, store)(plain)
        setattr(Tensor, title, written_form)
        calls = getattr(samples, name, None)
        if calls is None:
            # PyTorch warns at every call of index_reduce, which no comparison survives; it has tests of its own.
            return method(plain)
        return operation(samples=calls, name=name)(plain)

    return enter


def same_dtype(op: str, input: Tensor, other: Tensor, name: str) -> None:
    check_tensors(op, **{name: other})
    if other.dtype is not input.dtype:
        raise DtypeError(
            f"{op}: Expected self.dtype to be equal to {name}.dtype, got {input.dtype} and "
            f"{other.dtype}; convert one with .to(...)"
        )


def scalar(op: str, input: Tensor, value: Any) -> Tensor:
    """A number, or a tensor without dims, as a 0-d tensor of the input's dtype."""
    if type(value) is float or type(value) is int:
        return number_of(input, value)
    if isinstance(value, Tensor):
        if value.native.shape:
            raise ShapeError(
                f"{op}: only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s); use where"
            )
        if value.dtype.is_complex and not input.dtype.is_complex:
            raise DtypeError(
                f"{op}: value cannot be converted to type {input.dtype.name} without overflow, got {value.dtype}"
            )
        if value.dtype is input.dtype and value.device is input.device:
            return value
        return value.to(input.device, input.dtype)  # type: ignore[attr-defined]
    if kind_of(value) is None:
        raise ArgumentTypeError(f"{op}: expected value to be a number or a 0-d Tensor, got {value!r}; pass a number")
    return number_of(input, value)


def picked(op: Op, input: Tensor, index: Tensor, at: int, out: Tensor | None = None) -> Tensor | None:
    """What the kernel reads at one index along one dim, recorded; None where it refuses: the slower call knows how to go on, and what
    to say."""
    device = input.device
    if out is not None:
        return apply_into(op, (input, index), {"dim": at}, input.dtype, out)
    try:
        native = device.kernels[op.kernel](input.native, index.native, dim=at)
    except (IndexError, MemoryError):
        return None
    made = new_tensor(native, input.dtype, device)
    if input.node is not None and mode.enabled:
        record(op, (input, index), {"dim": at}, made)
    return made  # type: ignore[no-any-return]
