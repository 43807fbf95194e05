"""The kinds of ops. A kind supplies what its ops have in common: the call, the method, the operator, the in-place form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore import dtypes
from tensorcore.dtypes import PROMOTION, dtype
from tensorcore.errors import ArgumentTypeError, UnsupportedDtype
from tensorcore.ops.calls import binary, reflected, unary
from tensorcore.ops.define import Op
from tensorcore.ops.inplace import elementwise_inplace, inplace, usual_write
from tensorcore.ops.mixed import elementwise as slow
from tensorcore.ops.mixed import foreign
from tensorcore.ops.operands import PLAIN_FLOATS, result_type
from tensorcore.ops.output import store
from tensorcore.ops.record import record
from tensorcore.ops.shapes.views import viewing
from tensorcore.ops.shortage import again
from tensorcore.ops.signature import checked, composed, parameters_of
from tensorcore.shortcuts import elementwise_way, in_python
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "BOOL", "COMPLEX", "FLOATING", "INTEGER", "NUMBERS", "REAL", "alias", "composite", "computes_in", "elementwise", "install", "method",
    "operation", "quick_pair", "view",
]  # fmt: skip

BOOL = frozenset([dtypes.bool_])
INTEGER = frozenset(one for one in dtypes.ALL if one.kind == "integer")
FLOATING = frozenset(one for one in dtypes.ALL if one.kind == "floating")
COMPLEX = frozenset(one for one in dtypes.ALL if one.kind == "complex")
REAL = BOOL | INTEGER | FLOATING
NUMBERS = REAL | COMPLEX
_WHOLE, _PLAIN = BOOL | INTEGER, frozenset([int, float])

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
    commutes: bool = False,
    widens: bool = False,
    writes: bool = True,
    method: bool = True,
    numbers: bool = True,
    tensor_first: bool = False,
    rule: Callable[..., dtype] | None = None,
    by_value: bool = False,
    unchanged: frozenset[dtype] = frozenset(),
    samples: Calls,
    backward_name: str | None = None,
) -> Callable[..., Tensor]:
    """An op that computes each element of its result from the elements in the same place of its inputs.

    Args:
        takes: the dtypes it computes in.
        gives: ``same`` as it computes in, ``float`` (integers become the default floating dtype first), ``real``
            (the real part's dtype), ``float-real`` (both) or ``bool``.
        operator: of the Python operators ``__{operator}__``, ``__r{operator}__`` and ``__i{operator}__``.
        widens: whether a number keeps single precision beside a tensor of a narrower floating dtype.
        commutes: whether ``number op tensor`` is ``tensor op number``.
        writes: whether there is a form with an underscore.
        method: whether it is a method of Tensor too.
        numbers: whether the second operand may be one of Python's numbers.
        tensor_first: whether the first one may not.
        rule: given the inputs, the dtype to compute in, or an error of its own for dtypes that do not mix; the
            rule of promotion unless told otherwise. It is not asked where all are of one plain floating dtype, and once for
            each meeting of dtypes.
        by_value: whether it looks at a number within 32 bits that stands last, beside integers: it is asked each time then.
        unchanged: the dtypes whose elements it gives as they are.
    """
    op = Op(name, inputs, doc, grads=grads, samples=samples, kind="elementwise", backward_name=backward_name)
    promote = rule or result_type
    floats, reals = gives in ("float", "float-real"), gives in ("real", "float-real")

    def dtypes_of(op: Op, values: Any) -> tuple[dtype, dtype]:
        compute = promote(*values)
        if floats and compute.kind in ("bool", "integer"):
            compute = dtypes.get_default_dtype()
        if compute not in takes:
            raise not_taken(name, compute)
        return compute, dtypes.bool_ if gives == "bool" else compute.to_real() if reals else compute

    op.dtypes = dtypes_of  # type: ignore[attr-defined]
    op.widens, op.by_value, op.unchanged = widens, by_value, unchanged
    op.tensor_first = tensor_first
    # Where all operands have one of these dtypes, or are Python's own ints and floats, every rule is met.
    op.quick = takes & (PLAIN_FLOATS if reals else PLAIN_FLOATS | COMPLEX)
    op.result = dtypes.bool_ if gives == "bool" else None
    accepts = takes
    if floats:
        accepts -= BOOL | INTEGER
    if reals:
        accepts -= COMPLEX
    accepts = None if accepts == NUMBERS else accepts
    result = dtypes.bool_ if gives == "bool" else None
    if len(op.inputs) == 1:
        call = unary(op, accepts, result)
    elif len(op.inputs) == 2:
        call = binary(op, accepts, result, None if numbers else _tensors_only, numbers, op.inputs[1])
    else:
        usual = FLOATING if accepts is None else FLOATING & accepts

        @elementwise_way(op, again, usual, result, PLAIN_FLOATS & usual)
        def call(*values: Any, out: Tensor | None = None) -> Tensor:
            return slow(op, values, out=out)

    function = in_python(call)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tensorcore"  # where pickles find it
    function.__doc__, function.op = doc, op
    op.function = call
    if method:
        setattr(Tensor, name, call)
    written = None
    if writes:
        op.overwritten = usual = usual_write(op, accepts, result, numbers)
        written = elementwise_inplace(op, usual) if numbers else inplace(f"{name}_", call, usual)
        setattr(Tensor, f"{name}_", written)
    if operator is not None:
        _operator(op, call, operator, written, commutes, accepts, result)
    return call


def _tensors_only(op: Op, values: tuple[Any, ...], *, out: Tensor | None = None) -> Tensor:
    """The call of an op that takes no numbers, where something is unusual."""
    for place, one in zip(op.inputs, values, strict=True):
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(
                f"{op.name}: expected argument '{place}' to be a Tensor, got {type(one).__name__}; wrap it in torch.tensor(...)"
            )
    return slow(op, values, out=out)


def _operator(
    op: Op,
    call: Any,
    operator: str,
    written: Any,
    commutes: bool,
    accepts: frozenset[dtype] | None,
    result: dtype | None,
) -> None:
    if len(op.inputs) == 1:
        setattr(Tensor, f"__{operator}__", call)
        return
    forward = binary(op, accepts, result, leave=foreign)
    setattr(Tensor, f"__{operator}__", forward)
    if operator in ("eq", "ne", "lt", "le", "gt", "ge"):
        return
    setattr(Tensor, f"__r{operator}__", forward if commutes else reflected(op, accepts, result))
    if written is not None:

        def over(self: Tensor, other: Any) -> Any:
            if not isinstance(other, Tensor) and dtypes.kind_of(other) is None:
                return NotImplemented
            return written(self, other)

        setattr(Tensor, f"__i{operator}__", over)


def method(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    writes: bool = False,
    overwritten: Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """Make ``function`` a method of Tensor, and with ``writes`` its in-place form too, whose usual calls ``overwritten`` makes."""
    name = name or function.__name__
    return install(checked(function, name), name, writes=writes, overwritten=overwritten)


def install(
    function: Callable[..., Any], name: str, *, writes: bool = False, overwritten: Callable[..., bool] | None = None
) -> Callable[..., Any]:
    """``method`` of a function that looks at its parameters already."""
    setattr(Tensor, name, function)
    if writes:
        setattr(Tensor, f"{name}_", inplace(f"{name}_", function, overwritten))
    return function


def not_taken(name: str, compute: dtype) -> UnsupportedDtype:
    """The error for a dtype that an op does not compute in."""
    return UnsupportedDtype(
        f'{name}: "{name}" not implemented for {compute.name}, got a tensor of it; convert it with .to(...)'
    )


def computes_in(name: str, *values: Any, takes: frozenset[dtype] = FLOATING) -> dtype:
    """The dtype that an op of these tensors and numbers computes in where integers become the default floating one."""
    compute = result_type(*values)
    if compute.kind in ("bool", "integer"):
        compute = dtypes.get_default_dtype()
    if compute not in takes:
        raise not_taken(name, compute)
    return compute


def _meets_in(input: Any, other: Any, numbers: bool) -> Any:
    """The dtype of a usual call off the tape: tensors of one floating dtype, integers beside them, a number; None for others."""
    first, second = type(input) is Tensor, type(other) is Tensor
    if first and second:
        if input.node is not None or other.node is not None or input.device is not other.device:
            return None
        a, b = input.dtype, other.dtype
        if a in FLOATING:
            return a if a is b or b in _WHOLE else None
        whole = a in _WHOLE and b in _WHOLE and (a, b) in PROMOTION  # not every two of them meet
        return dtypes.get_default_dtype() if whole else b if a in _WHOLE and b in FLOATING else None
    one, number = (input, other) if first else (other, input)
    if not numbers or type(one) is not Tensor or one.node is not None or type(number) not in _PLAIN:
        return None
    return dtypes.get_default_dtype() if one.dtype in _WHOLE else one.dtype if one.dtype in FLOATING else None


def quick_pair(name: str, input: Any, other: Any, numbers: bool = True, out: Any = None) -> Tensor | None:
    """What the kernel makes of two tensors, or of a tensor and a number, in the floating dtype that they meet in; None where a call
    has something else to look at."""
    compute = _meets_in(input, other, numbers)
    if compute is None:
        return None
    device = (input if type(input) is Tensor else other).device
    kernels = device.kernels
    kernel = kernels[name]
    if not kernel:
        return None
    try:
        x, y = [kernels["full"]((), one, dtype=compute) if type(one) is not Tensor else one.native if one.dtype is compute
                else kernels["cast"](one.native, dtype=compute) for one in (input, other)]  # fmt: skip
        native = kernel(x, y)
    except Exception:  # which the complete call says in words, or finds memory for
        return None
    if type(native) is not device.array:
        return None
    made = new_tensor(native, compute, device)
    return made if out is None else store(name, made, out, input, other)  # type: ignore[no-any-return]


def alias(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Another name for a function, for its method and for that one's in-place form."""
    setattr(Tensor, name, function)
    written = getattr(Tensor, f"{function.__name__}_", None)
    if written is not None:
        setattr(Tensor, f"{name}_", written)
    return function


def operation(
    *,
    samples: Calls | None = None,
    method: bool = True,
    writes: bool = False,
    kind: str = "composite",
    name: str | None = None,
    numpy: bool = False,
    overwritten: Callable[..., bool] | None = None,
    way: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function that is written in other ops, or that calls ``apply`` itself, into the registry.

    Args:
        method, writes: whether it is a method of Tensor too, and whether that has a form with an underscore, see ``method``.
        numpy: whether NumPy's names stand for its ``dim`` and ``keepdim`` too.
        way: puts a short way before it.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        title = name or function.__name__
        op = Op(title, _tensor_arguments(function), function.__doc__ or "", samples=samples, kind=kind)
        call = checked(function, title, numpy)
        op.function = call = call if way is None else way(call)
        if method:
            install(call, title, writes=writes, overwritten=overwritten)
        return call

    return enter


def composite(
    *,
    inputs: str,
    grads: dict[str, Callable[..., Any]] | None = None,
    check: Callable[..., tuple[Any, ...]] | None = None,
    samples: Calls | None = None,
    method: bool = True,
    writes: bool = False,
    name: str | None = None,
    kernel: str | None = None,
    backward_name: str | None = None,
    quick: frozenset[dtype] | None = None,
    usual: str = "",
    takes: frozenset[dtype] | None = None,
    numbers: bool = False,
    unchanged: frozenset[dtype] = frozenset(),
    register: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make an op of a function that is written in other ops, for which a backend may have one fused kernel.

    The forward runs the backend's kernel of the op's name, or ``kernel``, where it has one, else the function, and is
    recorded as one node with the formulas of ``grads``. Where an input without a formula asks for a
    gradient, the function is recorded op by op instead.

    Args:
        inputs: the names of the parameters that are tensors, in the kernel's order; any but the first may be
            None. The other parameters are options: the kernel and the formulas get them by name. Two are for
            the frontend alone: ``out``, and ``inplace`` (write the result over the first input).
        grads: formulas as those of an ``Op``: they may name ``g``, ``out``, inputs, options, ``{input}_shape``.
        check: takes all parameters in order (without ``out`` and ``inplace``), raises what PyTorch raises, and
            returns them as kernel and function take them: dims from the front, integers cast. Runs recorded.
        method, writes: whether it is a method of Tensor, and whether that has a form with an underscore. Where ``quick`` is given too,
            the op is elementwise, and its kernel takes ``out``.
        quick: dtypes of which ``check`` has nothing to say that the kernel would not refuse: a call with tensors of one of
            them is one frame, where none is to be recorded, or there is only one.
        usual: an expression of the options that such a call has to meet, where ``check`` looks at them.
        takes: the dtypes that the kernel takes, where it does not take all.
        numbers: whether it takes a float of Python in the place of the last tensor.
        unchanged: the dtypes whose elements it gives as they are.
        register: whether it is an op of its own in the registry.

    The kernel runs only where all inputs have the one dtype, which is also the result's.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        title = name or function.__name__
        parameters = parameters_of(function)
        op = Op(title, inputs, function.__doc__ or "", grads=grads, samples=samples, kind="composite",
                kernel=kernel, backward_name=backward_name, register=register)  # fmt: skip
        op.unchanged = unchanged
        names = [one for one in parameters if one not in ("out", "inplace")]
        run = _composite_run(op, function, check, names, takes, numbers)
        call = composed(op, function, run, quick, usual, numbers, bool(writes and quick))
        op.function = call
        call.op = op
        if method:
            direct = None
            if writes and quick:
                direct = usual_write(op, quick, None, numbers, frozenset(names[len(op.inputs) :]), last=True)
            install(call, title, writes=writes, overwritten=direct)
        return call

    return enter


def _composite_run(
    op: Op, function: Callable[..., Any], check: Callable[..., tuple[Any, ...]] | None, names: list[str],
    takes: frozenset[dtype] | None, numbers: bool,
) -> Callable[..., Any]:  # fmt: skip
    """What a composite does with all its arguments in order."""
    name, inputs = op.kernel, op.inputs
    arity = len(inputs)
    options_of = names[arity:]
    without_formula = tuple(i for i, one in enumerate(inputs) if one not in op.grads)
    if tuple(names[:arity]) != inputs:
        raise ValueError(f"{op.name}: expected the inputs {inputs} to be the first parameters, got {names}")

    def run(*values: Any) -> Any:
        first = values[0]
        if arity == 1 and type(first) is Tensor and (first.node is None or not mode.enabled):
            # Nothing to record and one dtype: half of the steps below are not needed (0.6 us less).
            if check is not None:
                values = check(*values)
                first = values[0]
            device = first.device
            kernel = device.kernels[name] if takes is None or first.dtype in takes else None
            if not kernel:
                return function(*values[:1], **dict(zip(options_of, values[1:], strict=True)))
            options = dict(zip(options_of, values[1:], strict=True)) if options_of else {}
            try:
                native = kernel(first.native, **options) if options else kernel(first.native)
            except MemoryError as error:
                native = again(device, name, (first.native,), options, error)
            except Exception:
                if takes is None:
                    raise
                return function(first, **options)  # which says in words what is wrong
            return new_tensor(native if type(native) is device.array else device.as_native(native), first.dtype, device)
        if not isinstance(values[0], Tensor):
            raise ArgumentTypeError(
                f"{op.name}: expected argument '{inputs[0]}' to be a Tensor, got {type(values[0]).__name__}; "
                f"wrap it in torch.tensor(...)"
            )
        if check is not None:
            values = check(*values)
        first = values[0]
        tensors = values[:arity]
        device, dtype = first.device, first.dtype
        recorded, fusable = False, takes is None or dtype in takes
        for one in tensors:
            if isinstance(one, Tensor):
                if one.node is not None:
                    recorded = True
                if one.dtype is not dtype or one.device is not device:
                    fusable = False
            elif one is not None and not (numbers and type(one) is float):
                fusable = False
        if recorded and mode.enabled:
            for i in without_formula:
                if isinstance(tensors[i], Tensor) and tensors[i].node is not None:
                    return function(*tensors, **dict(zip(options_of, values[arity:], strict=True)))
        else:
            recorded = False
        options = dict(zip(options_of, values[arity:], strict=True))
        kernel = device.kernels[name] if fusable else None
        if kernel:
            natives = [one.native if isinstance(one, Tensor) else one for one in tensors]
            try:
                native = kernel(*natives, **options)
            except MemoryError as error:
                native = again(device, name, natives, options, error)
            except Exception:
                if takes is None:
                    raise
                return function(*tensors, **options)
            made = new_tensor(native if type(native) is device.array else device.as_native(native), dtype, device)
        elif recorded:
            # Twins off the tape: cheaper than switching the mode off and on again.
            twins = [
                new_tensor(one.native, one.dtype, one.device) if isinstance(one, Tensor) else one for one in tensors
            ]
            made = function(*twins, **options)
        else:
            return function(*tensors, **options)
        if recorded:
            record(op, tensors, options, made)
        return made

    return run


def _tensor_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def view(name: str, doc: str, *, kernel: str, grad: Callable[..., Any], backward_name: str | None = None) -> Op:
    """An op that shows its input's memory in another way; call it with ``op.view(tensor, options)``."""
    op = Op(
        name,
        "input",
        doc,
        grads={"input": grad},
        kernel=kernel,
        backward_name=backward_name,
        kind="view",
        register=False,
    )
    op.view = viewing(op)  # type: ignore[attr-defined]
    return op
