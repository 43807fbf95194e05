"""What collectives and a step of distributed training cost between two processes of one machine, beside PyTorch over gloo.

    python -m asv_benchmarks.benchmarks.collective [--large] [--page docs/distributed.md]

With ``--page`` it also keeps the numbers that the picture of weak scaling is drawn from (``make pictures``).

Both libraries run in the same two processes, turn by turn, so that they meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from asv_benchmarks import scaling

__all__ = ["COLLECTIVES", "SIZES", "measure", "table"]

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20)
BATCHES = (32, 128)  # samples of a rank, for what computing hides of the messages
WEAK = (1, 4)  # ranks, beside those of the table, whose steps are measured
PARAMETERS = 8_393_728  # of the perceptron of a step
TURNS, SECONDS = 15, 0.01  # of each library, for a collective and a size, one after the other; and of a turn, about
AHEAD = "; these processes had the processors before all other programs"
MARK = "collective:"
MODULE = "asv_benchmarks.benchmarks.collective"


class Collectives:
    """asv: one all_reduce between two processes, in seconds."""

    params = (SIZES[:4],)
    param_names = ("bytes",)
    timeout = 120

    def setup_cache(self) -> dict[str, Any]:
        return {str(row["bytes"]): row["ours"] for row in measure(SIZES[:4], ("all_reduce",), step=False)["rows"]}

    def track_all_reduce(self, found: dict[str, float], size: int) -> float:
        return found[str(size)]

    track_all_reduce.unit = "seconds"  # type: ignore[attr-defined]


def measure(
    sizes: Any = SIZES[:5], collectives: Any = COLLECTIVES, ranks: int = 2, step: bool = True, gloo: bool = True,
    ahead: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The medians in seconds: ``rows`` by collective and size, and ``step``, one of training.

    ``ahead``: the processes, both libraries in them, get a processor before all other programs do; only root may ask for it.
    """
    root, load = Path(__file__).parents[2], os.getloadavg()[0]
    paths = os.pathsep.join([str(root), str(root / "plugins"), os.environ.get("PYTHONPATH", "")])
    asked = {"sizes": list(sizes), "collectives": list(collectives), "step": step, "gloo": gloo, "ahead": ahead}
    done = subprocess.run(
        [sys.executable, "-m", "tensorcore.distributed.launch", "-n", str(ranks), "-m", MODULE, "--worker", json.dumps(asked)],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    line = re.search(re.escape(MARK) + "(.*)", done.stdout)
    if line is None:
        raise RuntimeError(
            f"collective: expected times from {ranks} ranks, got exit code {done.returncode}: {done.stderr}"
        )
    found: dict[str, Any] = json.loads(line.group(1))
    return {**found, "load": load, "ahead": ahead}


def table(found: dict[str, Any]) -> list[str]:
    """The rows as Markdown."""
    lines = ["| collective | bytes | tensorcore | gloo | ratio | GB/s |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in found["rows"]:
        rate = row["bytes"] / row["ours"] / 1e9
        peer = "" if row["gloo"] is None else f"{1e6 * row['gloo']:,.0f} us"
        ratio = "" if row["gloo"] is None else f"{row['ours'] / row['gloo']:.2f}"
        lines.append(
            f"| {row['collective']} | {_size(row['bytes'])} | {1e6 * row['ours']:,.0f} us | {peer} | {ratio} | {rate:.1f} |"
        )
    return lines


def _size(count: int) -> str:
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"


# In the two processes


def worker(asked: dict[str, Any]) -> None:
    """Time everything, and have rank 0 print it."""
    import tensorcore.distributed as dist

    if asked["ahead"]:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    peer = _gloo(rank, size) if asked["gloo"] else None
    rows = []
    for nbytes in asked["sizes"]:
        for name in asked["collectives"]:
            ours, theirs = (
                _call(name, nbytes, "ours", rank, size),
                _call(name, nbytes, "gloo", rank, size) if peer else None,
            )
            copy = _memcpy(nbytes) if name == "all_reduce" else None
            rows.append({"collective": name, "bytes": nbytes, **_turns(ours=ours, gloo=theirs, memcpy=copy)})
    found: dict[str, Any] = {"ranks": size, "rows": rows}
    if asked["step"]:
        found["step"] = _turns(ours=_training("ours")[0], gloo=_training("gloo")[0] if peer else None)
        found["exposed"] = [_exposed(samples) for samples in BATCHES]
    dist.barrier()
    if rank == 0:
        print(MARK + json.dumps(found))
    dist.destroy_process_group()
    if peer is not None:
        peer.destroy_process_group()


def _gloo(rank: int, size: int) -> Any:
    """PyTorch's own group of the same processes, None where there is no PyTorch."""
    try:
        import torch.distributed as peer
    except ImportError:
        return None
    import tensorcore.distributed as dist

    # Rank 0 gets a port that is free, and the others hear of it from us.
    store = peer.TCPStore("127.0.0.1", 0, size, True, wait_for_workers=False) if rank == 0 else None
    port = [store.port if store else 0]
    dist.broadcast_object_list(port)
    store = store or peer.TCPStore("127.0.0.1", port[0], size, False)
    peer.init_process_group("gloo", store=store, rank=rank, world_size=size)
    return peer


def _library(kind: str) -> Any:
    if kind == "gloo":
        import torch

        return torch
    import tensorcore

    return tensorcore


def _call(name: str, nbytes: int, kind: str, rank: int, size: int) -> Any:
    """One call of a collective, ``nbytes`` being the largest tensor that takes part."""
    torch = _library(kind)
    import importlib

    dist = importlib.import_module(f"{torch.__name__}.distributed")
    whole = torch.ones(nbytes // 4)
    part = torch.ones(nbytes // 4 // size)
    return {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "broadcast": lambda: dist.broadcast(whole, 0),
    }[name]


def _training(kind: str, samples: int = 32) -> tuple[Any, Any]:
    """A step of DistributedDataParallel with a perceptron of 8 M parameters, so many samples on each rank."""
    torch = _library(kind)
    torch.manual_seed(0)
    if kind == "gloo":
        torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 1024),
    )
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(samples, 1024), torch.randn(samples, 1024)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step, model


def _exposed(samples: int) -> dict[str, float]:
    """Seconds of a step, of one that sends nothing, and of the messages alone: what of these computing does not hide."""
    import tensorcore.distributed as dist

    both, model = _training("ours", samples)

    def alone() -> None:
        with model.no_sync():
            both()

    buffers = [bucket.buffer for bucket in model._buckets]

    def messages() -> None:
        for one in [dist.all_reduce(one, async_op=True) for one in buffers]:
            one.wait()

    return {"samples": samples, **_turns(step=both, computing=alone, messages=messages)}


def _turns(**calls: Any) -> dict[str, Any]:
    """Median seconds of a call of each, by name; None for what there is not.

    They take turns of as many calls as take a moment, the same number on all ranks. Turns are short: where other programs
    take the processors now and then, they take them from few turns of each.
    """
    import tensorcore as torch
    import tensorcore.distributed as dist

    def once(call: Any, count: int) -> float:
        dist.barrier()
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    found: dict[str, list[float]] = {name: [] for name in calls}
    calls = {name: call for name, call in calls.items() if call is not None}
    counts, turns = {}, TURNS
    for name, call in calls.items():
        once(call, 1)
        seconds = torch.tensor([once(call, 1)])
        dist.broadcast(seconds, 0)
        counts[name] = max(1, min(200, int(SECONDS / max(seconds.item(), 1e-6))))
        turns = min(turns, max(5, int(TURNS * 10 * SECONDS / max(seconds.item(), 1e-6))))
    for _ in range(turns):
        for name, call in calls.items():
            found[name].append(once(call, counts[name]))
    return {name: statistics.median(times) if times else None for name, times in found.items()}


def _memcpy(nbytes: int) -> Any:
    source, target = np.ones(nbytes // 4, np.float32), np.ones(nbytes // 4, np.float32)
    return lambda: np.copyto(target, source)


def page(found: dict[str, Any]) -> list[str]:
    """All that was measured, and what follows from it, as Markdown."""
    machine = f"{found['ranks']} processes on {os.cpu_count()} cores; load average before: {found['load']:.1f}"
    machine += f"{AHEAD if found['ahead'] else ''}."
    lines = [
        machine,
        "",
        *table(found),
        "",
        *(
            _beside_memcpy(row)
            for row in found["rows"]
            if row["collective"] == "all_reduce" and row["bytes"] == 64 << 20
        ),
    ]
    step = found["step"]
    peer = (
        ""
        if step["gloo"] is None
        else f", PyTorch over gloo {1e3 * step['gloo']:.0f} ms ({step['ours'] / step['gloo']:.2f})"
    )
    lines += [
        f"A step of DistributedDataParallel, 8 M parameters: {1e3 * step['ours']:.0f} ms{peer}.", "",
        "| samples a rank | step | computing alone | messages alone | exposed |",
        "| ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {one['samples']} | {1e3 * one['step']:.0f} ms | {1e3 * one['computing']:.0f} ms | "
            f"{1e3 * one['messages']:.0f} ms | {1e3 * max(0.0, one['step'] - one['computing']):.0f} ms |"
            for one in found["exposed"]
        ),
    ]  # fmt: skip
    cost, nbytes, parts = _cost(found), 4 * PARAMETERS, found["exposed"][0]
    lines += [
        "", f"Fitted to all_reduce: alpha {1e6 * cost.alpha:.0f} us a message, beta {1e9 * cost.beta:.2f} ns a byte "
        f"({1e-9 / cost.beta:.1f} GB/s); half of the rows are within {100 * cost.error:.0f} % of it.", "",
        "| ranks | all_reduce of 33.6 MB | step, nothing hidden | efficiency |", "| ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for ranks in (1, 2, 8, 64, 256, 1024):
        seconds = scaling.step(cost, parts["computing"], nbytes, ranks, 0.0)
        lines.append(
            f"| {ranks:,} | {1e3 * scaling.predicted(cost, nbytes, ranks):.0f} ms | {1e3 * seconds:.0f} ms | "
            f"{100 * parts['computing'] / seconds:.0f} % |"
        )
    return lines


def weak_scaling(found: dict[str, Any], others: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """What the picture shows: the measured steps of one rank and of several, and what the model says of more.

    Args:
        found: what ``measure`` gave for the table's ranks.
        others: what it gave for other numbers of ranks.
    """
    cost, parts = _cost(found), found["exposed"][0]
    hidden = max(0.0, scaling.predicted(cost, 4 * PARAMETERS, found["ranks"]) - (parts["step"] - parts["computing"]))
    ranks = [2**i for i in range(11)]
    return {
        "machine": f"{os.cpu_count()} cores of one machine",
        "cores": os.cpu_count(),
        "measured": {
            str(one["ranks"]): one["step"]["ours"] for _, one in sorted({**others, found["ranks"]: found}.items())
        },
        "computing": parts["computing"],
        "ranks": ranks,
        "nothing hidden": [scaling.step(cost, parts["computing"], 4 * PARAMETERS, one, 0.0) for one in ranks],
        "as much hidden": [scaling.step(cost, parts["computing"], 4 * PARAMETERS, one, hidden) for one in ranks],
    }


def weak_sentence(scaled: dict[str, Any]) -> str:
    """The measured steps in words, and which of them have more ranks than there are cores."""
    steps = [
        f"{1e3 * seconds:.0f} ms on {ranks}"
        + (f", which share {scaled['cores']} cores" if int(ranks) > scaled["cores"] else "")
        for ranks, seconds in scaled["measured"].items()
    ]
    return (
        f"The same step with {BATCHES[0]} samples on each rank, so with more samples on more ranks: {'; '.join(steps)}."
    )


def _cost(found: dict[str, Any]) -> scaling.Cost:
    times = [(row["bytes"], row["ours"]) for row in found["rows"] if row["collective"] == "all_reduce"]
    return scaling.fit(times, found["ranks"])


def _beside_memcpy(row: dict[str, Any]) -> str:
    rates = [row["bytes"] / row[name] / 1e9 for name in ("ours", "memcpy")]
    return (
        f"Between its calls both processes copied {_size(row['bytes'])} by memcpy, at {rates[1]:.1f} GB/s: all_reduce has "
        f"{100 * rates[0] / rates[1]:.0f} % of that."
    )


def write(place: Path, lines: list[str]) -> None:
    """Put the lines between the marks of a page."""
    text = place.read_text("utf-8")
    start, end = "<!-- measured -->\n", "<!-- end of what is measured -->"
    place.write_text(
        text[: text.index(start) + len(start)] + "\n".join(lines) + "\n" + text[text.index(end) :], "utf-8"
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--large", action="store_true", help="256 MB too")
    parser.add_argument("--ahead", action="store_true", help="on a busy machine, before all other programs; needs root")
    parser.add_argument("--page", type=Path, help="write the tables between the marks of this page")
    given = parser.parse_args(argv)
    if given.worker:
        worker(json.loads(given.worker))
        return 0
    found = measure(SIZES if given.large else SIZES[:5], ranks=given.ranks, ahead=given.ahead)
    lines = page(found)
    print("\n".join(lines))
    if given.page:
        # Four ranks on two cores compute in turns, which is measured all the same.
        scaled = weak_scaling(found, {ranks: measure((), ranks=ranks, gloo=False, ahead=given.ahead) for ranks in WEAK})
        write(given.page, [*lines, "", weak_sentence(scaled)])
        text = json.dumps(scaled, indent=1)
        (given.page.parent / "pictures" / "scaling.json").write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
