"""Calls to test resizing and sampling of images with; see ``samples/__init__.py`` for what the functions yield."""

from __future__ import annotations

from collections.abc import Iterator

from tensorcore.ops.samples import Call, Make

__all__ = ["affine_grid", "grid_sample", "interpolate"]


def interpolate(array: Make) -> Iterator[Call]:
    """All modes, up and down, by size and by factor."""
    yield (array(1, 2, 3, 4),), {"scale_factor": 2}
    yield (array(2, 2, 5),), {"size": 7, "mode": "nearest-exact"}
    yield (array(1, 2, 2, 3, 4),), {"scale_factor": (1.5, 2.0, 0.7)}
    yield (array(2, 2, 5),), {"scale_factor": 1.7, "mode": "linear", "recompute_scale_factor": True}
    yield (array(1, 2, 5, 4),), {"size": (3, 7), "mode": "bilinear"}
    yield (array(1, 2, 5, 4),), {"size": (3, 7), "mode": "bilinear", "align_corners": True}
    yield (array(1, 2, 3, 2, 4),), {"scale_factor": 1.5, "mode": "trilinear"}
    yield (array(1, 2, 5, 4),), {"size": (3, 7), "mode": "bicubic"}
    yield (array(1, 2, 3, 4),), {"scale_factor": 1.8, "mode": "bicubic", "align_corners": True}
    yield (array(1, 2, 5, 4),), {"size": (3, 7), "mode": "area"}
    for mode in ("bilinear", "bicubic", "lanczos"):
        yield (array(1, 2, 9, 4),), {"size": (4, 7), "mode": mode, "antialias": True}


def grid_sample(array: Make) -> Iterator[Call]:
    """All modes and paddings, places inside and far outside, two and three dims."""
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            yield (
                (array(2, 2, 3, 4), array(2, 3, 2, 2)),
                {"mode": mode, "padding_mode": padding, "align_corners": padding == "border"},
            )
    yield (array(1, 2, 3, 2, 4), array(1, 2, 3, 1, 3)), {"align_corners": False}
    yield (
        (array(1, 2, 3, 2, 4), array(1, 2, 3, 1, 3)),
        {"mode": "nearest", "padding_mode": "reflection", "align_corners": True},
    )


def affine_grid(array: Make) -> Iterator[Call]:
    """Two and three dims, with and without aligned corners."""
    yield (array(2, 2, 3), (2, 1, 3, 4)), {"align_corners": False}
    yield (array(2, 2, 3), [2, 1, 3, 1]), {"align_corners": True}
    yield (array(1, 3, 4), (1, 2, 2, 3, 2)), {"align_corners": False}
