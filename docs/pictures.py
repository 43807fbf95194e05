"""The pictures of the documentation, drawn from files of results: ``python -m docs.pictures [--measure]``.

The bars are the table of ``performance.md``; ``--measure`` takes the roofline's and the loss curve's numbers anew, and
``make bench-collective`` those of scaling.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["PICTURES", "draw", "main", "measure_loss", "measure_roofline", "table"]

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
OURS, PEER, GREY = "#3f51b5", "#e57300", "#9aa0a6"


def main(arguments: list[str]) -> int:
    """Draw all pictures, with ``--measure`` from new numbers."""
    if "--measure" in arguments:
        for name, measure in (("roofline", measure_roofline), ("loss", measure_loss)):
            text = json.dumps(measure(), indent=1)
            (PICTURES / f"{name}.json").write_text(text + "\n", "utf-8")
    for path in draw(PICTURES):
        print(f"{path.stat().st_size / 1024:6.1f} KiB  {path}")  # noqa: T201
    return 0


def draw(folder: Path) -> list[Path]:
    """Draw the pictures into a folder."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({
        "svg.hashsalt": "tensorcore", "svg.fonttype": "path", "font.size": 9, "axes.spines.top": False,
        "axes.spines.right": False, "figure.constrained_layout.use": True,
    })  # fmt: skip
    made = []
    for name, paint in (("ratios", _ratios), ("roofline", _roofline), ("loss", _loss), ("scaling", _scaling)):
        figure = paint()
        made.append(folder / f"{name}.svg")
        figure.savefig(made[-1], metadata={"Date": None})
    return made


def table() -> list[tuple[str, float, float]]:
    """The groups of rows of the first table of ``performance.md``: the median of their ratios to PyTorch, and the largest."""
    text = (DOCS / "performance.md").read_text("utf-8").partition("\n### ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| \d+ \| ([0-9.]+|inf) \| [^|]+ \| ([0-9.]+|inf) \|", text, re.MULTILINE)
    return [(name, float(middle), float(largest)) for name, middle, largest in rows]


def measure_roofline() -> dict[str, Any]:
    """What the machine does at best, and what some calls do: operations for each byte, and operations a second."""
    import tensorcore as tc
    from asv_benchmarks.limits import Limit, Work

    big, threads = 8_000_000, tc.get_num_threads()
    copy, products = (Limit(one, threads) for one in (Work(4 * big, 4 * big), Work(products=big)))
    found: dict[str, Any] = {
        "bandwidth": 8 * big / min(copy.seconds() for _ in range(100)),
        "peak": 2 * big / min(products.seconds() for _ in range(100)),
        "threads": threads,
        "points": {},
    }

    x, y = tc.ones(big), tc.ones(big)
    rows = tc.rand(8000, 1000)
    image, filters = tc.rand(16, 32, 32, 32), tc.rand(32, 32, 3, 3)
    calls: dict[str, tuple[Callable[[], Any], float, float]] = {
        "add": (lambda: x + y, big, 12 * big),
        "sum": (x.sum, big, 4 * big),
        "softmax": (lambda: rows.softmax(1), 5 * 8e6, 8 * 8e6),
        "conv2d 3x3": (lambda: tc.nn.functional.conv2d(image, filters, padding=1), 2 * 9 * 32 * image.numel(),
                       8 * image.numel()),
    }  # fmt: skip
    for n in (64, 256, 512):
        m = tc.rand(n, n)
        calls[f"matmul {n}"] = (lambda m=m: m @ m, 2 * n**3, 12 * n**2)
    for name, (call, operations, moved) in calls.items():
        found["points"][name] = {"intensity": operations / moved, "speed": operations / _best(call)}
    return found


def measure_loss() -> list[float]:
    """The losses of the digit classifier's perceptron, step by step."""
    import tensorcore

    spec = importlib.util.spec_from_file_location("digits", DOCS.parent / "examples" / "digits.py")
    assert spec is not None
    assert spec.loader is not None
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    settings = {"model": "mlp", "batch_size": 64, "lr": 3e-3, "seed": 8, "smoke": False}
    training = digits.Training(tensorcore, digits.load_digits(False), settings, "cpu")
    for _ in training.run(6):
        pass
    return [round(float(loss), 4) for loss in training.losses]


def _best(call: Callable[[], Any]) -> float:
    best, end, runs = float("inf"), time.perf_counter() + 0.5, 0
    while time.perf_counter() < end or runs < 15:
        runs += 1
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def _ratios() -> Any:
    from matplotlib import pyplot

    rows = table()
    figure, axes = pyplot.subplots(figsize=(7, 0.25 * len(rows) + 0.9))
    names, middles, largest = zip(*rows, strict=True)
    axes.barh(names, middles, color=[OURS if ratio <= 1 else PEER for ratio in middles], label="median of the group")
    axes.plot(largest, names, "o", color=GREY, markersize=3, label="its slowest row")
    axes.set_xscale("log")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    axes.axvline(1, color=GREY, linewidth=1)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xlabel("time over PyTorch eager; left of the line tensorcore is faster")
    return figure


def _roofline() -> Any:
    from matplotlib import pyplot

    found = json.loads((PICTURES / "roofline.json").read_text("utf-8"))
    figure, axes = pyplot.subplots(figsize=(6, 3.6))
    ridge = found["peak"] / found["bandwidth"]
    low, high = 0.05, 300.0
    axes.loglog(
        [low, ridge, high], [low * found["bandwidth"] / 1e9, found["peak"] / 1e9, found["peak"] / 1e9], color=GREY
    )
    for number, (name, point) in enumerate(found["points"].items()):
        place, below = (point["intensity"], point["speed"] / 1e9), number % 2
        axes.plot(*place, "o", color=OURS)
        axes.annotate(name, place, (4, -10 if below else 5), textcoords="offset points")
    axes.margins(y=0.1)
    axes.set_xlabel("operations for each byte moved")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(
        f"{found['threads']} thread(s); the line: the fastest copy and multiply-adds of the same minute", fontsize=9
    )
    return figure


def _loss() -> Any:
    from matplotlib import pyplot

    losses = json.loads((PICTURES / "loss.json").read_text("utf-8"))
    figure, axes = pyplot.subplots(figsize=(6, 2.6))
    axes.semilogy(losses, color=OURS, linewidth=1)
    axes.set_xlabel("step")
    axes.set_ylabel("loss of the digit classifier")
    return figure


def _scaling() -> Any:
    from matplotlib import pyplot

    found = json.loads((PICTURES / "scaling.json").read_text("utf-8"))
    figure, axes = pyplot.subplots(figsize=(6, 3.2))
    for name, line in (("nothing hidden", "-"), ("as much hidden", "--")):
        if line == "--" and found[name] == found["nothing hidden"]:
            continue
        axes.semilogx(
            found["ranks"], [1e3 * one for one in found[name]], line, color=OURS, base=2, label=f"model, {name}"
        )
    points = {int(ranks): 1e3 * seconds for ranks, seconds in found["measured"].items()}
    for crowded, mark in ((False, "o"), (True, "x")):
        chosen = {ranks: each for ranks, each in points.items() if (ranks > found["cores"]) is crowded}
        if chosen:
            label = "measured, ranks that share a core" if crowded else f"measured on {found['machine']}"
            axes.plot(list(chosen), list(chosen.values()), mark, color=PEER, label=label)
    axes.axhline(1e3 * found["computing"], color=GREY, linewidth=1, label="computing alone")
    axes.set_ylim(0)
    axes.set_xlabel("ranks, each with the same number of samples")
    axes.set_ylabel("ms a step, 8 M parameters")
    axes.legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
