"""The profiler under its older names: ``torch.autograd.profiler``."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import UsageError
from tensorcore.profiler import ProfilerActivity, record_function
from tensorcore.profiler.events import EventList, FunctionEventAvg
from tensorcore.profiler.profile import profile as _profile
from tensorcore.profiler.recorder import current as _current

__all__ = ["emit_nvtx", "profile", "record_function"]


def _profiler_enabled() -> bool:
    """Whether some profile records now."""
    return _current() is not None


def _disable_profiler() -> None:
    """End what records now, for programs whose last profile was left open."""
    if (recorder := _current()) is not None:
        recorder.stop()


class emit_nvtx:
    """Would mark each op in the timeline of NVIDIA's profiler, which is not written to from here.

    Args:
        enabled: False makes it do nothing; True is refused on entry.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise UsageError(
                "emit_nvtx: expected enabled=False, got True; no marks are written here, take torch.profiler.profile instead"
            )
        return self

    def __exit__(self, *error: object) -> None:
        pass


class profile:
    """Within a ``with``, records what the program calls; see ``torch.profiler.profile``, which has more to set.

    Args:
        enabled: False makes it do nothing.
        use_cuda, use_device: time kernels of devices other than the host to their ends.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        **options: Any,
    ) -> None:
        self.enabled = enabled
        activities = {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if use_cuda or use_device else [])}
        self._inner = _profile(
            activities=activities, record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory,
            with_stack=with_stack, with_modules=with_modules,
        )  # fmt: skip

    def __enter__(self) -> profile:
        if self.enabled:
            self._inner.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            self._inner.stop()

    @property
    def function_events(self) -> EventList:
        """Every event, in the order of beginnings."""
        return self._inner.events()

    @property
    def self_cpu_time_total(self) -> float:
        """The self times of all ops, in microseconds."""
        return self._inner.key_averages().self_cpu_time_total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The averages by name."""
        return self._inner.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """One average over all."""
        return self._inner.key_averages().total_average()

    def table(self, *args: Any, **options: Any) -> str:
        """The events as text, see ``EventList.table``."""
        return self._inner.events().table(*args, **options)

    def export_chrome_trace(self, path: str) -> None:
        """Write a file that chrome://tracing and ui.perfetto.dev open."""
        self._inner.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks with their times for flame graph tools."""
        self._inner.export_stacks(path, metric)
