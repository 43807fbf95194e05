"""Proves and times the device cuda:0 in one command, ``python -m asv_benchmarks.gpu``, in under eight minutes.

It runs with the Python that it is called with and asks for no network. ``--standin`` rehearses it without a GPU: the same
steps on the stand-in for CuPy, at sizes that mean nothing, and nothing is written into the documentation.

Exit status: 0 all well, 1 a step failed, 3 no GPU, 4 no CUDA plugin that works, 5 out of time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["main"]

DEVICE = "cuda:0"
NO_GPU, NO_PLUGIN, OUT_OF_TIME = 3, 4, 5
NOTHING_TO_RUN = 5  # of pytest
MINUTES = 8
FIRST = 90  # seconds for the first kernels: CuPy's import, a context, two dozen kernels to compile
# Parts of the conformance suite, the long ones first: they run side by side.
_DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
    "complex128", "uint16", "uint32", "uint64",
)  # fmt: skip
_LONG = _DTYPES[:4]  # those with the most kernels of our own to compile: in two halves, by the names of the ops
_FIRST = " or ".join(["[{0}-" + one for one in "_abcdefghijk"])
SUITE = (
    "test_gold",
    *[f"test_op and {no}({_FIRST.format(one)}) and [{one}-" for one in _LONG for no in ("", "not ")],
    *[f"test_op and [{one}-" for one in _DTYPES[4:]],
    "test_edges or test_error", "test_gradient or test_special or test_model",
    "test_silver and not (test_op or test_refusal or test_edges or test_error or test_gradient or test_special or test_model)",
    "test_bronze", "test_refusal",
)  # fmt: skip
ROOT = Path(__file__).parents[1]
COPY, PRODUCT = 4300.0, 790.0  # what an H200 copies in GB/s, and multiplies in bfloat16 in TFLOP/s
RESULTS, PAGE = ROOT / "asv_benchmarks" / "results", ROOT / "docs" / "gpu-status.md"
BEGIN, END = "<!-- results of make gpu: begin -->", "<!-- results of make gpu: end -->"


class Step(NamedTuple):
    """One part of the proof.

    Attributes:
        name: what to call it.
        commands: what it runs, each in the folder.
        seconds: how long it may take; what runs then is asked to end, and what it found by then counts.
        beside: how many of the commands run at a time.
    """

    name: str
    commands: list[list[str]]
    seconds: float
    beside: int = 1


def main(arguments: list[str] | None = None) -> int:
    """Say in one sentence what is missing, or run all steps and write the results down."""
    parser = argparse.ArgumentParser(description="Tests and times on a GPU.")
    parser.add_argument(
        "--standin", action="store_true", help="rehearse on the stand-in for CuPy, without a limit of time"
    )
    parser.add_argument("--only", default="", help="steps whose name contains this")
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
        print("gpu: first kernels", flush=True)
        first = [sys.executable, "-m", "asv_benchmarks.gpu_first", DEVICE]
        limit = None if options.standin else FIRST
        # Where one of these is wrong, minutes of what follows would say the same.
        try:
            tried = subprocess.run(first, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=limit)
            wrong = f"{tried.stdout}{tried.stderr[-500:]}" if tried.returncode else None
        except subprocess.TimeoutExpired as late:
            wrong = f"{(late.stdout or b'').decode()}no answer within {FIRST} s"
        if wrong is not None:
            print(f"gpu: expected a CUDA plugin that works on {names[0]}, got another; its first kernels:\n{wrong}")
            return NO_PLUGIN
        todo = [one for one in steps(folder, options.standin) if options.only in one.name]
        return _run(todo, environment, folder, names[0], options.standin)


def steps(folder: Path, small: bool) -> list[Step]:
    """What is run, in order of importance; what this Python has no package for is left out."""
    python, tested = sys.executable, importlib.util.find_spec("pytest") is not None
    # Most of their time is the compiler's, on the host.
    several = 2 if small else max(2, min(16, (os.cpu_count() or 2) - 2))
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "-n", "0"]
    if importlib.util.find_spec("xdist") is None:
        pytest = pytest[:-2]
    table = [python, "-m", "asv_benchmarks.gpu_table", "--json", str(folder / "table.json"), "--device", "cuda"]
    found = [Step("table", [[*table, "--small"] if small else [*table, "--seconds", "140"]], 160)]
    if tested:
        suite = [*pytest, "-p", "tensorcore_pytest", "--pyargs", "tensorcore.testing", "--backend", DEVICE]
        if small:  # the stand-in's compiler takes the suite's kernels by the hundred then
            suite += ["-p", "tests.cuda_standin.emulation.listing"]
        shards = [
            [*suite, "-k", part, "--certificate", str(folder / f"certificate-{i}.json")] for i, part in enumerate(SUITE)
        ]
        found.append(Step("conformance", shards, 150, several))
    runs = [[python, str(one), "--device", "cuda", "--smoke", "--out", str(folder / one.stem)] for one in examples()]
    if small:  # a second for each step on the stand-in
        runs = [[*one, "--steps", "2"] if "perform(" in Path(one[1]).read_text("utf-8") else one for one in runs]
    found.append(Step("examples", runs, 60, several))
    nccl = [python, "-m", "asv_benchmarks.gpu_nccl", "--json", str(folder / "nccl.json")]
    found.append(Step("nccl", [[*nccl, "--small"] if small else nccl], 30))
    if tested and importlib.util.find_spec("hypothesis") is not None:
        # Those of the kernels are executed on the host and compiled without a device: they need no GPU.
        tests = [*pytest, "-m", "not slow", "tests/cuda", "--ignore", "tests/cuda/kernels"]
        found.append(Step("tests", [tests], 60))
        sanitizer = _tool("compute-sanitizer")
        if sanitizer is not None and not small:
            checked = [sanitizer, "--error-exitcode", "1", *tests, "-k", "test_amp or test_products"]
            found.append(Step("compute-sanitizer", [checked], 60))
    return found


def examples() -> list[Path]:
    """The examples that train on a device of the program's choice, whose packages are here."""
    found = []
    for one in sorted((ROOT / "examples").glob("*.py")):
        text = one.read_text("utf-8")
        if one.stem != "stage" and ("stage import" in text or '"--device"' in text):
            needed = re.findall(r"^\s*(?:import|from) (sklearn|gymnasium|scipy)\b", text, re.MULTILINE)
            needed += ["tqdm", "matplotlib"]  # of all of them: the bar, and the pictures
            if all(importlib.util.find_spec(name) for name in needed):
                found.append(one)
    return found


def gpus() -> list[str]:
    """The names of the machine's NVIDIA GPUs."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=60)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _tool(name: str) -> str | None:
    """A program of the CUDA toolkit, which is not always on the path."""
    roots = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    path = os.pathsep.join([os.environ.get("PATH", ""), *[os.path.join(one, "bin") for one in roots if one]])
    return shutil.which(name, path=path)


def _run(todo: list[Step], environment: dict[str, str], folder: Path, name: str, small: bool) -> int:
    started, outcomes, status = time.monotonic(), {}, 0
    for step in todo:
        # On the stand-in a step takes as long as it takes: what is timed there means nothing.
        left = math.inf if small else min(step.seconds, started + MINUTES * 60 - 20 - time.monotonic())
        print(f"gpu: {step.name}", flush=True)
        if left < 5:
            outcomes[step.name], status = "left out: no time was left", OUT_OF_TIME
        else:
            outcomes[step.name], code = _outcome(step, environment, folder, left)
            status = status or code
        print(f"gpu: {step.name}: {outcomes[step.name]}", flush=True)
        result = _result(folder, name, outcomes)
        if step.name == "conformance" and "conformance" in result:
            counts = sum(map(Counter, result["conformance"]["cases"].values()), Counter())
            cases = [f"{count} {what}" for what, count in counts.most_common()]
            print(f"gpu: conformance: {', '.join(cases)}", flush=True)
        text = page(PAGE.read_text("utf-8"), result)
        if not small:  # after each step: a run that is cut off leaves what it found
            RESULTS.mkdir(exist_ok=True)
            path = RESULTS / f"gpu-{result['date'][:10]}-{result['commit']}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
            PAGE.write_text(text, "utf-8")
            print(f"gpu: wrote {path.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}", flush=True)
    return status


def _outcome(step: Step, environment: dict[str, str], folder: Path, seconds: float) -> tuple[str, int]:
    """Run a step's commands; what came of them, and the exit status that this is worth."""
    started = time.monotonic()
    waiting, running = list(enumerate(step.commands)), {}
    codes: dict[int, int] = {}
    logs = [folder / f"{step.name}-{i}.log" for i in range(len(step.commands))]
    while (waiting or running) and time.monotonic() - started < seconds:
        while waiting and len(running) < step.beside:
            i, command = waiting.pop(0)
            running[i] = _started(command, environment, logs[i], folder)
        for i in [i for i, one in running.items() if one.poll() is not None]:
            codes[i] = running.pop(i).returncode
            if codes[i] not in (0, NOTHING_TO_RUN):
                print(f"gpu: {' '.join(step.commands[i])}\n{logs[i].read_text('utf-8', 'replace')[-3000:]}", flush=True)
        time.sleep(0.05)
    cut = len(waiting) + len(running)
    for one in running.values():
        one.send_signal(signal.SIGINT)  # a suite writes down what it has then
    patience = time.monotonic() + 10  # for all of them together
    for one in running.values():
        try:
            one.wait(max(0.0, patience - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()
    failed = sum([code not in (0, NOTHING_TO_RUN) for code in codes.values()])
    idle = sum([code == NOTHING_TO_RUN for code in codes.values()])
    # A part of the suite may be for a dtype that the device has not; where all parts are idle, nothing was shown.
    failed += idle if idle == len(step.commands) else 0
    text = "passed" if not failed and not cut else f"{failed} of {len(step.commands)} failed"
    text += f", {idle} found no test" if idle else ""
    text += f", {cut} did not end in time" if cut else ""
    return f"{text}, {time.monotonic() - started:.0f} s", int(failed > 0) or (OUT_OF_TIME if cut else 0)


def _started(command: list[str], environment: dict[str, str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    # The suite is a package's: it is to run without this folder's settings of pytest.
    where = folder if "--pyargs" in command else ROOT
    with open(log, "wb") as file:
        return subprocess.Popen(
            command, cwd=where, env=environment, stdout=file, stderr=subprocess.STDOUT, preexec_fn=_heed
        )


def _heed() -> None:
    """Let a process be interrupted, which one that was started in the background is not otherwise."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _result(folder: Path, name: str, outcomes: dict[str, str]) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="minutes"), "commit": commit or "unknown", "device": name,
        "steps": outcomes,
    }  # fmt: skip
    for key in ("table", "nccl"):
        held = _held(folder / f"{key}.json")
        if held is not None:
            result[key] = held["rows"]
    certificates = [one for one in map(_held, sorted(folder.glob("certificate-*.json"))) if one is not None]
    if certificates:
        result["conformance"] = joined(certificates)
    return result


def _held(path: Path) -> dict[str, Any] | None:
    """What a step wrote; None where it wrote nothing, or was killed while it did."""
    try:
        return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def joined(certificates: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of cases by level and result, and the failures with their reasons, of several parts of the suite."""
    levels: dict[str, Counter[str]] = {}
    failures: dict[str, str] = {}
    for one in certificates:
        failures.update(one["failures"])
        for level, found in one["levels"].items():
            levels.setdefault(level, Counter()).update(found.get("cases", {}))
    return {"cases": {level: dict(counts) for level, counts in levels.items()}, "failures": failures}


def page(text: str, result: dict[str, Any]) -> str:
    """The status page with these results in the place of the last ones; its first line says on what it ran."""
    lines = [
        f"Ran on {result['device']} at {result['date']}, commit {result['commit']}.", "", "| Step | Outcome |", "| --- | --- |",
        *[f"| {name} | {outcome} |" for name, outcome in result["steps"].items()], "",
    ]  # fmt: skip
    if "conformance" in result:
        lines += ["| Conformance | Cases |", "| --- | --- |"]
        for level, counts in result["conformance"]["cases"].items():
            lines.append(f"| {level} | {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))} |")
        lines += ["", *[f"- fails: `{key}`" for key in sorted(result["conformance"]["failures"])[:50]], ""]
    lines += [
        "| Row | Ours | PyTorch | Ratio | Target | GB/s | of 4.3 TB/s | TFLOP/s | of 790 | Peak MB | PyTorch's |",
        "| " + " | ".join(["---"] * 11) + " |",
    ]
    for row in [*result.get("table", []), *result.get("nccl", [])]:
        moved, computed = row.get("GB/s"), row.get("TFLOP/s")
        shares = [moved and f"{moved / COPY:.0%}", computed and f"{computed / PRODUCT:.0%}"]
        peaks = [row.get(f"{name} peak bytes") for name in ("ours", "peer")]
        cells = [
            *[row.get(name) for name in ("ours", "peer", "ratio", "target")], moved, shares[0], computed, shares[1],
            *[one and float(one) / 1e6 for one in peaks],
        ]  # fmt: skip
        shown = [f"{one:.3g}" if isinstance(one, float) else one or "" for one in cells]
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


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
