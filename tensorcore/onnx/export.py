"""export: a model's call as an ONNX file, for inputs of one shape or with sizes that may vary."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorcore._version import __version__
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.nn.module import Module
from tensorcore.onnx import layers, movement
from tensorcore.onnx.kernels import number_of
from tensorcore.onnx.sizes import SizesInConstants, Variable, resolve
from tensorcore.onnx.tracer import Node, Trace
from tensorcore.ops.creation.create import from_numpy
from tensorcore.ops.placement import host_device
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["ONNXProgram", "export", "is_in_onnx_export"]

_OPSETS = range(18, 24)
_OLDER = range(7, 18)
_REGISTERED = (layers, movement)  # importing the kernels' modules entered their handlers


class ONNXProgram:
    """An exported model. ``model_proto`` is ONNX's own message."""

    def __init__(self, model_proto: Any) -> None:
        self.model_proto = model_proto

    def save(self, destination: Any, **options: Any) -> None:
        """Write the file; ``options`` are those of ``onnx.save_model``."""
        _onnx().save_model(self.model_proto, os.fspath(destination), **options)

    def __call__(self, *args: Any) -> list[Tensor]:
        """Run it in onnxruntime; raises UsageError where that is not installed."""
        try:
            from onnxruntime import InferenceSession
        except ImportError as error:
            raise UsageError(
                f"ONNXProgram: expected the package onnxruntime, which runs it, got: {error}; install onnxruntime"
            ) from error
        session = InferenceSession(self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_inputs()]
        values = [one.detach().cpu().numpy() for one in args]
        return [from_numpy(one) for one in session.run(None, dict(zip(names, values, strict=True)))]

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return f"ONNXProgram({len(graph.node)} nodes, {len(graph.initializer)} arrays)"


def export(
    model: Module,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = False,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    do_constant_folding: bool = True,
    training: Any = None,
    **options: Any,
) -> ONNXProgram:
    """Run the model once and write down what it computes, as an ONNX file.

    What is written is the call that was run: a loop has the turns that it had, a branch the side that was taken. The
    model runs in evaluation mode, on the host, without recording; it stays as it is. Where sizes vary, it runs once more
    for each of them with another size, and what differs between the runs is written as computed from the input's shape.

    Args:
        args: the inputs: a tensor, or a tuple of arguments. A dict at its end is taken for keyword arguments.
        f: a path, or a file to write to; None for no file.
        kwargs: keyword arguments.
        input_names, output_names: for the tensors among the inputs and of the result, in order.
        opset_version: of ONNX's operators, 7 to 23; 18 where None. A lower one than 18 is converted to, by ONNX's own
            converter; where that cannot, the file has 18, with a warning.
        dynamic_axes: the dims whose size may vary: for an input's name a dict of names by dim, or a list of dims. Those
            of outputs follow by themselves.
        dynamic_shapes: the same by argument: a dict by parameter name, or a tuple in order, of dicts of names (or
            objects with a ``__name__``) by dim, None for fixed ones.
        export_params: False leaves the values of parameters out; they become inputs.
        external_data: keep large arrays in a file beside ``f``.
        dynamo, verbose, keep_initializers_as_inputs, do_constant_folding, training, options: taken and not needed.

    Raises UsageError where the package ``onnx`` is missing, and for kernels and writes that no node is known for.
    """
    onnx = _onnx()
    if not isinstance(model, Module):
        raise ArgumentTypeError(f"onnx.export: expected a Module, got {type(model).__name__}; wrap the function in one")
    opset = 18 if opset_version is None else opset_version
    if opset not in _OPSETS and opset not in _OLDER:
        raise ArgumentError(f"onnx.export: expected opset_version from 7 to 23, got {opset_version!r}; leave it out")
    positional = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    named = dict(kwargs or {})
    if positional and isinstance(positional[-1], dict) and not named:
        positional, named = positional[:-1], dict(positional[-1])
    call = _Call(model, positional, named)
    names = _input_names(call, input_names)
    variables = _variables(call, names, dynamic_axes, dynamic_shapes)
    for folds in (True, False):
        base = call.run({}, names, bool(variables), folds)
        others = {one: call.run({one: one.other(call.inputs)}, names, True, folds) for one in variables}
        try:
            nodes, constants = resolve(base, others, names, call.inputs)
            break
        except SizesInConstants:
            if not folds:
                raise
    written = max(opset, _OPSETS[0])
    proto = _message(
        onnx, call, names, base, others, nodes, constants, list(output_names or []), written, export_params
    )
    if opset < written:
        proto = _older(proto, opset)
    program = ONNXProgram(proto)
    if f is not None:
        if hasattr(f, "write"):
            f.write(proto.SerializeToString())
        elif external_data:
            program.save(f, save_as_external_data=True, location=os.path.basename(os.fspath(f)) + ".data")
        else:
            program.save(f)
    return program


def is_in_onnx_export() -> bool:
    """Whether this line runs while ``export`` runs a model."""
    return _Call.running > 0


def _older(proto: Any, opset: int) -> Any:
    """The model in an older version of ONNX's operators, or as it is, with a warning."""
    from onnx import checker, version_converter

    try:
        made = version_converter.convert_version(_plain(proto), opset)
        checker.check_model(made)
    except Exception as error:  # the converter raises whatever its C++ raises
        warnings.warn(
            f"onnx.export: opset_version={opset} has no form for some operator of the model ({error}); the file has "
            f"{_OPSETS[0]}",
            stacklevel=3,
        )
        return proto
    return made


def _plain(proto: Any) -> Any:
    """The model without nodes that only rename what another node made: the converter knows no older form of them."""
    made = type(proto)()
    made.CopyFrom(proto)
    graph = made.graph
    fixed = {name for node in graph.node if node.op_type != "Identity" for name in node.output}
    fixed -= {one.name for one in graph.output}
    named = {node.input[0]: node for node in graph.node if node.op_type == "Identity" and node.input[0] in fixed}
    for node in named.values():
        graph.node.remove(node)
    for node in graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name in named:
                    names[i] = named[name].output[0]
    return made


class _Call:
    """One call of a model: the arguments, and the tensors among them."""

    running = 0  # how many exports run a model now

    def __init__(self, model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.model, self.args, self.kwargs = model, args, kwargs
        self.tensors = list(_tensors((args, kwargs)))
        if not self.tensors:
            raise ArgumentError("onnx.export: expected a tensor among args, got none; pass an example input")
        for one in [*self.tensors, *model.parameters()]:
            if one.dtype.name == "bfloat16":
                raise UsageError(
                    "onnx.export: expected dtypes that the host's NumPy has, got bfloat16; call model.float()"
                )
        self.inputs = [one.detach().cpu().numpy() for one in self.tensors]

    def parameter_names(self) -> list[str]:
        """What ``forward`` calls its arguments, for those that are tensors alone."""
        code = type(self.model).forward.__code__
        mine = code.co_varnames[1 : code.co_argcount]
        found = []
        for i, one in enumerate(self.args):
            name = mine[i] if i < len(mine) else f"input_{i}"
            count = len(list(_tensors(one)))
            found += [name] if count == 1 else [f"{name}_{j}" for j in range(count)]
        for name, one in self.kwargs.items():
            count = len(list(_tensors(one)))
            found += [name] if count == 1 else [f"{name}_{j}" for j in range(count)]
        return found

    def run(self, sizes: dict[Variable, int], names: list[str], sizes_vary: bool, folds: bool) -> Trace:
        """The trace of a call, with some dims of other sizes."""
        device, model = host_device(), self.model
        swapped: dict[int, Tensor] = {}
        arrays = []
        for i, value in enumerate(self.inputs):
            for one, size in sizes.items():
                for place, dim in one.places:
                    if place == i:
                        value = np.take(value, np.arange(size) % value.shape[dim], dim)
            made = from_numpy(np.ascontiguousarray(value))
            swapped[id(self.tensors[i])] = made
            arrays.append(made.native)
        known = {}
        for name, one in [*model.named_parameters(), *model.named_buffers()]:
            if one.device is not device:
                raise UsageError(
                    f"onnx.export: expected a model on the host, got {name} on {one.device}; call model.cpu()"
                )
            known[id(one.native)] = name
        trace = Trace(device, known, sizes_vary, folds)
        for native, name in zip(arrays, names, strict=True):
            trace.bind(native, name)
        before = [(one, one.training) for one in model.modules()]
        model.eval()
        _Call.running += 1
        try:
            with no_grad(), trace:
                args, kwargs = _swapped((self.args, self.kwargs), swapped)
                result = model(*args, **kwargs)
                trace.finish([one.native for one in _tensors(result)])
        finally:
            _Call.running -= 1
            for one, training in before:
                one.training = training
        return trace


def _input_names(call: _Call, given: Sequence[str] | None) -> list[str]:
    names = call.parameter_names()
    if given is None:
        return names
    if len(given) > len(names):
        raise ArgumentError(
            f"onnx.export: expected a name for each of {len(names)} input tensors, got {list(given)}; pass fewer"
        )
    return [*given, *names[len(given) :]]


def _variables(call: _Call, names: list[str], axes: Any, shapes: Any) -> list[Variable]:
    """The sizes that may vary: dims with the same word vary together."""
    found: dict[str, list[tuple[int, int]]] = {}

    def note(place: int, dims: Any) -> None:
        entries = dims.items() if isinstance(dims, Mapping) else [(one, None) for one in dims]
        for dim, word in entries:
            size = call.inputs[place].ndim
            if not isinstance(dim, int) or not -size <= dim < size:
                raise ArgumentError(
                    f"onnx.export: expected dims of '{names[place]}' below {size}, got {dim!r}; name others"
                )
            title = word if isinstance(word, str) else getattr(word, "__name__", None)
            title = (
                title if isinstance(title, str) and title not in ("AUTO", "DYNAMIC") else f"{names[place]}_dim_{dim}"
            )
            found.setdefault(title, []).append((place, dim % size))

    for name, dims in (axes or {}).items():
        if name in names:
            note(names.index(name), dims)
    if shapes is not None:
        order = call.parameter_names()
        pairs = shapes.items() if isinstance(shapes, Mapping) else zip(order, shapes, strict=False)
        for name, dims in pairs:
            if name not in order and name not in names:
                raise ArgumentError(f"onnx.export: expected dynamic_shapes of {order}, got {name!r}; name one of them")
            if dims:
                note(order.index(name) if name in order else names.index(name), dims if isinstance(dims, Mapping) else {
                    i: one for i, one in enumerate(dims) if one is not None
                })  # fmt: skip
    return [Variable(word, tuple(places)) for word, places in found.items()]


def _message(
    onnx: Any, call: _Call, names: list[str], base: Trace, others: dict[Variable, Trace], nodes: list[Node],
    constants: dict[str, np.ndarray], given: list[str], opset: int, export_params: bool,
) -> Any:  # fmt: skip
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    made = [helper.make_node(one.kind, one.inputs, one.outputs, **one.attributes) for one in nodes]
    results = []
    for i, (name, array) in enumerate(base.results):
        final = given[i] if i < len(given) else f"output_{i}" if len(base.results) > 1 else "output"
        made.append(helper.make_node("Identity", [name], [final]))
        shape: list[Any] = list(array.shape)
        for one, trace in others.items():
            for dim, size in enumerate(trace.results[i][1].shape):
                if size != array.shape[dim]:
                    same = size == one.other(call.inputs) and array.shape[dim] == one.size(call.inputs)
                    shape[dim] = one.word if same else f"{final}_dim_{dim}"
        results.append(helper.make_tensor_value_info(final, number_of(array.dtype), shape))
    inputs = []
    for i, (name, array) in enumerate(zip(names, call.inputs, strict=True)):
        shape = list(array.shape)
        for one in others:
            for place, dim in one.places:
                if place == i:
                    shape[dim] = one.word
        inputs.append(helper.make_tensor_value_info(name, number_of(array.dtype), shape))
    parameters = {name for name, _ in [*call.model.named_parameters(), *call.model.named_buffers()]}
    arrays = []
    for name, array in constants.items():
        if not export_params and name in parameters:
            inputs.append(helper.make_tensor_value_info(name, number_of(array.dtype), array.shape))
        else:
            arrays.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
    graph = helper.make_graph(made, type(call.model).__name__, inputs, results, arrays)
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="tensorcore", producer_version=__version__
    )
    proto.ir_version = min(proto.ir_version, 10)  # runtimes of the last years read it
    onnx.checker.check_model(proto)
    return proto


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise UsageError(
            f"onnx.export: expected the package onnx, which writes the file, got: {error}; install tensorcore[onnx] or onnx"
        ) from error
    return onnx


def _tensors(value: Any) -> Any:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)


def _swapped(value: Any, by: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return by[id(value)]
    if isinstance(value, dict):
        return {key: _swapped(one, by) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        made = [_swapped(one, by) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value
