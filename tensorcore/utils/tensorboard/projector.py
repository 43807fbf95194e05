"""Points for TensorBoard's projector: tables of values and labels in files beside the events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorcore.errors import ArgumentError
from tensorcore.utils.tensorboard.protos import proto
from tensorcore.utils.tensorboard.summaries import as_array, picture

__all__ = ["write_embedding"]


def write_embedding(
    folder: str, mat: Any, metadata: Sequence[Any] | None, label_img: Any, step: int | None, tag: str, header: Any
) -> None:
    """Write the points with their labels and pictures, and tell the projector of them."""
    points = as_array(mat, "add_embedding")
    if points.ndim != 2:
        raise ArgumentError(f"add_embedding: mat should be 2D, got shape {list(points.shape)}; flatten the features")
    if metadata is not None and len(metadata) != len(points):
        raise ArgumentError(
            f"add_embedding: #labels should equal with #data points, got {len(metadata)} of {len(points)}; pass as many"
        )
    place = f"{0 if step is None else int(step):05d}"
    below = os.path.join(place, tag.replace("/", "_"))
    os.makedirs(os.path.join(folder, below), exist_ok=True)
    _write(os.path.join(folder, below, "tensors.tsv"), ["\t".join(map(str, row)) for row in points.tolist()])
    config = proto("plugins.projector.projector_config_pb2")
    info = config.EmbeddingInfo(tensor_name=f"{tag}:{place}", tensor_path=os.path.join(below, "tensors.tsv"))
    if metadata is not None:
        rows = [str(one) if header is None else "\t".join(map(str, one)) for one in metadata]
        rows = rows if header is None else ["\t".join(map(str, header)), *rows]
        _write(os.path.join(folder, below, "metadata.tsv"), rows)
        info.metadata_path = os.path.join(below, "metadata.tsv")
    if label_img is not None:
        pixels = as_array(label_img, "add_embedding")
        if pixels.ndim != 4 or len(pixels) != len(points):
            raise ArgumentError(
                f"add_embedding: expected a picture (C, H, W) for each of {len(points)} points, got {list(pixels.shape)}; "
                f"#images should equal with #data points"
            )
        _, _, height, width = pixels.shape
        side = int(np.ceil(np.sqrt(len(pixels))))
        filled = np.zeros((side * side, *pixels.shape[1:]), pixels.dtype)
        filled[: len(pixels)] = pixels
        with open(os.path.join(folder, below, "sprite.png"), "wb") as file:
            file.write(picture(filled, "NCHW", "add_embedding", across=side)[1])
        info.sprite.image_path = os.path.join(below, "sprite.png")
        info.sprite.single_image_dim.extend([width, height])
    path = os.path.join(folder, "projector_config.pbtxt")
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"embeddings {{\n{info}}}\n")


def _write(path: str, lines: Sequence[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines([f"{line}\n" for line in lines])
