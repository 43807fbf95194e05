"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

import io
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
