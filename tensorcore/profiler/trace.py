"""What a profiler saw, as files: a trace for Chrome and Perfetto, stacks for flame graphs, and a flame chart as PNG."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from typing import Any

from tensorcore.errors import ArgumentError, UsageError

__all__ = ["flame_chart", "stacks", "write_trace"]

_CATEGORIES = {
    "op": "cpu_op",
    "kernel": "kernel",
    "backward": "cpu_op",
    "user": "user_annotation",
    "module": "module",
    "collective": "collective",
}


def write_trace(path: str, events: Sequence[Any], metadata: dict[str, Any]) -> None:
    """The events in the trace event format, packed where the path ends in ``.gz``."""
    entries: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": os.getpid(), "tid": 0, "args": {"name": "tensorcore"}}
    ]
    for one in events:
        notes: dict[str, Any] = {}
        for key, value in (
            ("Module", one.module), ("Device", one.device), ("Input Dims", one.input_shapes), ("Call stack", one.stack),
            ("Bytes", one.self_cpu_memory_usage + one.self_device_memory_usage), ("FLOPs", one.flops),
            ("Device time (us)", one.device_time_total),
        ):  # fmt: skip
            if value:
                notes[key] = value
        entries.append(
            {
                "ph": "X", "cat": _CATEGORIES[one.kind], "name": one.name, "pid": os.getpid(), "tid": one.thread,
                "ts": round(one.start, 3), "dur": round(one.end - one.start, 3), "args": notes,
            }
        )  # fmt: skip
    text = json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", **metadata, "traceEvents": entries})
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def stacks(events: Sequence[Any], metric: str) -> list[str]:
    """Each stack with its time in whole microseconds, as flame graph tools read them: the outermost line first."""
    attribute = metric.replace("cuda", "device").replace("xpu", "device")
    if attribute not in ("self_cpu_time_total", "self_device_time_total"):
        raise ArgumentError(
            f"export_stacks: expected metric 'self_cpu_time_total' or 'self_cuda_time_total', got {metric!r}; name one"
        )
    found: dict[str, float] = {}
    for one in events:
        if one.stack and not (one.kind == "kernel" and one.cpu_parent is not None):  # its op's time has that in it
            line = ";".join([frame.replace(";", ",").replace(" ", "_") for frame in reversed(one.stack)])
            found[line] = found.get(line, 0.0) + getattr(one, attribute)
    return [f"{line} {int(time)}" for line, time in found.items() if int(time)]


def flame_chart(path: Any, events: Sequence[Any], title: str, width: float) -> None:
    """Time to the right, calls within calls downwards: modules in grey above what they ran, the rest coloured by name."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "export_flame_chart: expected matplotlib, which draws it, got none; install tensorcore[tools]"
        ) from error
    if not events:
        raise UsageError("export_flame_chart: expected a call at least, got none; run the program inside the profiler")
    lanes, height, places = [], 0, []
    for thread in sorted({one.thread for one in events}):
        rows = _rows([one for one in events if one.thread == thread])
        lanes.append((height, thread))
        places += [(one, height + row) for one, row in rows]
        height += max([row for _, row in rows]) + 2
    figure = Figure(figsize=(width, max(2.0, 0.24 * height + 1.0)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    first, last = min([one.start for one in events]), max([one.end for one in events])
    span = (last - first) or 1.0
    for kind in ("module", "other"):
        mine = [(one, row) for one, row in places if (one.kind == "module") is (kind == "module")]
        for row in sorted({row for _, row in mine}):
            bars = [one for one, where in mine if where == row]
            axes.broken_barh(
                [((one.start - first) / 1e3, max(one.end - one.start, span / 4e3) / 1e3) for one in bars],
                (row, 0.94),
                facecolors=["0.85" if kind == "module" else _colour(one.name) for one in bars],
                linewidth=0.2, edgecolor="white",
            )  # fmt: skip
    for one, row in places:
        # A word is written where it fits: a letter of this size is about a 130th of an axis ten inches wide.
        letters = int((one.end - one.start) / span * 13 * width)
        if letters >= 4:
            text = one.name.removeprefix("aten::").removeprefix("kernel::")
            text = text if len(text) <= letters else text[: letters - 1] + "…"
            axes.text((one.start - first) / 1e3 + span * 1e-6, row + 0.47, text, fontsize=6, va="center", clip_on=True)
    axes.set(xlim=(0, span / 1e3), ylim=(height, -0.5), xlabel="ms", title=title)
    axes.set_yticks([at for at, _ in lanes], [f"thread {thread}" for _, thread in lanes], fontsize=7)
    figure.savefig(path, dpi=150)


def _rows(events: Sequence[Any]) -> list[tuple[Any, int]]:
    """How deep each of one thread's events lies in others, by time alone."""
    found, open_ = [], []
    for one in sorted(events, key=lambda one: (one.start, -one.end, one.kind != "module")):
        while open_ and open_[-1].end <= one.start:
            open_.pop()
        found.append((one, len(open_)))
        open_.append(one)
    return found


def _colour(name: str) -> tuple[float, float, float]:
    """A warm colour that is always the same for a name."""
    mix = zlib.crc32(name.encode())
    return 0.85 + (mix & 31) / 240, 0.45 + (mix >> 5 & 63) / 145, 0.2 + (mix >> 11 & 31) / 110
