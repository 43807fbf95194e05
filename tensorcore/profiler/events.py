"""What a profiler saw: one event for each call, and the averages of calls of one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.utils.tables import bytes_text, count_text, table_text, time_text

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]


class _Times:
    """The attributes that an event and an average share, times in microseconds and memory in bytes.

    Attributes:
        key: the name, of steps without their numbers.
        kind: ``op``, ``kernel``, ``backward`` (a node of the tape), ``user`` (``record_function``) or ``module``.
        count: how many calls.
        cpu_time_total: from the beginning to the end, children included; ``self_cpu_time_total`` without.
        kernel_time_total: the part of it that was spent in kernels of backends.
        device_time_total: the part of it in kernels of devices other than the host, from the start of the kernel to
            its end on the device; 0 unless the profiler was asked for that activity.
        cpu_memory_usage, device_memory_usage: bytes of results that kernels made, of the host and of other devices,
            views and writes not counted; the self forms without those of children.
        flops: multiplications and additions, see ``tensorcore.utils.flop_counter``.
        input_shapes: of the tensors among the arguments.
        stack: lines of the user's program that led to the call, the innermost first.
    """

    key: str
    kind: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    kernel_time_total: float
    device_time_total: float
    self_device_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    flops: int
    input_shapes: Any
    stack: list[str]
    cpu_parent: Any = None

    @property
    def cpu_time(self) -> float:
        """The mean of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The mean of one call on the device."""
        return self.device_time_total / self.count if self.count else 0.0


_SUMS = (
    "count", "cpu_time_total", "self_cpu_time_total", "kernel_time_total", "device_time_total", "self_device_time_total",
    "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "flops",
)  # fmt: skip


class FunctionEvent(_Times):
    """One call. ``time_range`` is (start, end) in microseconds from the profiler's start.

    Attributes:
        id: its place in the order of beginnings.
        thread: the thread's number.
        device: where its kernels ran, as text; empty where there were none.
        module: the path of the module that was running; of a node, of the module that recorded it.
        cpu_parent, cpu_children: the calls around and within it.
    """

    def __init__(self, raw: Any, origin: int) -> None:
        self.id, self.name, self.kind, self.thread = 0, raw.name, raw.kind, raw.thread
        self.key = "ProfilerStep*" if raw.name.startswith("ProfilerStep#") else raw.name
        self.start, self.end = (raw.start - origin) / 1e3, (raw.end - origin) / 1e3
        self.count = 1
        self.cpu_time_total = self.self_cpu_time_total = self.end - self.start
        self.kernel_time_total = self.cpu_time_total if raw.kind == "kernel" else 0.0
        self.device_time_total = self.self_device_time_total = raw.device_ns / 1e3
        host, other = (raw.nbytes, 0) if raw.host else (0, raw.nbytes)
        self.cpu_memory_usage = self.self_cpu_memory_usage = host
        self.device_memory_usage = self.self_device_memory_usage = other
        self.flops = raw.flops
        self.input_shapes = raw.shapes or []
        self.stack = raw.stack or []
        self.module, self.device = raw.module, raw.device
        self.cpu_children: list[FunctionEvent] = []

    @property
    def time_range(self) -> tuple[float, float]:
        """Start and end."""
        return self.start, self.end

    @property
    def is_user_annotation(self) -> bool:
        """Whether ``record_function`` made it."""
        return self.kind == "user"

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} {time_text(self.cpu_time_total)} {len(self.cpu_children)} children>"


class FunctionEventAvg(_Times):
    """The sums over all calls of one key."""

    def __init__(self, first: FunctionEvent, key: str) -> None:
        self.key, self.kind, self.input_shapes, self.stack = key, first.kind, first.input_shapes, first.stack
        for name in _SUMS:
            setattr(self, name, 0)

    def add(self, other: _Times) -> FunctionEventAvg:
        """Count another call, or the calls of another average."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key}: {self.count} calls, {time_text(self.cpu_time_total)}>"


class EventList(list[Any]):
    """Events or averages, which print as a table.

    ``seconds`` is the wall time between the profiler's start and stop.
    """

    def __init__(self, events: Iterable[Any] = (), *, seconds: float = 0.0, memory: bool = False) -> None:
        super().__init__(events)
        self.seconds, self._memory = seconds, memory

    @property
    def self_cpu_time_total(self) -> float:
        """The self times of all of them; a kernel's is within that of its op."""
        return sum(
            [
                one.self_cpu_time_total
                for one in self
                if one.kind != "collective" and (one.kind != "kernel" or not one.cpu_parent)
            ]
        )

    def total_average(self) -> FunctionEventAvg:
        """One average over all."""
        if not self:
            raise ArgumentError("total_average: expected an event at least, got none; profile something first")
        made = FunctionEventAvg(self[0], "Total")
        for one in self:
            made.add(one)
        return made

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The averages by name, and on demand by the shapes of the inputs and the innermost lines of the stack.

        Kernels count in the op that called them, and stand for themselves where none did.
        """
        return _averages(
            self,
            lambda one: (
                one.key,
                str(one.input_shapes) if group_by_input_shapes else "",
                tuple(one.stack[:group_by_stack_n]),
            ),
            [one for one in self if not (one.kind == "kernel" and one.cpu_parent is not None)],
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The rows as text.

        Args:
            sort_by: an attribute such as ``cpu_time_total``, ``self_cpu_time_total``, ``count``, ``kernel_time_total``,
                ``cpu_memory_usage``, ``flops`` (largest first), ``cuda`` in the place of ``device`` as PyTorch has it.
            row_limit: how many rows; -1 for all.
            header: a line above.
            top_level_events_only: of events, only those within no other.
            time_unit: ``s``, ``ms`` or ``us``; whatever suits each number where None.
        """
        rows = [one for one in self if not (top_level_events_only and getattr(one, "cpu_parent", None))]
        if sort_by is not None:
            attribute = sort_by.replace("cuda", "device").replace("xpu", "device")
            if attribute not in (*_SUMS, "cpu_time", "device_time"):
                raise ArgumentError(
                    f"table: expected sort_by among {', '.join(_SUMS)}, got {sort_by!r}; name one of them"
                )
            rows.sort(key=lambda one: -getattr(one, attribute))
        shown = rows if row_limit < 0 else rows[:row_limit]
        wanted = [
            (head, cell) for head, cell, is_there in self._columns(time_unit) if is_there is None or is_there(self)
        ]
        name = _shortened(max_name_column_width)
        cells = [[name(one.key), *[cell(one) for _, cell in wanted]] for one in shown]
        heads = ["Name", *[head for head, _ in wanted]]
        for head, attribute, width in (
            ("Input Shapes", "input_shapes", max_shapes_column_width),
            ("Source Location", "stack", max_src_column_width),
        ):
            if any([getattr(one, attribute) for one in self]):
                heads.append(head)
                short = _shortened(width)
                for one, line in zip(shown, cells, strict=True):
                    value = getattr(one, attribute)
                    line.append(short(str(value[0] if value else "") if attribute == "stack" else str(value)))
        footer = f"Self CPU time total: {_time(time_unit)(self.self_cpu_time_total)}"
        if any([one.self_device_time_total for one in self]):
            footer += f"\nDevice time total: {_time(time_unit)(sum([one.self_device_time_total for one in self]))}"
        made = table_text(heads, cells, footer=footer)
        return f"{header}\n{made}" if header else made

    def _columns(self, unit: str | None) -> list[tuple[str, Callable[[Any], str], Any]]:
        time = _time(unit)
        total = self.self_cpu_time_total or 1.0
        device = sum([one.self_device_time_total for one in self])

        def on_device(found: Any) -> bool:
            return bool(device)

        def any_of(name: str) -> Callable[[Any], bool]:
            return lambda found: any([getattr(one, name) for one in found])

        return [
            ("Self CPU %", lambda one: f"{100 * one.self_cpu_time_total / total:.2f}%", None),
            ("Self CPU", lambda one: time(one.self_cpu_time_total), None),
            ("CPU total %", lambda one: f"{100 * one.cpu_time_total / total:.2f}%", None),
            ("CPU total", lambda one: time(one.cpu_time_total), None),
            ("CPU time avg", lambda one: time(one.cpu_time), None),
            ("In kernels", lambda one: time(one.kernel_time_total), None),
            ("Self Device", lambda one: time(one.self_device_time_total), on_device),
            ("Self Device %", lambda one: f"{100 * one.self_device_time_total / (device or 1):.2f}%", on_device),
            ("Device total", lambda one: time(one.device_time_total), on_device),
            ("CPU Mem", lambda one: bytes_text(one.cpu_memory_usage), lambda found: self._memory),
            ("Self CPU Mem", lambda one: bytes_text(one.self_cpu_memory_usage), lambda found: self._memory),
            ("Device Mem", lambda one: bytes_text(one.device_memory_usage), any_of("device_memory_usage")),
            ("# of Calls", lambda one: str(one.count), None),
            ("Total FLOPs", lambda one: count_text(one.flops) if one.flops else "--", any_of("flops")),
        ]

    def __str__(self) -> str:
        return self.table()


def module_averages(events: EventList, modules: EventList) -> EventList:
    """The averages of modules by path: the time of their calls, and of the nodes they left on the tape."""
    found = _averages(modules, lambda one: (one.key,), modules)
    by_path = {one.key: one for one in found}
    for event in events:
        mine = by_path.get(event.module)
        if mine is None:
            continue
        top = event.cpu_parent is None or event.cpu_parent.module != event.module
        if event.kind == "backward" and top:
            # A module's own backward, in its row and in those of the modules around it.
            mine.self_cpu_time_total += event.cpu_time_total
            for path, one in by_path.items():
                if event.module == path or event.module.startswith(f"{path}."):
                    one.cpu_time_total += event.cpu_time_total
        if top:
            for path, one in by_path.items():
                if event.module == path or event.module.startswith(f"{path}."):
                    for name in ("kernel_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage",
                                 "flops"):  # fmt: skip
                        setattr(one, name, getattr(one, name) + getattr(event, name))
            for name in ("cpu_memory_usage", "device_memory_usage"):
                setattr(mine, f"self_{name}", getattr(mine, f"self_{name}") + getattr(event, name))
            mine.self_device_time_total += event.device_time_total
    return found


def _averages(whole: EventList, key_of: Callable[[Any], Any], events: Iterable[Any]) -> EventList:
    found: dict[Any, FunctionEventAvg] = {}
    for one in events:
        key = key_of(one)
        if key not in found:
            found[key] = FunctionEventAvg(one, one.key)
        found[key].add(one)
    return EventList(found.values(), seconds=whole.seconds, memory=whole._memory)


def _shortened(width: int) -> Callable[[str], str]:
    return lambda text: text if len(text) <= width else text[: width - 3] + "..."


def _time(unit: str | None) -> Callable[[float], str]:
    if unit is None:
        return time_text
    scales = {"s": 1e6, "ms": 1e3, "us": 1.0}
    if unit not in scales:
        raise ArgumentError(f"table: expected time_unit 's', 'ms' or 'us', got {unit!r}; leave it out")
    return lambda microseconds: f"{microseconds / scales[unit]:.3f}{unit}"
