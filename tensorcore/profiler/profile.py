"""The profiler as programs use it: a context manager with a schedule of steps, and what it gives when it is ready."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.backend.registry import made_devices
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.profiler import trace
from tensorcore.profiler.events import EventList, FunctionEvent, module_averages
from tensorcore.profiler.recorder import Recorder

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What is timed: calls on the host, and kernels of devices to their ends."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be timed here: the host, and GPUs where a device has one in use."""
    others = any([not one.capabilities.host and one.capabilities.values for one in made_devices()])
    return {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if others else [])}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What to do at each step: skip the first ones, then wait, warm up and record in turn.

    Args:
        repeat: how many such turns there are; 0 for as many as there are steps.
        skip_first: steps before the first turn.
        skip_first_wait: 1 lets the first turn begin without waiting.
    """
    for name, value in dict(wait=wait, warmup=warmup, repeat=repeat, skip_first=skip_first).items():
        if value < 0:
            raise ArgumentError(
                f"schedule: expected {name} of 0 or more, got {value}; Invalid profiler schedule arguments"
            )
    if active <= 0:
        raise ArgumentError(
            f"schedule: expected active of 1 or more, got {active}; Invalid profiler schedule arguments"
        )
    if not warmup:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ArgumentError(f"schedule: expected a step of 0 or more, got {step}; count from 0")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        turn = wait + warmup + active
        if repeat and step // turn >= repeat:
            return ProfilerAction.NONE
        within = step % turn
        if within < wait:
            return ProfilerAction.NONE
        if within < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if within < turn - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An ``on_trace_ready`` that writes each trace into a directory, under a name that TensorBoard's plugin knows."""

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class profile:
    """Within a ``with``, or from ``start()`` to ``stop()``, records what the program calls.

    While none is on, ops, kernels and modules run without any test for it.

    Args:
        activities: what to time; ``CUDA`` (or any other but ``CPU``) waits for each kernel on a device other than the
            host, so that its time is its own, and makes the program slower. ``CPU`` alone where None.
        schedule: what to do at each ``step()``, see :func:`schedule`; everything is recorded where None.
        on_trace_ready: called with this profiler when a turn of the schedule, or the whole, has ended.
        record_shapes: note the shapes of arguments.
        profile_memory: note the bytes of what kernels make.
        with_stack: note the lines of the program that led to each call.
        with_flops: count multiplications and additions.
        with_modules: kept for programs that pass it; modules are always noted.
        acc_events: keep the events of earlier turns.
        experimental_config, execution_trace_observer, use_cuda, custom_trace_id_callback: taken and not needed.

    Attributes:
        step_num: how often ``step`` was called.
        current_action: what the schedule says now.

    Raises UsageError where two are on at a time in one process.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else {ProfilerActivity.CPU}
        if not self.activities:
            raise ArgumentError("profile: expected an activity at least, got none; No valid profiler activities found")
        self.schedule, self.on_trace_ready, self.acc_events = schedule, on_trace_ready, acc_events
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self.step_num = 0
        self.current_action = schedule(0) if schedule else ProfilerAction.RECORD_AND_SAVE
        self._metadata: dict[str, Any] = {}
        self._recorder: Recorder | None = None
        self._step: Any = None
        self._events = EventList()
        self._modules = EventList()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, with what the schedule says for the first step."""
        self._follow(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End; where something was recorded, it is ready now."""
        self._end_step()
        self._follow(self.current_action, ProfilerAction.NONE)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """Say that the next step of the program begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        if self.schedule is not None:
            self.current_action = self.schedule(self.step_num)
        if self.schedule is not None:
            self._follow(before, self.current_action)
        self._begin_step()

    # What was seen

    def events(self) -> EventList:
        """Every op, kernel, node and span of the user's, in the order of beginnings."""
        self._check("events")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The averages by name; ``print(prof.key_averages().table(sort_by="self_cpu_time_total"))``."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def module_events(self) -> EventList:
        """The calls of modules, under their paths."""
        self._check("module_events")
        return self._modules

    def module_averages(self) -> EventList:
        """The averages by module path; the nodes that a module left on the tape count in it."""
        return module_averages(self.events(), self._modules)

    def export_chrome_trace(self, path: str) -> None:
        """Write a file that chrome://tracing and ui.perfetto.dev open; packed where it ends in ``.gz``."""
        trace.write_trace(path, sorted([*self.events(), *self._modules], key=lambda one: one.start), self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks with their times for flame graph tools; needs ``with_stack=True``."""
        if not self.with_stack:
            raise UsageError("export_stacks: expected with_stack=True, got False; pass it to the profiler")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines([f"{line}\n" for line in trace.stacks(self.events(), metric)])

    def export_flame_chart(self, path: Any, *, title: str = "Calls over time", width: float = 14.0) -> None:
        """Draw calls over time into a PNG (or whatever matplotlib writes); ``width`` is in inches."""
        trace.flame_chart(path, [*self.events(), *self._modules], title, width)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a string into the trace file."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, written as JSON, into the trace file."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    # The schedule

    def _follow(self, before: ProfilerAction, now: ProfilerAction) -> None:
        none, warmup, save = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE
        if before is save and (self.schedule is not None or now is none):
            self._collect()
            if now is none:
                self._stop_recorder()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.RECORD and now in (none, warmup):
            self._collect()  # stopped in mid-turn: what there is
            if now is none:
                self._stop_recorder()
                if self.on_trace_ready is not None:
                    self.on_trace_ready(self)
        if now is none:
            self._stop_recorder()
        elif self._recorder is None:
            others = bool(self.activities - {ProfilerActivity.CPU})
            self._recorder = Recorder(
                shapes=self.record_shapes, stack=self.with_stack, flops=self.with_flops, memory=self.profile_memory,
                devices=others,
            )  # fmt: skip
            try:
                self._recorder.start()
            except BaseException:
                self._recorder = None
                raise
        elif before is warmup and now is not warmup:
            self._recorder.clear()

    def _stop_recorder(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()
            self._recorder = None

    def _begin_step(self) -> None:
        if self._recorder is not None and self.schedule is not None:
            self._step = self._recorder.begin(f"ProfilerStep#{self.step_num}", "user")

    def _end_step(self) -> None:
        if self._recorder is not None and self._step is not None:
            self._recorder.end(self._step)
        self._step = None

    def _collect(self) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        seconds = (time.perf_counter_ns() - recorder.origin) / 1e9
        made = _tree(recorder.raw, recorder.origin), _tree(recorder.modules, recorder.origin)
        kept = (self._events, self._modules) if self.acc_events else ([], [])
        self._events, self._modules = [
            EventList([*old, *new], seconds=seconds, memory=self.profile_memory)
            for old, new in zip(kept, made, strict=True)
        ]
        recorder.clear()

    def _check(self, what: str) -> None:
        if self._recorder is not None and not self._events:
            # Asked inside the ``with``: what there is so far.
            self._collect()


def _tree(raw: list[Any], origin: int) -> list[FunctionEvent]:
    """The events in the order of their beginnings, with their parents, and sums over their children."""
    made = {id(one): FunctionEvent(one, origin) for one in raw}
    for one in raw:
        event, parent = made[id(one)], one.parent
        while parent is not None and id(parent) not in made:
            parent = parent.parent  # still under way
        if parent is not None:
            event.cpu_parent = made[id(parent)]
            event.cpu_parent.cpu_children.append(event)
    # Raw events stand in the order of their ends: every child before its parent.
    for one in raw:
        event = made[id(one)]
        if event.cpu_parent is not None:
            above = event.cpu_parent
            if event.kind != "kernel":
                above.self_cpu_time_total -= event.cpu_time_total
            if above.kind != "kernel":
                above.kernel_time_total += event.kernel_time_total
            above.device_time_total += event.device_time_total
            above.cpu_memory_usage += event.cpu_memory_usage
            above.device_memory_usage += event.device_memory_usage
            above.flops += event.flops
            if event.kind == "kernel":
                above.self_cpu_memory_usage += event.self_cpu_memory_usage
                above.self_device_memory_usage += event.self_device_memory_usage
                above.self_device_time_total += event.self_device_time_total
            if not above.device:
                above.device = event.device
    found = sorted(made.values(), key=lambda one: one.start)
    for i, event in enumerate(found):
        event.id = i
        event.cpu_children.sort(key=lambda one: one.start)
    return found
