"""``torch.utils.benchmark``: the time of a statement, measured so that two of them can be compared."""

from __future__ import annotations

import statistics
import sys
import timeit
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tensorcore.accelerator import current_accelerator
from tensorcore.accelerator import synchronize as _synchronize
from tensorcore.errors import ArgumentError
from tensorcore.threads import get_num_threads, set_num_threads
from tensorcore.utils.tables import table_text

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer"]

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def timer() -> float:
    """The clock in seconds, once the accelerator, where there is one, has done what it was given."""
    if current_accelerator() is not None:
        _synchronize()
    return timeit.default_timer()


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time of ``t`` seconds reads best, and its length in seconds."""
    length, unit = next((one for one in reversed(_UNITS) if t >= one[0]), _UNITS[0])
    return unit, length


@dataclass(frozen=True)
class TaskSpec:
    """What was measured, and what it is called in a table."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, else the statement itself."""
        if self.label is None:
            return self.stmt.strip()
        return self.label + (f": {self.sub_label}" if self.sub_label else "")

    def summarize(self) -> str:
        """Title, description and environment, a line each."""
        return "\n".join(one for one in (self.title, self.description, self.env) if one)


@dataclass
class Measurement:
    """Some runs of one statement.

    Attributes:
        number_per_run: how often the statement ran between two looks at the clock.
        raw_times: the seconds between them.
        task_spec: what was measured.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (name not in TaskSpec.__dataclass_fields__ and name != "title"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.task_spec, name)

    @cached_property
    def times(self) -> list[float]:
        """Seconds of one call of the statement, of each run."""
        return [one / self.number_per_run for one in self.raw_times]

    @property
    def median(self) -> float:
        """The middle of the times."""
        return statistics.median(self._some())

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self._some())

    @property
    def iqr(self) -> float:
        """From the first to the third quartile of the times."""
        times = self._some()
        if len(times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(times, n=4, method="inclusive")
        return third - first

    @property
    def has_warnings(self) -> bool:
        """Whether the quartiles are further apart than a tenth of the median."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the quartiles are within ``threshold`` times the median."""
        return self.iqr / self.median < threshold

    @property
    def as_row_name(self) -> str:
        """How a table calls the row."""
        return self.task_spec.sub_label or self.task_spec.stmt.strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for one in measurements:
            groups.setdefault(one.task_spec, []).append(one)
        return [Measurement(1, [time for one in group for time in one.times], spec) for spec, group in groups.items()]

    def _some(self) -> list[float]:
        if not self.raw_times:
            raise ArgumentError("Measurement: expected at least one run, got none; call timeit or blocked_autorange")
        return self.times

    def __repr__(self) -> str:
        unit, length = select_unit(self.median)
        several, threads = len(self.times) > 1, self.task_spec.num_threads
        lines = [
            f"{object.__repr__(self)}",
            self.task_spec.summarize(),
            f"  {'Median: ' if several else ''}{self.median / length:.2f} {unit}",
        ]
        if len(self.times) >= 4:
            lines.append(f"  IQR:    {self.iqr / length:.2f} {unit}")
        lines.append(f"  {len(self.times)} measurement{'s' if several else ''}, {self.number_per_run} runs "
                     f"{'per measurement, ' if several else ', '}{threads} thread{'s' if threads > 1 else ''}")  # fmt: skip
        if several and self.has_warnings:
            lines.append(f"  WARNING: Interquartile range is {self.iqr / self.median:.1%} of the median measurement.")
        return "\n".join(lines)


class Timer:
    """Runs a statement many times and measures it; what an accelerator still has to do is waited for.

    Args:
        stmt: Python code.
        setup: code that runs before each measurement, unmeasured.
        timer: the clock.
        globals: the names that the code sees; ``torch`` is one of them in any case.
        label, sub_label, description, env: what tables call it: the table, the row, the column, and the place.
        num_threads: how many threads a kernel on the host may use meanwhile.
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
                 globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: Any = "python") -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ArgumentError(f"Timer: Currently only a `str` stmt is supported, got {stmt!r}; name it in globals")
        if str(language).rpartition(".")[2].lower() not in ("python", "py"):
            raise ArgumentError(f"Timer: expected statements in Python, got language={language!r}; leave it out")
        if global_setup:
            raise ArgumentError("Timer: global_setup is for C++ only, got some for Python; put it in setup")
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer, {"torch": sys.modules["tensorcore"], **(globals or {})})

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One run of ``number`` calls, after a warm-up of a hundredth."""
        self._times(max(number // 100, 2), 1)
        return self._measured(number, self._times(number, 1))

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refused, as PyTorch does."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Refused, as PyTorch does."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Runs of so many calls that the clock does not matter, until ``min_run_time`` seconds are over."""
        number = self._number(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time or len(times) < 1:
            times += self._times(number, 1)
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:  # fmt: skip
        """As ``blocked_autorange``, until the quartiles are within ``threshold`` of the median."""
        number = self._number(min_run_time)
        times: list[float] = []
        while sum(times) < max_run_time:
            times += self._times(number, 1)
            if callback is not None:
                callback(number, times[-1])
            enough = len(times) > 3 and sum(times) >= min_run_time
            if enough and self._measured(number, times).meets_confidence(threshold):
                break
        return self._measured(number, times)

    def _number(self, min_run_time: float) -> int:
        """How many calls take a thousandth of the whole, so that looking at the clock is no part of it."""
        number = 1
        while True:
            taken = self._times(number, 1)[0]
            if taken >= min_run_time / 1000 or number >= 1 << 30:
                return number
            number *= 10

    def _times(self, number: int, repeat: int) -> list[float]:
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            return [max(one, 1e-9) for one in self._timer.repeat(repeat, number)]
        finally:
            set_num_threads(before)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)


class Compare:
    """Measurements as tables: one for each label, a row for each sub-label, a column for each description."""

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Take in more measurements."""
        for one in results:
            if not isinstance(one, Measurement):
                raise ArgumentError(f"Compare: Expected an instance of `Measurement`, got {type(one).__name__} instead")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Accepted: the tables show three digits."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted: the tables are plain text."""

    def highlight_warnings(self) -> None:
        """Accepted; ``Measurement.has_warnings`` tells."""

    def print(self) -> None:
        """Print the tables."""
        sys.stdout.write(f"{self}\n")

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        tables: dict[str | None, list[Measurement]] = {}
        for one in merged:
            tables.setdefault(one.task_spec.label, []).append(one)
        return "\n\n".join(_table(label, group) for label, group in tables.items())


def _table(label: str | None, results: list[Measurement]) -> str:
    columns = list(dict.fromkeys(one.task_spec.description for one in results))
    several = len({one.task_spec.num_threads for one in results}) > 1
    unit, length = select_unit(min(one.median for one in results))
    rows: dict[str, list[str]] = {}
    for one in results:
        spec = one.task_spec
        name = " ".join(part for part in (spec.env and f"({spec.env})", one.as_row_name) if part)
        name += f" [{spec.num_threads} threads]" if several else ""
        row = rows.setdefault(name, [""] * len(columns))
        row[columns.index(spec.description)] = f"{one.median / length:.3g}"
    title = f"{label or ''}, times in {unit}".lstrip(", ")
    return table_text([title, *[one or "" for one in columns]], [[name, *row] for name, row in rows.items()])
