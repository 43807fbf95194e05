"""Proves and times the device cuda:0 in one command, ``python -m asv_benchmarks.gpu``, in under eight minutes.

It runs with the Python that it is called with and asks for no network. ``--standin`` rehearses it without a GPU: the same
steps on the stand-in for CuPy, at sizes that mean nothing, and nothing is written into the documentation.

Exit status: 0 all well, 1 a step failed, 3 no GPU, 4 no CUDA plugin that works, 5 out of time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["main"]

DEVICE = "cuda:0"
NO_GPU, NO_PLUGIN, OUT_OF_TIME = 3, 4, 5
MINUTES = 8
ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "asv_benchmarks" / "results", ROOT / "docs" / "gpu-status.md"
BEGIN, END = "<!-- results of make gpu: begin -->", "<!-- results of make gpu: end -->"


class Step(NamedTuple):
    """One part of the proof: what to call it, its command, and the seconds that it may take."""

    name: str
    command: list[str]
    seconds: float
    folder: Path = ROOT


def main(arguments: list[str] | None = None) -> int:
    """Say in one sentence what is missing, or run all steps and write the results down."""
    parser = argparse.ArgumentParser(description="Tests and times on a GPU.")
    parser.add_argument("--standin", action="store_true", help="rehearse on the stand-in for CuPy")
    options = parser.parse_args([] if arguments is None else arguments)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
    environment["TENSORCORE_PLUGINS"] = "tensorcore_cpu,tensorcore_cuda"
    names = gpus()
    if not options.standin and not names:
        print("gpu: expected an NVIDIA GPU, got none; run it on a machine where `nvidia-smi` lists one")
        return NO_GPU
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if options.standin:
            names = ["the stand-in"]
            environment.update(_standin(folder))
        program = f"import tensorcore; tensorcore.empty(0, device={DEVICE!r})"
        tried = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        if tried.returncode:
            print(f"gpu: expected a CUDA plugin for {names[0]}, got none that works: {tried.stderr.strip()[-500:]}")
            return NO_PLUGIN
        return _run(steps(folder, options.standin), environment, folder, names[0], options.standin)


def steps(folder: Path, small: bool) -> list[Step]:
    """What is run, in order of importance; what this Python has no package for is left out."""
    python, found = sys.executable, []
    suite = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tensorcore_pytest", "--tb=line"]
    suite += ["--pyargs", "tensorcore.testing", "--backend", DEVICE, "--certificate", str(folder / "certificate.json")]
    if small:
        suite += ["-k", "test_train or test_views or test_graph or test_streams"]
    elif _has("xdist"):
        suite += ["-n", "6"]
    else:
        suite += ["-k", "not test_op or float32 or bfloat16 or int64"]
    table = [python, "-m", "asv_benchmarks.gpu_table", "--json", str(folder / "table.json"), "--device", "cuda"]
    table += ["--small"] if small else ["--seconds", "120"]
    example = [python, str(ROOT / "examples" / "digits.py"), "--device", "cuda", "--smoke"]
    tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/cuda"]
    if small:
        tests += ["-k", "test_streams or test_transfers or test_memory"]
    if _has("pytest"):
        found.append(Step("conformance", suite, 150, folder))
    found.append(Step("table", table, 170))
    found.append(Step("examples", example, 60))
    if _has("pytest") and _has("hypothesis"):
        found.append(Step("tests/cuda", tests, 90))
        sanitizer = shutil.which("compute-sanitizer")
        if sanitizer is not None and not small:
            checked = [sanitizer, "--error-exitcode", "1", *tests, "-k", "softmax or norm or optim"]
            found.append(Step("compute-sanitizer", checked, 60))
    return found


def gpus() -> list[str]:
    """The names of the machine's NVIDIA GPUs."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=60)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _run(todo: list[Step], environment: dict[str, str], folder: Path, name: str, small: bool) -> int:
    ends, outcomes, status = time.monotonic() + MINUTES * 60 - 10, {}, 0
    for step in todo:
        left = min(step.seconds, ends - time.monotonic())
        print(f"gpu: {step.name}", flush=True)
        started = time.monotonic()
        if left < 1:
            outcomes[step.name], status = "left out: no time was left", OUT_OF_TIME
            continue
        try:
            code = subprocess.run(step.command, cwd=step.folder, env=environment, timeout=left).returncode
            outcomes[step.name] = "passed" if code == 0 else f"failed (exit status {code})"
            status = status or int(code != 0)
        except subprocess.TimeoutExpired:
            outcomes[step.name], status = f"stopped after {left:.0f} s", OUT_OF_TIME
        outcomes[step.name] += f", {time.monotonic() - started:.0f} s"
    result = _result(folder, name, outcomes)
    for step_name, outcome in outcomes.items():
        print(f"gpu: {step_name}: {outcome}")
    if not small:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"gpu-{result['date'][:10]}-{result['commit']}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        PAGE.write_text(page(PAGE.read_text("utf-8"), result), "utf-8")
        print(f"gpu: wrote {path.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")
    else:
        page(PAGE.read_text("utf-8"), result)  # the page is written as it would be, and thrown away
    return status


def _result(folder: Path, name: str, outcomes: dict[str, str]) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="minutes"), "commit": commit or "unknown", "device": name,
        "steps": outcomes,
    }  # fmt: skip
    for key in ("table", "certificate"):
        path = folder / f"{key}.json"
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            result[key] = found["rows"] if key == "table" else found["levels"]
    return result


def page(text: str, result: dict[str, Any]) -> str:
    """The status page with these results in the place of the last ones; its first line says on what it ran."""
    lines = [
        f"Ran on {result['device']} at {result['date']}, commit {result['commit']}.", "", "| Step | Outcome |", "| --- | --- |",
        *[f"| {name} | {outcome} |" for name, outcome in result["steps"].items()], "",
        "| Row | Ours | PyTorch | Ratio | Target | GB/s | TFLOP/s |", "| --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in result.get("table", []):
        cells = [
            row.get("ours"),
            row.get("peer"),
            row.get("ratio"),
            row.get("target"),
            row.get("GB/s"),
            row.get("TFLOP/s"),
        ]
        shown = [f"{one:.3g}" if isinstance(one, float) else "" for one in cells]
        note = row.get("error") or row.get("left out") or ""
        lines.append(f"| {row['row']}{': ' + note if note else ''} | {' | '.join(shown)} |")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    _, _, body = before.partition("\n")
    first = f"Last run on a GPU: {result['device']}, {result['date']}, commit {result['commit']}; see the table below."
    return f"{first}\n{body}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"


def _standin(folder: Path) -> dict[str, str]:
    """The environment in which the stand-in is CuPy."""
    here, library = ROOT / "tests" / "cuda_standin", folder / "libcuda.so"
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", str(here / "driver.c"), "-o", str(library)], check=True)
    path = os.pathsep.join([str(here), str(ROOT), str(ROOT / "plugins")])
    return {"PYTHONPATH": path, "TENSORCORE_CUDA_DRIVER": str(library), "TENSORCORE_STANDIN_DEVICES": "1"}


def _has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
