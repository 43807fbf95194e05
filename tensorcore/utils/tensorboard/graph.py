"""The graph of a model's call as TensorBoard's message: the tape of its result, with parameters under their names."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import UsageError
from tensorcore.tape.mode import enable_grad
from tensorcore.tensor import Tensor
from tensorcore.utils.drawing import tape_graph
from tensorcore.utils.tensorboard.protos import proto

__all__ = ["graph_of", "onnx_graph"]


def graph_of(model: Any, inputs: Any) -> Any:
    """The graph that a call of the model leaves on the tape.

    Args:
        inputs: what the model is called with: a tensor, or a tuple of arguments.
    """
    args = inputs if isinstance(inputs, (tuple, list)) else () if inputs is None else (inputs,)
    with enable_grad():
        results = list(_tensors(model(*args)))
    if not results:
        raise UsageError(
            "add_graph: expected a model whose result is on the tape, got none; let a parameter require grad"
        )
    found = tape_graph(results, model)
    messages, shapes = proto("compat.proto.graph_pb2"), proto("compat.proto.tensor_shape_pb2")
    nodes, attributes = proto("compat.proto.node_def_pb2"), proto("compat.proto.attr_value_pb2")
    names: list[str] = []
    for i, box in enumerate(found.boxes):
        if box.kind == "leaf":
            names.append(
                f"{type(model).__name__}/{box.title.replace('.', '/')}" if box.title != "leaf" else f"input_{i}"
            )
        else:
            names.append(f"{box.title}_{i}")
    made = []
    for i, box in enumerate(found.boxes):
        sizes = box.detail.partition("[")[2].partition("]")[0]
        shape = shapes.TensorShapeProto(
            dim=[shapes.TensorShapeProto.Dim(size=int(n)) for n in sizes.split(",") if n.strip()]
        )
        listed = attributes.AttrValue.ListValue(shape=[shape])
        made.append(
            nodes.NodeDef(
                name=names[i], op={"leaf": "Parameter", "result": "IO Node"}.get(box.kind, box.title),
                input=[names[source] for source, target in found.arrows if target == i],
                attr={"_output_shapes": attributes.AttrValue(list=listed)},
            )
        )  # fmt: skip
    return messages.GraphDef(node=made, versions=proto("compat.proto.versions_pb2").VersionDef(producer=22))


def onnx_graph(path: Any) -> Any:
    """The graph of an ONNX file: its inputs and outputs with their shapes, and its nodes by the first of their results."""
    import onnx

    graph = onnx.load(path).graph
    shapes, nodes = proto("compat.proto.tensor_shape_pb2"), proto("compat.proto.node_def_pb2")
    attribute = proto("compat.proto.attr_value_pb2").AttrValue
    made = []
    for one in (*graph.input, *graph.output):
        kind = one.type.tensor_type
        shape = shapes.TensorShapeProto(dim=[shapes.TensorShapeProto.Dim(size=dim.dim_value) for dim in kind.shape.dim])
        known = {"dtype": attribute(type=kind.elem_type), "shape": attribute(shape=shape)}
        made.append(nodes.NodeDef(name=one.name, op="Variable", attr=known))
    for one in graph.node:
        told = ", ".join([" = ".join([str(value) for _, value in field.ListFields()]) for field in one.attribute])
        known = {"parameters": attribute(s=told.encode())}
        made.append(nodes.NodeDef(name=one.output[0], op=one.op_type, input=one.input, attr=known))
    versions = proto("compat.proto.versions_pb2").VersionDef(producer=22)
    return proto("compat.proto.graph_pb2").GraphDef(node=made, versions=versions)


def _tensors(value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.node is not None:
            yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
