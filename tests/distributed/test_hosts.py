"""Ranks on several hosts, as far as network namespaces are hosts: they train, and a cut link is reported."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from .conftest import HANGS
from .hosts import hosts
from .test_data_parallel import load, make, never, train


@pytest.fixture
def net(tmp_path):
    """Three hosts."""
    with hosts(3, tmp_path) as found:
        yield found


def launch(started, net, text, *arguments, **environment):
    """Start a program from the first host, one rank on each."""
    line = [
        str(net.agent), net.names[0], sys.executable, "-m", "tensorcore.distributed.launch", "-n", "3", "--hosts",
        ",".join(net.names), "--agent", str(net.agent),
    ]  # fmt: skip
    return started(text, 3, *arguments, line=line, **environment)


@pytest.mark.slow
def test_training_across_three_hosts(started, net) -> None:
    """DistributedDataParallel over links of 1 Gbit/s gives the single process's losses, to 1e-5."""
    net.limit("1gbit")
    process = launch(
        started, net,
        """
        import socket
        import tensorcore.distributed as dist
        from tests.distributed import test_data_parallel as t

        dist.init_process_group()
        scans = t.load(120)
        model = t.DistributedDataParallel(t.make(), find_unused_parameters=True)
        losses = t.together(t.train(model, scans, dist.get_rank(), dist.get_world_size(), t.never))
        print("host", socket.gethostname())
        if dist.get_rank() == 0:
            print("losses", *losses)
        """,
    )  # fmt: skip
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 0, err
    assert {line.split()[-1] for line in out.splitlines() if " host " in line} == set(net.names)
    found = next(line.split()[2:] for line in out.splitlines() if "losses" in line)
    np.testing.assert_allclose([float(one) for one in found], train(make(), load(120), 0, 1, never), atol=1e-5)


def test_a_cut_link(started, net) -> None:
    """When one host falls off the net, the others say which rank did not come, and the job ends in its deadline."""
    process = launch(
        started, net,
        """
        import time
        from datetime import timedelta
        import tensorcore as torch, tensorcore.distributed as dist

        dist.init_process_group()
        group = dist.new_group(timeout=timedelta(seconds=5))
        x = torch.ones(300_000)
        while True:
            dist.all_reduce(x, group=group)
            print("step", flush=True)
            time.sleep(0.1)
        """,
    )  # fmt: skip
    seen = ""
    while "step" not in seen:
        seen = process.stdout.readline()
        assert seen, process.stderr.read()
    net.cut(2)
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode != 0
    assert "within 5 s on rank" in err
    assert "rank 2" in err


def test_calls_that_differ_on_other_hosts(started, net) -> None:
    """TENSORCORE_CHECK_COLLECTIVES compares the calls of ranks that share no memory."""
    process = launch(
        started, net,
        """
        import tensorcore as torch, tensorcore.distributed as dist

        dist.init_process_group()
        dist.barrier()
        dist.all_reduce(torch.ones(3 + (dist.get_rank() == 1)))
        """,
        TENSORCORE_CHECK_COLLECTIVES="1",
    )  # fmt: skip
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 1
    assert "expected the same call on all ranks as #2 of group 'world'" in err
    assert "rank 0: all_reduce(SUM, float32 [3]); rank 1: all_reduce(SUM, float32 [4]); rank 2: all_reduce" in err
