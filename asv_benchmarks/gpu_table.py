"""Times the rows of ``gpu_rows`` on one device beside PyTorch in the same process, and writes them down.

A fault that leaves the device unusable for this process costs one row: a new process goes on behind it.

``python -m asv_benchmarks.gpu_table --json FILE [--device cuda] [--small] [--seconds N] [--only NAME]``
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from .gpu_rows import ROWS, SMALL, Row, Sizes
from .units import duration

__all__ = ["main"]

LINE = "{:<44} {:>10} {:>10} {:>7} {:>9} {:>9} {}"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and write; 1 where a row does not run."""
    parser = argparse.ArgumentParser(description="Times beside PyTorch on a GPU.")
    parser.add_argument("--json", type=Path, required=True, help="where the results go")
    parser.add_argument("--device", default="cuda", help="the device (cuda)")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that all rows run")
    parser.add_argument("--seconds", type=float, default=240.0, help="start no row after so many seconds (240)")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has already")
    options = parser.parse_args(arguments)
    import tensorcore

    peer, name = _peer(options.device), _device(tensorcore, options.device)
    sizes, ends = SMALL if options.small else Sizes(), time.monotonic() + options.seconds
    print(LINE.format("row", "ours", "PyTorch", "ratio", "GB/s", "TFLOP/s", "").rstrip())
    results = json.loads(options.json.read_text("utf-8"))["rows"] if options.resume else []
    done = {one["row"] for one in results}
    for row in ROWS:
        if options.only not in row.name or row.name in done:
            continue
        if time.monotonic() > ends:
            results.append({"row": row.name, "left out": "no time was left"})
            continue
        found = measured(row, tensorcore, peer, options.device, sizes)
        results.append(found)
        print(_line(found), flush=True)
        # After each row: a run that is cut off leaves what it found.
        text = {"device": name, "small": options.small, "rows": results}
        part = options.json.with_suffix(".part")
        part.write_text(json.dumps(text, indent=1) + "\n", "utf-8")
        part.replace(options.json)
        if ("error" in found or "peer error" in found) and not _usable(tensorcore, options.device):
            print("the device is lost to this process: a new one goes on", flush=True)
            given = [
                *_without(arguments if arguments is not None else sys.argv[1:], "--seconds", "--resume"),
                "--resume",
            ]
            given += ["--seconds", f"{ends - time.monotonic():.0f}"]
            os.execv(sys.executable, [sys.executable, "-m", "asv_benchmarks.gpu_table", *given])
    broken = sum(["error" in one for one in results])
    print(f"{len(results)} rows, {broken} broken")
    return 1 if broken else 0


def measured(row: Row, ours: Any, peer: Any, device: str, sizes: Sizes) -> dict[str, Any]:
    """One row: the medians of both, their ratio, and the share of what the hardware can move."""
    found: dict[str, Any] = {"row": row.name, "target": row.target}
    for name, library in (("ours", ours), ("peer", peer)):
        if library is None:
            continue
        try:
            library.cuda.reset_peak_memory_stats()
            program = (row.make if library is ours else row.peer or row.make)(library, device, sizes)
            found[name] = timed(program, library.cuda.synchronize, sizes is SMALL)
            found[f"{name} peak bytes"] = library.cuda.max_memory_allocated()
        except Exception as error:  # a row that does not run is a result
            found["error" if name == "ours" else "peer error"] = f"{type(error).__name__}: {error}"[:300]
        program = None
        gc.collect()
        with contextlib.suppress(Exception):  # a fault shows once more
            library.cuda.empty_cache()
    if "ours" in found and sizes is not SMALL:
        found["GB/s"] = row.bytes(sizes) / found["ours"] / 1e9 or None
        found["TFLOP/s"] = row.operations(sizes) / found["ours"] / 1e12 or None
    if "ours" in found and "peer" in found:
        found["ratio"] = found["ours"] / found["peer"]
    return found


def _usable(ours: Any, device: str) -> bool:
    """Whether the device still computes: after a kernel wrote where it must not, no call of the process succeeds."""
    try:
        return bool((ours.ones(1, device=device) + 1).item() == 2)
    except Exception:  # of whatever library
        return False


def _without(arguments: list[str], valued: str, flag: str) -> list[str]:
    """Arguments without an option and its value, and without another one."""
    made = list(arguments)
    if valued in made:
        del made[made.index(valued) : made.index(valued) + 2]
    return [one for one in made if one != flag]


def timed(program: Any, synchronize: Any, once: bool) -> float:
    """Seconds of a run: the median of seven, each of as many runs as take 20 ms."""
    for _ in range(1 if once else 3):
        program()
    synchronize()
    count = 1
    while True:
        started = time.perf_counter()
        for _ in range(count):
            program()
        synchronize()
        seconds = time.perf_counter() - started
        if once:
            return seconds
        if seconds > 0.02 or count >= 1 << 14:
            break
        count *= 2
    found = [seconds / count]
    for _ in range(6):
        started = time.perf_counter()
        for _ in range(count):
            program()
        synchronize()
        found.append((time.perf_counter() - started) / count)
    return statistics.median(found)


def _peer(device: str) -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    return torch if torch.cuda.is_available() else None


def _device(ours: Any, device: str) -> str:
    return f"{ours.cuda.get_device_name(device)}, {ours.device(device).report()['library']}"


def _line(found: dict[str, Any]) -> str:
    if "error" in found:
        return f"{found['row']:<44} broken: {found['error']}"
    number = {name: f"{found[name]:.0f}" if found.get(name) else "" for name in ("GB/s", "TFLOP/s")}
    ratio = f"{found['ratio']:.2f}" if "ratio" in found else ""
    verdict = "" if not ratio else "ok" if found["ratio"] <= found["target"] else "MISS"
    peer = duration(found["peer"]) if "peer" in found else ""
    return LINE.format(
        found["row"], duration(found["ours"]), peer, ratio, number["GB/s"], number["TFLOP/s"], verdict
    ).rstrip()


if __name__ == "__main__":
    sys.exit(main())
