"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.utils.tensorboard import SummaryWriter


def test_a_missing_package_is_said(tmp_path, monkeypatch) -> None:
    """The error says what to install, and no directory is made."""
    for name in [one for one in sys.modules if one.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(UsageError, match=r"tensorcore\[tools\]"):
        SummaryWriter(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.fixture
def read(tmp_path):
    """The events of a directory below ``run``, as TensorBoard reads them."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def reader(below=""):
        return EventAccumulator(str(tmp_path / "run" / below), size_guidance={"tensors": 0, "images": 0}).Reload()

    return reader


@pytest.fixture
def writer(tmp_path):
    """A writer into ``run``."""
    pytest.importorskip("tensorboard")
    with SummaryWriter(tmp_path / "run", flush_secs=1) as made:
        yield made


def test_scalars(writer, read) -> None:
    """Tensors and numbers with their steps, in single and double precision; several in runs of their own."""
    for step in range(3):
        writer.add_scalar("loss", tc.tensor(0.5) * step, step)
        writer.add_scalar("exact", 1 / 3, tc.tensor(step), new_style=True, double_precision=True)
    writer.add_scalars("both", {"a": 1, "b": 2.0}, 7)
    writer.close()
    assert [(one.step, one.value) for one in read().Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    exact = read().Tensors("exact")[2]
    assert (exact.step, np.frombuffer(exact.tensor_proto.tensor_content)[0]) == (2, 1 / 3)
    assert read("both_b").Scalars("both")[0].value == 2.0


def test_histogram_counts_every_value(writer, read) -> None:
    """Limits and counts, the extremes and sums, whatever the bins; none is empty at the ends."""
    values = tc.tensor([-1.0, 0.0, 0.5, 0.5, 2.0])
    writer.add_histogram("tf", values, 1)
    writer.add_histogram("auto", values, 1, bins="auto")
    writer.add_histogram("few", values, 1, bins=100, max_bins=10)
    writer.add_histogram_raw("raw", 0, 1, 2, 1, 1, [0.5, 1.0], [1, 1], 1)
    writer.close()
    for tag in ("tf", "auto", "few"):
        found = read().Histograms(tag)[0].histogram_value
        assert (found.min, found.max, found.num, found.sum, found.sum_squares) == (-1.0, 2.0, 5, 2.0, 5.5)
        assert sum(found.bucket) == 5
        assert len(found.bucket) == len(found.bucket_limit)
        assert found.bucket[-1] > 0
    assert len(read().Histograms("few")[0].histogram_value.bucket) <= 11
    assert read().Histograms("raw")[0].histogram_value.bucket == [1, 1]


@pytest.mark.parametrize(
    "dataformats, shape", [("CHW", (3, 2, 4)), ("HWC", (2, 4, 3)), ("HW", (2, 4)), ("CHW", (1, 2, 4))]
)
def test_image_is_what_was_given(writer, read, dataformats, shape) -> None:
    """Numbers from 0 to 1 become bytes; the PNG is read by Pillow."""
    image = pytest.importorskip("PIL.Image")
    x = tc.linspace(0, 1, int(np.prod(shape))).reshape(shape)
    writer.add_image("picture", x, 3, dataformats=dataformats)
    writer.close()
    found = read().Images("picture")[0]
    pixels = np.asarray(image.open(io.BytesIO(found.encoded_image_string)))
    expected = (x.numpy() * 255).astype(np.uint8)
    expected = expected.transpose(1, 2, 0) if dataformats == "CHW" else expected
    assert (found.step, found.height, found.width) == (3, 2, 4)
    assert np.array_equal(pixels, expected[..., 0] if expected.shape[-1] == 1 else expected)


def test_images_lie_in_a_grid(writer, read) -> None:
    """Nine pictures: eight in the first row, one in the second."""
    writer.add_images("grid", tc.zeros(9, 1, 5, 6, dtype=tc.uint8))
    writer.close()
    found = read().Images("grid")[0]
    assert (found.height, found.width) == (10, 48)


def test_figure_text_sound_and_curve(writer, read) -> None:
    """A figure as a picture, a text, a sound, and precision over recall."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(1, 1), dpi=50)
    writer.add_figure("figure", figure)
    writer.add_text("note", "**bold**", 2)
    writer.add_audio("sound", tc.zeros(1, 100), sample_rate=8000)
    writer.add_pr_curve("curve", tc.tensor([1, 0, 1, 0]), tc.tensor([0.9, 0.2, 0.6, 0.4]), num_thresholds=5)
    writer.close()
    found = read()
    assert not pyplot.fignum_exists(figure.number)
    assert found.Images("figure")[0].width == 50
    assert found.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"**bold**"]
    assert found.Audio("sound")[0].encoded_audio_string[:4] == b"RIFF"
    curve = found.Tensors("curve")[0].tensor_proto
    table = np.frombuffer(curve.tensor_content, np.float32).reshape(6, 5)
    assert table[0].tolist() == [2, 2, 2, 1, 0]
    assert table[4, 0] == 0.5


def test_graph_has_parameters_and_ops(writer, read) -> None:
    """Parameters under their paths, ops with what they take."""
    writer.add_graph(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), tc.ones(1, 2))
    writer.close()
    nodes = {one.name: one for one in read().Graph().node}
    assert {"Sequential/0/weight", "Sequential/0/bias"} <= set(nodes)
    relu = next(one for one in nodes.values() if one.op == "ReluBackward0")
    assert nodes[relu.input[0]].op == "AddmmBackward0"


def test_hparams_get_a_run(writer, read) -> None:
    """Values of all kinds, the domain of one, and the metrics as scalars."""
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    writer.add_hparams(
        {"lr": 0.5, "kind": "adam", "bias": True}, {"accuracy": 0.9}, {"kind": ["adam", "sgd"]}, "first", 4
    )
    found = read("first")
    assert found.Scalars("accuracy")[0].step == 4
    content = found.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    hparams = HParamsPluginData.FromString(content).session_start_info.hparams
    assert (hparams["lr"].number_value, hparams["kind"].string_value, hparams["bias"].bool_value) == (0.5, "adam", True)


def test_embedding_files(writer, tmp_path) -> None:
    """Points, labels and pictures in files that the configuration names."""
    writer.add_embedding(tc.eye(3), ["a", "b", "c"], tc.zeros(3, 1, 2, 2), 5, "words")
    folder = tmp_path / "run" / "00005" / "words"
    assert (folder / "tensors.tsv").read_text().splitlines()[0] == "1.0\t0.0\t0.0"
    assert (folder / "metadata.tsv").read_text() == "a\nb\nc\n"
    assert 'tensor_name: "words:00005"' in (tmp_path / "run" / "projector_config.pbtxt").read_text()


def test_a_run_that_goes_on_purges(tmp_path, read) -> None:
    """Events from ``purge_step`` on are forgotten."""
    with SummaryWriter(tmp_path / "run") as first:
        for step in range(4):
            first.add_scalar("x", step, step)
    with SummaryWriter(tmp_path / "run", purge_step=2, filename_suffix=".second") as second:
        second.add_scalar("x", 20, 2)
    assert [one.value for one in read().Scalars("x")] == [0, 1, 20]


@pytest.mark.parametrize(
    "error, call",
    [
        (ArgumentError, lambda w: w.add_scalar("x", tc.ones(2))),
        (ArgumentTypeError, lambda w: w.add_scalar("x", "three")),
        (ArgumentError, lambda w: w.add_histogram("x", tc.ones(0))),
        (ArgumentError, lambda w: w.add_histogram("x", tc.tensor([1.0, float("nan")]))),
        (ArgumentError, lambda w: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1.0], [1, 2])),
        (ArgumentError, lambda w: w.add_image("x", tc.ones(2, 2))),
        (ArgumentError, lambda w: w.add_image("x", tc.ones(2, 2, 2))),
        (ArgumentError, lambda w: w.add_embedding(tc.ones(3))),
        (ArgumentError, lambda w: w.add_embedding(tc.ones(3, 2), ["a"])),
        (ArgumentTypeError, lambda w: w.add_hparams(3, {})),
        (UsageError, lambda w: w.add_graph(nn.ReLU(), tc.ones(1))),
    ],
)
def test_wrong_values_are_refused(writer, error, call) -> None:
    """Shapes and types that nothing can be shown of."""
    with pytest.raises(error):
        call(writer)


def test_film(writer, read) -> None:
    """Three films become one GIF of two columns and a row more, with as many frames, shown so long."""
    pil = pytest.importorskip("PIL.Image")
    frames = tc.linspace(0, 1, 4).reshape(1, 4, 1, 1, 1).expand(3, 4, 3, 6, 5)
    writer.add_video("film", frames, 2, fps=10)
    writer.close()
    found = read().Images("film")[0]
    shown = pil.open(io.BytesIO(found.encoded_image_string))
    assert (found.step, found.height, found.width) == (2, 6, 15)
    assert (shown.n_frames, shown.info["duration"]) == (4, 100)
    shown.seek(3)
    assert shown.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def test_boxes_on_a_picture(writer, read) -> None:
    """A frame is red, twice as large with the picture, and what is inside it stays."""
    pil = pytest.importorskip("PIL.Image")
    writer.add_image_with_boxes("boxes", tc.zeros(3, 20, 30), tc.tensor([[2.0, 4.0, 25.0, 15.0]]), 1, rescale=2)
    writer.close()
    shown = pil.open(io.BytesIO(read().Images("boxes")[0].encoded_image_string))
    assert shown.size == (60, 40)
    assert [shown.getpixel(one) for one in ((4, 20), (30, 20), (50, 30))] == [(255, 0, 0), (0, 0, 0), (255, 0, 0)]


def test_scenes_are_pytorchs(tmp_path, torch) -> None:
    """A mesh, the layout of diagrams and a counted curve: the same values and the same notes for TensorBoard's plugins."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray
    from torch.utils import tensorboard as theirs

    def written(library, make):
        points = library.arange(12.0).reshape(1, 4, 3)
        folder = tmp_path / library.__name__
        with make(folder) as one:
            one.add_mesh("mesh", points, (points * 20).int(), library.tensor([[[0, 1, 2]]]), {"camera": {"fov": 75}}, 3)
            one.add_custom_scalars({"group": {"two": ["Multiline", ["a", "b"]], "band": ["Margin", ["a", "b", "c"]]}})
            one.add_pr_curve_raw("curve", *[np.arange(5) / 4 + i for i in range(6)], 1, num_thresholds=5)
        events = EventAccumulator(str(folder)).Reload()
        found = {}
        for tag in events.Tags()["tensors"]:
            event = events.Tensors(tag)[0]
            found[tag] = make_ndarray(event.tensor_proto).tolist(), event.step, events.SummaryMetadata(tag).plugin_data
        return found

    found = written(tc, SummaryWriter), written(torch, theirs.SummaryWriter)
    assert sorted(found[0]) == ["curve", "custom_scalars__config__", "mesh_COLOR", "mesh_FACE", "mesh_VERTEX"]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda writer: writer.add_video("v", tc.zeros(2, 3, 4, 4)), "expected (count, frames, channels, height, width)"),
        (lambda writer: writer.add_mesh("m", tc.zeros(4, 3)), r"(count, points, 3), got [4, 3]"),
        (lambda writer: writer.add_custom_scalars_marginchart(["a", "b"]), "Expected 3 tags"),
        (lambda writer: writer.add_custom_scalars({"c": {"t": ["Pie", ["a"]]}}), "'Multiline' or 'Margin', got 'Pie'"),
        (lambda writer: writer.add_pr_curve_raw("c", *[np.ones(4)] * 6, num_thresholds=5), "num_thresholds=5 numbers of each, got 4"),
        (lambda writer: writer.add_image_with_boxes("b", tc.zeros(3, 4, 4), tc.zeros(1, 3)), "boxes of (count, 4)"),
        (lambda writer: writer.add_image_with_boxes("b", tc.zeros(3, 4, 4), tc.zeros(2, 4), labels="one"), "a label for each of 2 boxes"),
    ],
)  # fmt: skip
def test_scenes_that_cannot_be_shown(writer, call, message) -> None:
    """Shapes, kinds and counts that no plugin would show are refused when they are given."""
    with pytest.raises(ValueError, match=re.escape(message)):
        call(writer)


def test_an_onnx_graph_is_pytorchs(tmp_path, torch) -> None:
    """The graph of an ONNX file has PyTorch's nodes, inputs, shapes and attributes."""
    onnx = pytest.importorskip("onnx")
    from torch.utils.tensorboard import _onnx_graph as theirs

    from tensorcore.utils.tensorboard.graph import onnx_graph

    file = tmp_path / "model.onnx"
    value = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [2, 3]), ("y", [3, 2]))]
    node = onnx.helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", value[:1], value[1:])), file)
    assert onnx_graph(file) == theirs.load_onnx_graph(file)
