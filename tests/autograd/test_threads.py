"""Recording and differentiation on several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as t
from tensorcore.tape.mode import mode


def together(*functions: Callable[[], Any]) -> None:
    """Run them on a thread each; the first error is raised here."""
    errors = []

    def guarded(function: Callable[[], Any]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in functions]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if errors:
        raise errors[0]


def test_no_grad_stays_on_its_thread() -> None:
    """While one thread does not record, another one does."""
    x = t.ones(3, requires_grad=True)
    inside, done = threading.Event(), threading.Event()
    found = []

    def silent() -> None:
        with t.no_grad():
            inside.set()
            done.wait(10)
            found.append((x * 2.0).requires_grad)

    def recording() -> None:
        inside.wait(10)
        found.append((x * 2.0).requires_grad)
        done.set()

    together(silent, recording)
    assert found == [True, False]
    assert t.is_grad_enabled()


def test_a_new_thread_records() -> None:
    """A thread that is started inside ``no_grad`` starts with recording on."""
    found = []
    with t.no_grad():
        together(lambda: found.append(t.is_grad_enabled()))
    assert found == [True]


def test_walks_on_many_threads_add_up() -> None:
    """Backward walks to one leaf lose no sum."""
    x = t.zeros(50_000, requires_grad=True)

    def work() -> None:
        for _ in range(20):
            (x * 1.0).sum().backward()

    together(*[work] * 4)
    assert x.grad.tolist() == [80.0] * 50_000


def test_anomaly_mode_stays_on_its_thread() -> None:
    """``set_detect_anomaly`` on one thread is not seen by another."""
    found = []
    with t.autograd.set_detect_anomaly(True):
        together(lambda: found.append(t.autograd.is_anomaly_enabled()))
    assert found == [False]


def test_saved_tensor_hooks_stay_on_their_thread() -> None:
    """What another thread records does not go through this thread's pack hook."""
    x = t.ones(3, requires_grad=True)
    log: list[str] = []
    with t.autograd.graph.saved_tensors_hooks(lambda v: log.append("packed") or v, lambda v: v):
        together(lambda: x.exp())
    assert log == []


def test_an_interrupt_as_a_walk_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ctrl-C between the switching off of recording and the first gradient leaves recording on."""
    settle, calls = type(mode).settle, []

    def interrupted(self: object) -> None:
        settle(self)
        calls.append(mode.enabled)
        if calls == [False]:
            raise KeyboardInterrupt

    monkeypatch.setattr(type(mode), "settle", interrupted)
    x = t.ones(2, requires_grad=True)
    with pytest.raises(KeyboardInterrupt):
        x.sum().backward()
    assert t.is_grad_enabled()
    assert calls == [False, True]
    (2 * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
