"""The profiler: what it notes, what it writes, and that nothing is left of it when it is off."""

from __future__ import annotations

import gzip
import json
import threading

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import ArgumentError, ArgumentTypeError, ShapeError, UsageError
from tensorcore.profiler import ProfilerAction, profile, record_function, schedule, tensorboard_trace_handler
from tensorcore.tape.mode import mode


def names(events) -> list[str]:
    return [one.name for one in events]


def test_ops_hold_their_kernels() -> None:
    """A call is an event with the kernel inside, in time too."""
    x = tc.ones(3)
    with profile() as prof:
        x + x
    op, kernel = prof.events()
    assert (op.name, kernel.name, kernel.cpu_parent, kernel.device) == ("aten::add", "kernel::add", op, "cpu")
    assert op.start <= kernel.start <= kernel.end <= op.end
    assert op.kernel_time_total == kernel.cpu_time_total > 0


def test_every_way_to_an_op_is_seen() -> None:
    """Functions, methods, operators, reflected and in-place ones, and functions that were imported by name."""
    from tensorcore.nn.functional import softplus

    x = tc.ones(3)
    with profile() as prof:
        softplus(x)
        x.exp()
        1.0 - x
        x += 1
        x[0]
        x.mul_(2)[0].item()
    tops = [one.name for one in prof.events() if one.cpu_parent is None]
    assert tops == ["aten::softplus", "aten::exp", "aten::sub", "aten::add_", "aten::index", "aten::mul_", "aten::index",
                    "aten::item"]  # fmt: skip


def test_nothing_is_left_when_it_is_off() -> None:
    """Function bodies, kernel tables, hooks and the walk's switch are what they were, after an error too."""
    device = tc.device("cpu")
    table, body = device.kernels, tc.matmul.__code__
    with pytest.raises(ShapeError), profile() as prof:
        tc.matmul(tc.ones(2, 3), tc.ones(2, 3))
    assert "aten::matmul" in names(prof.events())
    assert (device.kernels, tc.matmul.__code__, mode.around) == (table, body, None)
    every = nn.hooks.EVERY
    assert [*every.forward_pre, *every.forward, *every.backward_pre, *every.backward] == []


@pytest.mark.parametrize("first_in", [True, False])
def test_autocast_and_profiler_overlap(first_in) -> None:
    """Regions that begin inside and end outside, or the other way round, leave each function its own body."""
    body = tc.matmul.__code__
    x = tc.ones(2, 2)
    region, prof = tc.autocast("cpu"), profile()
    order = [prof, region] if first_in else [region, prof]
    for one in order:
        one.__enter__()
    assert tc.matmul(x, x).dtype is tc.bfloat16
    order[0].__exit__(None, None, None)
    assert tc.matmul(x, x).dtype is (tc.bfloat16 if first_in else tc.float32)
    order[1].__exit__(None, None, None)
    assert tc.matmul(x, x).dtype is tc.float32
    assert tc.matmul.__code__ is body
    assert "aten::matmul" in names(prof.events())


def test_nodes_are_seen_with_the_module_that_recorded_them() -> None:
    """The backward walk shows each node, and which module it belongs to."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid())
    with profile() as prof:
        model(tc.ones(1, 2)).sum().backward()
    nodes = {one.name: one.module for one in prof.events() if one.kind == "backward"}
    assert nodes == {
        "SumBackward0": "", "SigmoidBackward0": "Sequential.1", "AddmmBackward0": "Sequential.0",
        "torch::autograd::AccumulateGrad": "",
    }  # fmt: skip
    averages = {one.key: one for one in prof.module_averages()}
    assert set(averages) == {"Sequential", "Sequential.0", "Sequential.1"}
    assert averages["Sequential"].cpu_time_total >= averages["Sequential.0"].cpu_time_total


def test_leaves_that_are_complete_early_are_seen() -> None:
    """Where someone listens for complete gradients, the leaves' nodes are events too."""
    x, y = tc.ones(2, requires_grad=True), tc.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    with profile() as prof:
        (x * y).sum().backward()
    assert [one.name for one in prof.events() if one.kind == "backward"].count("torch::autograd::AccumulateGrad") == 2


def test_self_time_is_without_children() -> None:
    """What the parts of a span take is not the span's own."""
    with profile() as prof, record_function("outer"):
        tc.ones(3).exp()
    outer = next(one for one in prof.events() if one.name == "outer")
    inside = sum(one.cpu_time_total for one in outer.cpu_children)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inside)
    assert outer.is_user_annotation


def test_averages_count_calls_and_shapes() -> None:
    """One row for a name, or for a name and shapes; kernels count in their ops."""
    with profile(record_shapes=True) as prof:
        for n in (2, 2, 3):
            tc.ones(n).exp()
    exp = next(one for one in prof.key_averages() if one.key == "aten::exp")
    by_shape = {str(one.input_shapes): one.count for one in prof.key_averages(True) if one.key == "aten::exp"}
    assert (exp.count, by_shape) == (3, {"[[2]]": 2, "[[3]]": 1})
    assert not [one for one in prof.key_averages() if one.key == "kernel::exp"]


def test_memory_is_what_kernels_made() -> None:
    """Results count in bytes; views, and writes into what is there, do not."""
    x = tc.ones(10, 10)
    with profile(profile_memory=True) as prof:
        x.t()
        x.add_(1)
        x.exp()
    found = {one.key: one.cpu_memory_usage for one in prof.key_averages()}
    assert (found["aten::t"], found["aten::add_"], found["aten::exp"]) == (0, 0, 400)


def test_operations_are_counted_once() -> None:
    """A product is two operations for each multiply-add, in its op and in the spans around it."""
    with profile(with_flops=True) as prof, record_function("part"):
        tc.ones(2, 3) @ tc.ones(3, 4)
    found = {one.key: one.flops for one in prof.key_averages()}
    assert (found["aten::matmul"], found["part"]) == (48, 48)


def test_stack_is_the_programs_own() -> None:
    """The innermost line is the one that called the op; the library's own are left out."""
    with profile(with_stack=True) as prof:
        nn.Linear(2, 2)(tc.ones(1, 2))
    linear = next(one for one in prof.events() if one.name == "aten::linear")
    assert linear.stack[0].endswith(": test_stack_is_the_programs_own")
    assert "nn/module.py" not in str(linear.stack)


def test_threads_have_their_own_nesting() -> None:
    """What another thread runs has no parent on this one."""
    with profile() as prof, record_function("here"):
        other = threading.Thread(target=lambda: tc.ones(2).exp())
        other.start()
        other.join()
    exp = next(one for one in prof.events() if one.name == "aten::exp")
    assert exp.cpu_parent is None
    assert exp.thread != next(one.thread for one in prof.events() if one.name == "here")


def test_spans_decorate_and_do_nothing_when_off() -> None:
    """A decorated function is an event per call; outside of a profiler nothing happens."""

    @record_function("mine")
    def function() -> int:
        return 3

    assert function() == 3
    with profile() as prof:
        function()
    assert names(prof.events()) == ["mine"]


def test_a_second_profiler_is_refused() -> None:
    """One is on at a time, and the first goes on."""
    with profile() as prof:
        with pytest.raises(UsageError, match="stop the first"):
            profile().start()
        tc.ones(2)
    assert "aten::ones" in names(prof.events())


def test_a_schedule_records_what_it_says() -> None:
    """One step of waiting, one of warming up, two recorded, twice: the trace is ready two times."""
    ready = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready.append) as prof:
        seen = []
        for _ in range(10):
            tc.ones(1)
            prof.step()
            if len(ready) > len(seen):
                seen.append([one.name for one in prof.events() if one.is_user_annotation])
    assert seen == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert len(ready) == 2
    assert [one.count for one in prof.key_averages() if one.key == "ProfilerStep*"] == [2]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize(
    "options",
    [
        dict(wait=1, warmup=1, active=2), dict(wait=0, warmup=0, active=1), dict(wait=2, warmup=1, active=1, repeat=1),
        dict(wait=1, warmup=0, active=3, skip_first=2, repeat=2), dict(wait=2, warmup=1, active=1, skip_first_wait=1),
    ],
)  # fmt: skip
def test_schedule_is_that_of_pytorch(torch, options) -> None:
    """Step by step the same actions."""
    theirs = torch.profiler.schedule(**options)
    mine = schedule(**options)
    assert [mine(i).name for i in range(20)] == [theirs(i).name for i in range(20)]


def test_trace_file_nests_by_time(tmp_path) -> None:
    """Complete events of one thread in microseconds, modules and metadata among them; packed as ``.gz``."""
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me", use_gzip=True)) as prof:
        prof.add_metadata("run", "first")
        prof.add_metadata_json("lr", "0.5")
        nn.ReLU()(tc.ones(2))
    (path,) = tmp_path.glob("me.*.pt.trace.json.gz")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    entries = {one["name"]: one for one in trace["traceEvents"] if one["ph"] == "X"}
    assert (trace["run"], trace["lr"], entries["ReLU"]["cat"]) == ("first", 0.5, "module")
    outer, inner = entries["aten::relu"], entries["kernel::relu"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.002


def test_stacks_file_has_times(tmp_path) -> None:
    """A line for each stack, the outermost frame first, with whole microseconds at its end."""
    with profile(with_stack=True) as prof:
        tc.ones(1000, 1000).exp().sum()
    prof.export_stacks(str(tmp_path / "stacks"))
    line = (tmp_path / "stacks").read_text().splitlines()[0]
    assert int(line.rpartition(" ")[2]) > 0
    assert "test_stacks_file_has_times" in line.rpartition(";")[2]
    with profile() as prof:
        pass
    with pytest.raises(UsageError, match="with_stack"):
        prof.export_stacks(str(tmp_path / "none"))


def test_flame_chart_is_a_picture(tmp_path) -> None:
    """A PNG; of nothing there is none."""
    pytest.importorskip("matplotlib")
    with profile() as prof:
        nn.Linear(3, 3)(tc.ones(2, 3)).sum().backward()
    prof.export_flame_chart(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"
    with profile() as empty:
        pass
    with pytest.raises(UsageError):
        empty.export_flame_chart(tmp_path / "none.png")


def test_table_sorts_limits_and_says_what_it_cannot() -> None:
    """The largest first, as many rows as asked for, times in one unit."""
    with profile() as prof:
        tc.ones(2).exp()
        tc.ones(200, 200).exp()
    text = prof.key_averages().table(sort_by="cuda_time_total", row_limit=1, time_unit="ms", header="Times")
    assert text.splitlines()[0] == "Times"
    assert len([line for line in text.splitlines() if "aten::" in line]) == 1
    with pytest.raises(ArgumentError, match="sort_by"):
        prof.key_averages().table(sort_by="speed")
    with pytest.raises(ArgumentError, match="time_unit"):
        prof.key_averages().table(time_unit="h")


def test_older_names_give_the_same() -> None:
    """``autograd.profiler.profile`` records too, and not where it is not enabled."""
    with tc.autograd.profiler.profile(record_shapes=True) as prof:
        tc.ones(2)
    assert "aten::ones" in prof.key_averages().table()
    assert prof.total_average().count == len(prof.key_averages())
    with tc.autograd.profiler.profile(enabled=False) as off:
        tc.ones(2)
    assert len(off.function_events) == 0


@pytest.mark.parametrize(
    "error, call",
    [
        (ArgumentTypeError, lambda: record_function(3)),
        (ArgumentError, lambda: schedule(wait=-1, warmup=0, active=1)),
        (ArgumentError, lambda: schedule(wait=0, warmup=0, active=0)),
        (ArgumentError, lambda: schedule(wait=0, warmup=1, active=1)(-1)),
        (ArgumentError, lambda: profile(activities=[])),
    ],
)
def test_wrong_arguments_are_refused(error, call) -> None:
    """Names, steps and activities that make no sense."""
    with pytest.raises(error):
        call()


def test_actions_are_enumerated_as_in_pytorch() -> None:
    """Programs compare them by name."""
    assert [one.name for one in ProfilerAction] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
