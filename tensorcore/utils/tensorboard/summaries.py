"""Values as the messages that TensorBoard shows: numbers, histograms, pictures, sound, text, curves."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.tensor import Tensor
from tensorcore.utils.tensorboard.protos import proto

__all__ = [
    "as_array", "audio", "curve", "experiment", "histogram", "histogram_raw", "image", "picture", "scalar",
    "session_end", "session_start", "tensor", "text", "written",
]  # fmt: skip


def as_array(value: Any, what: str) -> np.ndarray:
    """The values of a tensor, an array or a number on the host."""
    if isinstance(value, Tensor):
        return np.asarray(value.detach().cpu().float() if value.dtype.name == "bfloat16" else value.detach().cpu())  # type: ignore[attr-defined]
    made = np.asarray(value)
    if made.dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"{what}: expected numbers, got {type(value).__name__}; pass a tensor, an array or a number"
        )
    return made


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number."""
    array = as_array(value, "add_scalar")
    if array.size != 1:
        raise ArgumentError(f"add_scalar: expected one number, got shape {list(array.shape)}; scalar should be 0D")
    if not new_style and not double_precision:
        return _summary(tag, simple_value=float(array.reshape(-1)[0]))
    return tensor(tag, array.reshape(()).astype(np.float64 if double_precision else np.float32), plugin="scalars")


def tensor(tag: str, array: np.ndarray, *, plugin: str = "", content: bytes = b"") -> Any:
    """An array of numbers, for the plugin of that name."""
    types = proto("compat.proto.types_pb2")
    messages = proto("compat.proto.tensor_pb2")
    kinds = {
        "f4": types.DT_FLOAT,
        "f8": types.DT_DOUBLE,
        "i4": types.DT_INT32,
        "i8": types.DT_INT64,
        "u1": types.DT_UINT8,
    }
    kind = kinds.get(array.dtype.str[1:])
    if kind is None:
        array, kind = array.astype(np.float32), types.DT_FLOAT
    made = messages.TensorProto(dtype=kind, tensor_shape=_shape(array.shape), tensor_content=array.tobytes())
    return _summary(tag, plugin=plugin, content=content, tensor=made)


def text(tag: str, words: str) -> Any:
    """A text, which TensorBoard shows as Markdown."""
    content = proto("plugins.text.plugin_data_pb2").TextPluginData(version=0).SerializeToString()
    return written(f"{tag}/text_summary", words.encode(), (1,), plugin="text", content=content)


def written(tag: str, data: bytes, shape: Sequence[int] = (), *, plugin: str, content: bytes = b"") -> Any:
    """Bytes, for the plugin of that name."""
    types = proto("compat.proto.types_pb2")
    messages = proto("compat.proto.tensor_pb2")
    made = messages.TensorProto(dtype=types.DT_STRING, string_val=[data], tensor_shape=_shape(shape))
    return _summary(tag, plugin=plugin, content=content, tensor=made)


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How many values lie in each bin.

    Args:
        bins: ``tensorflow`` (each a tenth wider than the one before, around 0), or what ``numpy.histogram`` takes.
        max_bins: neighbours are put together until there are no more than so many.
    """
    array = as_array(values, "add_histogram").astype(np.float64).reshape(-1)
    if not array.size:
        raise ArgumentError("add_histogram: The input has no element, got shape [0]; pass a value at least")
    if not np.isfinite(array).all():
        raise ArgumentError("add_histogram: expected finite values, got inf or nan; leave them out")
    if isinstance(bins, str) and bins == "tensorflow":
        bins = _growing_bins()
    counts, limits = np.histogram(array, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if filled.size else (0, 1)
    # An empty bin before the first one says where that begins.
    counts, limits = np.append([0], counts[first:last]), limits[first : last + 1]
    return histogram_raw(
        tag, array.min(), array.max(), array.size, array.sum(), array.dot(array), limits.tolist(), counts.tolist()
    )


def histogram_raw(tag: str, low: Any, high: Any, count: Any, total: Any, squares: Any, limits: Any, counts: Any) -> Any:
    """A histogram that was counted elsewhere: the upper limit and the count of each bin."""
    if len(limits) != len(counts):
        raise ArgumentError(
            f"add_histogram_raw: len(bucket_limits) != len(bucket_counts), got {len(limits)} and {len(counts)}; see the document"
        )
    made = proto("compat.proto.histogram_pb2").HistogramProto(
        min=low, max=high, num=count, sum=total, sum_squares=squares, bucket_limit=limits, bucket=counts
    )
    return _summary(tag, histo=made)


def image(tag: str, values: Any, dataformats: str, what: str) -> Any:
    """A picture: bytes, or numbers from 0 to 1; several of them side by side in a grid."""
    (height, width, channels), data = picture(values, dataformats, what)
    made = proto("compat.proto.summary_pb2").Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=data
    )
    return _summary(tag, image=made)


def picture(values: Any, dataformats: str, what: str, across: int = 8) -> tuple[tuple[int, ...], bytes]:
    """Height, width and channels of a picture, and its PNG file; of several at most ``across`` lie side by side."""
    array = as_array(values, what)
    letters = dataformats.upper()
    named = len(set(letters)) == len(letters) == array.ndim and {"H", "W"} <= set(letters) <= set("NCHW")
    if not named:
        raise ArgumentError(
            f"{what}: expected dataformats that name the {array.ndim} dims of shape {list(array.shape)} by N, C, H, W, got "
            f"{dataformats!r}; size of input tensor and input format are different"
        )
    array = array.transpose([letters.index(one) for one in "NHWC" if one in letters])
    if "C" not in letters:
        array = array[..., None]
    if "N" in letters:
        array = _grid(array, across)
    if array.dtype != np.uint8:
        array = (np.clip(array.astype(np.float32), 0, 1) * 255).astype(np.uint8)
    if array.shape[2] not in (1, 3, 4):
        raise ArgumentError(f"{what}: expected 1, 3 or 4 channels, got {array.shape[2]}; choose some of them")
    return array.shape, _png(array)


def audio(tag: str, values: Any, sample_rate: int) -> Any:
    """Sound of one channel, numbers from -1 to 1."""
    array = as_array(values, "add_audio").reshape(-1).astype(np.float32)
    samples = (np.clip(array, -1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes(samples.tobytes())
    made = proto("compat.proto.summary_pb2").Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return _summary(tag, audio=made)


def curve(tag: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> Any:
    """Precision over recall at so many thresholds between 0 and 1."""
    truth, scores = as_array(labels, "add_pr_curve").reshape(-1), as_array(predictions, "add_pr_curve").reshape(-1)
    if truth.shape != scores.shape:
        raise ArgumentError(
            f"add_pr_curve: expected a prediction for each label, got {len(scores)} of {len(truth)}; pass as many"
        )
    weight = 1.0 if weights is None else as_array(weights, "add_pr_curve").reshape(-1)
    count = min(num_thresholds, 127)
    places = np.floor(scores * (count - 1)).astype(np.int64)
    positive = truth.astype(np.float64) * weight
    hits, _ = np.histogram(places, bins=count, range=(0, count - 1), weights=positive)
    misses, _ = np.histogram(places, bins=count, range=(0, count - 1), weights=(1.0 - truth) * weight)
    true_positives, false_positives = np.cumsum(hits[::-1])[::-1], np.cumsum(misses[::-1])[::-1]
    true_negatives, false_negatives = false_positives[0] - false_positives, true_positives[0] - true_positives
    tiny = 1e-7
    precision = true_positives / np.maximum(tiny, true_positives + false_positives)
    recall = true_positives / np.maximum(tiny, true_positives + false_negatives)
    data = np.stack((true_positives, false_positives, true_negatives, false_negatives, precision, recall))
    content = proto("plugins.pr_curve.plugin_data_pb2").PrCurvePluginData(version=0, num_thresholds=count)
    return tensor(tag, data.astype(np.float32), plugin="pr_curves", content=content.SerializeToString())


# Hyperparameters


def experiment(hparams: Mapping[str, Any], metrics: Sequence[str], discrete: Mapping[str, Sequence[Any]]) -> Any:
    """Which hyperparameters and metrics there are."""
    api = proto("plugins.hparams.api_pb2")
    infos = []
    for name, value in hparams.items():
        kind = {bool: api.DATA_TYPE_BOOL, str: api.DATA_TYPE_STRING}.get(type(value), api.DATA_TYPE_FLOAT64)
        info = api.HParamInfo(name=name, type=kind)
        for one in discrete.get(name, ()):
            _set(info.domain_discrete.values.add(), one)
        infos.append(info)
    shown = [api.MetricInfo(name=api.MetricName(tag=one)) for one in metrics]
    return _hparams("_hparams_/experiment", experiment=api.Experiment(hparam_infos=infos, metric_infos=shown))


def session_start(hparams: Mapping[str, Any]) -> Any:
    """The values of this run."""
    made = proto("plugins.hparams.plugin_data_pb2").SessionStartInfo()
    for name, value in hparams.items():
        _set(made.hparams[name], value)
    return _hparams("_hparams_/session_start_info", session_start_info=made)


def session_end() -> Any:
    """That the run has ended well."""
    api, data = proto("plugins.hparams.api_pb2"), proto("plugins.hparams.plugin_data_pb2")
    made = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    return _hparams("_hparams_/session_end_info", session_end_info=made)


def _set(place: Any, value: Any) -> None:
    if isinstance(value, bool):
        place.bool_value = value
    elif isinstance(value, str):
        place.string_value = value
    else:
        place.number_value = float(as_array(value, "add_hparams").reshape(-1)[0])


def _hparams(tag: str, **content: Any) -> Any:
    data = proto("plugins.hparams.plugin_data_pb2").HParamsPluginData(version=0, **content)
    return _summary(tag, plugin="hparams", content=data.SerializeToString())


# The messages


def _summary(tag: str, *, plugin: str = "", content: bytes = b"", **value: Any) -> Any:
    messages = proto("compat.proto.summary_pb2")
    if plugin:
        data = messages.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        value["metadata"] = messages.SummaryMetadata(plugin_data=data)
    return messages.Summary(value=[messages.Summary.Value(tag=tag, **value)])


def _shape(shape: Sequence[int]) -> Any:
    messages = proto("compat.proto.tensor_shape_pb2")
    return messages.TensorShapeProto(dim=[messages.TensorShapeProto.Dim(size=n) for n in shape])


def _growing_bins() -> np.ndarray:
    count = 775  # from 1e-12 to 1e20 in steps of a tenth
    positive = 1e-12 * 1.1 ** np.arange(count)
    return np.concatenate([-positive[::-1], [0.0], positive])


def _grid(pictures: np.ndarray, across: int) -> np.ndarray:
    """Pictures side by side, so many in a row, in black where there is none."""
    count, height, width, channels = pictures.shape
    across = min(count, across) or 1
    down = -(-count // across)
    made = np.zeros((down * height, across * width, channels), pictures.dtype)
    for i, one in enumerate(pictures):
        row, column = divmod(i, across)
        made[row * height : (row + 1) * height, column * width : (column + 1) * width] = one
    return made


def _png(pixels: np.ndarray) -> bytes:
    """Bytes of shape (height, width, channels) as a PNG file."""
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * channels)], 1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )
