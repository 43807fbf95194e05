"""What TensorBoard shows less often: films, boxes on pictures, meshes, the layout of several numbers, counted curves."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorcore.errors import ArgumentError, UsageError
from tensorcore.utils.tensorboard import summaries
from tensorcore.utils.tensorboard.protos import proto

__all__ = ["boxes", "counted_curve", "layout", "mesh", "video"]


def video(tag: str, values: Any, fps: float) -> Any:
    """Films (count, frames, channels, height, width) as a GIF, side by side in about as many rows as columns."""
    array = summaries.as_array(values, "add_video")
    if array.ndim != 5 or array.shape[2] not in (1, 3):
        raise ArgumentError(
            f"add_video: expected (count, frames, channels, height, width) with 1 or 3 channels, got {list(array.shape)}"
        )
    if array.dtype != np.uint8:
        array = (np.clip(array.astype(np.float32), 0, 1) * 255).astype(np.uint8)
    count, frames, channels, height, width = array.shape
    rows = 2 ** ((count.bit_length() - 1) // 2)
    columns = -(-count // rows)
    filled = np.zeros((rows * columns, *array.shape[1:]), np.uint8)
    filled[:count] = array
    grid = filled.reshape(rows, columns, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    pixels = grid.reshape(frames, rows * height, columns * width, channels)
    film = [_pillow("Image").fromarray(one[..., 0] if channels == 1 else one) for one in pixels]
    file = io.BytesIO()
    film[0].save(file, "GIF", save_all=True, append_images=film[1:], duration=round(1000 / fps), loop=0)
    return _image(tag, pixels.shape[1:], file.getvalue())


def boxes(tag: str, values: Any, places: Any, rescale: float, dataformats: str, labels: Sequence[str] | None) -> Any:
    """A picture with a red frame for each (left, top, right, bottom), and a label in its corner."""
    size, data = summaries.picture(values, dataformats, "add_image_with_boxes")
    frames = summaries.as_array(places, "add_image_with_boxes")
    if frames.ndim != 2 or frames.shape[1] != 4:
        raise ArgumentError(
            f"add_image_with_boxes: expected boxes of (count, 4), got {list(frames.shape)}; give left, top, right, bottom"
        )
    labels = [labels] if isinstance(labels, str) else labels
    if labels is not None and len(labels) != len(frames):
        raise ArgumentError(
            f"add_image_with_boxes: expected a label for each of {len(frames)} boxes, got {len(labels)}; pass as many"
        )
    shown = _pillow("Image").open(io.BytesIO(data)).convert("RGB")
    if rescale != 1:
        shown = shown.resize((round(size[1] * rescale), round(size[0] * rescale)))
    pen = _pillow("ImageDraw").Draw(shown)
    for i, frame in enumerate(frames.astype(np.float64) * rescale):
        pen.rectangle(frame.tolist(), outline=(255, 0, 0), width=2)
        if labels is not None:
            pen.text((frame[0] + 3, frame[1] + 2), labels[i], fill=(255, 0, 0))
    file = io.BytesIO()
    shown.save(file, "PNG")
    return _image(tag, (shown.height, shown.width, 3), file.getvalue())


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Mapping[str, Any] | None) -> Any:
    """Points in space (count, points, 3), their colours of the same shape, and triangles (count, faces, 3) of their numbers."""
    metadata = proto("plugins.mesh.metadata")
    kinds = proto("plugins.mesh.plugin_data_pb2").MeshPluginData
    given = [(vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR)]
    parts = [(summaries.as_array(one, "add_mesh").astype(np.float32), kind) for one, kind in given if one is not None]
    for array, _ in parts:
        if array.ndim != 3 or array.shape[2] != 3:
            raise ArgumentError(
                f"add_mesh: expected arrays of (count, points, 3), got {list(array.shape)}; unsqueeze(0) one"
            )
    components = metadata.get_components_bitmask([kind for _, kind in parts])
    text = json.dumps(config or {}, sort_keys=True)
    values = []
    for array, kind in parts:
        made = summaries.tensor(metadata.get_instance_name(tag, kind), array).value[0]
        about = metadata.create_summary_metadata(tag, None, kind, components, array.shape, None, json_config=text)
        made.metadata.CopyFrom(about)
        values.append(made)
    return proto("compat.proto.summary_pb2").Summary(value=values)


def layout(charts: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """Which numbers stand in one diagram: ``{category: {title: ["Multiline", tags]}}``, or ``["Margin", [value, low, high]]``."""
    messages = proto("plugins.custom_scalar.layout_pb2")
    categories = []
    for category, titles in charts.items():
        made = []
        for title, (kind, tags) in titles.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise ArgumentError(
                        f"add_custom_scalars: Expected 3 tags for a margin chart, got {len(tags)}: {tags}"
                    )
                series = messages.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(messages.Chart(title=title, margin=messages.MarginChartContent(series=[series])))
            elif kind == "Multiline":
                made.append(messages.Chart(title=title, multiline=messages.MultilineChartContent(tag=list(tags))))
            else:
                raise ArgumentError(f"add_custom_scalars: expected a chart 'Multiline' or 'Margin', got {kind!r}")
        categories.append(messages.Category(title=category, chart=made))
    return summaries.written(
        "custom_scalars__config__", messages.Layout(category=categories).SerializeToString(), plugin="custom_scalars"
    )


def counted_curve(tag: str, counts: Sequence[Any], num_thresholds: int) -> Any:
    """Precision over recall: true and false positives, true and false negatives, precision and recall at each threshold."""
    data = np.stack([summaries.as_array(one, "add_pr_curve_raw").reshape(-1) for one in counts]).astype(np.float32)
    count = min(num_thresholds, 127)
    if data.shape[1] != count:
        raise ArgumentError(
            f"add_pr_curve_raw: expected num_thresholds={count} numbers of each, got {data.shape[1]}; pass as many"
        )
    content = proto("plugins.pr_curve.plugin_data_pb2").PrCurvePluginData(version=0, num_thresholds=count)
    return summaries.tensor(tag, data, plugin="pr_curves", content=content.SerializeToString())


def _image(tag: str, shape: Sequence[int], data: bytes) -> Any:
    messages = proto("compat.proto.summary_pb2")
    made = messages.Summary.Image(height=shape[0], width=shape[1], colorspace=shape[2], encoded_image_string=data)
    return messages.Summary(value=[messages.Summary.Value(tag=tag, image=made)])


def _pillow(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"PIL.{name}")
    except ImportError as error:
        raise UsageError(f"add_video, add_image_with_boxes: expected Pillow, got {error}; pip install pillow") from None
