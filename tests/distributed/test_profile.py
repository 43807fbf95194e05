"""The profiler shows collectives beside what is computed meanwhile."""

from __future__ import annotations

import json

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore.profiler import ProfilerActivity, profile

from .worlds import world


def test_collectives_have_a_track_of_their_own(tmp_path) -> None:
    """A collective lasts from its call to the end of the wait for it, over the ops between; waiting is on the caller's."""
    path = tmp_path / "trace.json"

    def act():
        x = torch.ones(4)
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            work = dist.all_reduce(x, async_op=True)
            torch.ones(8, 8) @ torch.ones(8, 8)
            work.wait()
            dist.all_reduce(x)
        prof.export_chrome_trace(str(path))

    world(1, act)  # the profiler is one for all threads
    events = [one for one in json.loads(path.read_text("utf-8"))["traceEvents"] if one["ph"] == "X"]
    collectives = [one for one in events if one["cat"] == "collective"]
    assert [one["name"] for one in collectives] == ["all_reduce(SUM, float32 [4])"] * 2
    (track,) = {one["tid"] for one in collectives}
    assert all(one["tid"] != track for one in events if one["cat"] != "collective")
    first = collectives[0]
    matmul = next(one for one in events if "matmul" in one["name"])
    assert first["ts"] <= matmul["ts"]
    assert matmul["ts"] + matmul["dur"] <= first["ts"] + first["dur"]
    waits = [one for one in events if one["name"] == "wait for a collective"]
    assert len(waits) == 2
    assert matmul["ts"] + matmul["dur"] <= waits[0]["ts"]
