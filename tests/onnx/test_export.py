"""Exported models, run by onnxruntime on the same inputs and on inputs of other sizes."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tests.onnx.models import MODELS


def test_a_missing_package_is_said(monkeypatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"tensorcore\[onnx\]"):
        tc.onnx.export(nn.ReLU(), tc.ones(1))


@pytest.fixture
def onnx():
    """The package."""
    return pytest.importorskip("onnx")


def flat(value) -> list[tc.Tensor]:
    """The tensors in a result."""
    if isinstance(value, tc.Tensor):
        return [value]
    return [one for each in value if each is not None for one in flat(each)]


@pytest.mark.parametrize("name, model, inputs, others, axes", MODELS, ids=[one[0] for one in MODELS])
def test_a_file_computes_what_the_model_does(onnx, name, model, inputs, others, axes) -> None:
    """With the example inputs, and where sizes may vary with others, in values, shapes and dtypes."""
    pytest.importorskip("onnxruntime")
    model.eval()
    program = tc.onnx.export(model, inputs, input_names=["x"], dynamic_axes=axes)
    for given in (inputs, others or inputs):
        with tc.no_grad():
            expected = flat(model(*given))
        for mine, its in zip(expected, program(*given), strict=True):
            assert (tuple(mine.shape), mine.dtype) == (tuple(its.shape), its.dtype)
            assert tc.allclose(mine.double(), its.double(), 1e-4, 1e-5, equal_nan=True)


def test_names_and_sizes_stand_in_the_file(onnx, tmp_path) -> None:
    """Inputs and results by the names given, sizes that vary by theirs, parameters by their paths."""
    model = nn.Sequential(nn.Linear(3, 2))
    path = tmp_path / "model.onnx"
    tc.onnx.export(
        model, (tc.ones(4, 3),), path, input_names=["rows"], output_names=["scores"],
        dynamic_axes={"rows": {0: "count"}, "scores": {0: "count"}}, opset_version=20,
    )  # fmt: skip
    proto = onnx.load(path)
    (into,), (out,) = proto.graph.input, proto.graph.output
    dims = [[one.dim_param or one.dim_value for one in each.type.tensor_type.shape.dim] for each in (into, out)]
    assert (into.name, out.name, dims) == ("rows", "scores", [["count", 3], ["count", 2]])
    assert {one.name for one in proto.graph.initializer} == {"0.weight", "0.bias"}
    assert proto.opset_import[0].version == 20


def test_dynamic_shapes_go_by_argument(onnx) -> None:
    """A dict by the names of ``forward``, whose dims are named by words."""

    class Two(nn.Module):
        def forward(self, left, right):
            return left @ right

    program = tc.onnx.export(
        Two(), (tc.ones(2, 3), tc.ones(3, 4)), dynamic_shapes={"left": {0: "rows"}, "right": {1: "columns"}}
    )
    found = [[one.dim_param or one.dim_value for one in each.type.tensor_type.shape.dim]
             for each in (*program.model_proto.graph.input, *program.model_proto.graph.output)]  # fmt: skip
    assert found == [["rows", 3], [3, "columns"], ["rows", "columns"]]


def test_the_model_stays_as_it_is(onnx) -> None:
    """Training mode, buffers and kernel tables are those from before, after an error too."""
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    table = tc.device("cpu").kernels
    tc.onnx.export(model, tc.ones(2, 3))
    assert model.training
    assert model[0].num_batches_tracked.item() == 0

    class Diagonal(nn.Module):
        def forward(self, x):
            return x.diagonal()

    with pytest.raises(UsageError, match="got 'diagonal'"):
        tc.onnx.export(Diagonal(), tc.ones(2, 2))
    assert tc.device("cpu").kernels is table
    assert "to_host" not in vars(tc.device("cpu"))


def test_a_value_that_is_read_is_warned_of(onnx) -> None:
    """The file has it as a constant."""

    class Reads(nn.Module):
        def forward(self, x):
            return x + x.sum().tolist()

    with pytest.warns(UserWarning, match="as a constant"):
        tc.onnx.export(Reads(), tc.ones(2))


def test_a_write_into_a_part_is_refused(onnx) -> None:
    """A file has values and no memory; a write into a whole tensor is none."""

    class Writes(nn.Module):
        def forward(self, x):
            y = x + 1
            y[:, 0] = 2.0
            return y

    with pytest.raises(UsageError, match="view of another"):
        tc.onnx.export(Writes(), tc.ones(2, 2))


def test_what_cannot_vary_is_said(onnx) -> None:
    """Other ops for another size, and options that change with it."""

    class Branches(nn.Module):
        def forward(self, x):
            return x.exp() if x.shape[0] > 4 else x

    with pytest.raises(UsageError, match="the same ops for every size of 'n'"):
        tc.onnx.export(Branches(), tc.ones(2), input_names=["x"], dynamic_axes={"x": {0: "n"}})


def test_files_and_keywords(onnx, tmp_path) -> None:
    """A file object is written to; a dict at the end of ``args`` has keywords; parameters may become inputs."""
    buffer = io.BytesIO()
    tc.onnx.export(nn.Linear(2, 2), ({"input": tc.ones(1, 2)},), buffer)
    assert onnx.load_from_string(buffer.getvalue()).graph.input[0].name == "input"
    bare = tc.onnx.export(nn.Linear(2, 2), tc.ones(1, 2), export_params=False).model_proto.graph
    assert [one.name for one in bare.input] == ["input", "weight", "bias"]
    tc.onnx.export(nn.Linear(64, 64), tc.ones(1, 64), tmp_path / "big.onnx", external_data=True)
    assert (tmp_path / "big.onnx.data").stat().st_size >= 64 * 64 * 4


@pytest.mark.parametrize(
    "error, call",
    [
        (ArgumentTypeError, lambda: tc.onnx.export(tc.relu, tc.ones(1))),
        (ArgumentError, lambda: tc.onnx.export(nn.ReLU(), tc.ones(1), opset_version=6)),
        (ArgumentError, lambda: tc.onnx.export(nn.ReLU(), ())),
        (ArgumentError, lambda: tc.onnx.export(nn.ReLU(), tc.ones(1), input_names=["a", "b"])),
        (ArgumentError, lambda: tc.onnx.export(nn.ReLU(), tc.ones(1), dynamic_axes={"input": [3]})),
        (ArgumentError, lambda: tc.onnx.export(nn.ReLU(), tc.ones(1), dynamic_shapes={"other": {0: "n"}})),
        (UsageError, lambda: tc.onnx.export(nn.ReLU(), tc.ones(1, dtype=tc.bfloat16))),
    ],
)
def test_wrong_arguments_are_refused(onnx, error, call) -> None:
    """No module, an opset that is not written, names and dims that are not there."""
    with pytest.raises(error):
        call()


def test_older_operators(onnx):
    """A lower opset_version is converted to; where an operator has no such form the file has 18, with a warning."""
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    seen = []
    model.register_forward_hook(lambda *_: seen.append(tc.onnx.is_in_onnx_export()))
    x = tc.ones(1, 3)
    older = tc.onnx.export(model, x, opset_version=15, training=tc.onnx.TrainingMode.EVAL,
                           operator_export_type=tc.onnx.OperatorExportTypes.ONNX).model_proto  # fmt: skip
    assert older.opset_import[0].version == 15
    assert seen == [True]
    assert not tc.onnx.is_in_onnx_export()
    session = pytest.importorskip("onnxruntime").InferenceSession(older.SerializeToString())
    np.testing.assert_allclose(
        session.run(None, {older.graph.input[0].name: x.numpy()})[0], model(x).detach().numpy(), rtol=1e-6
    )
    with pytest.warns(UserWarning, match="opset_version=7"):
        kept = tc.onnx.export(nn.LayerNorm(3), x, opset_version=7).model_proto
    assert kept.opset_import[0].version == 18
