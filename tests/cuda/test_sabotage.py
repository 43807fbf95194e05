"""Each wait in the plugin is needed: without any one of them some program races or computes wrong values."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from typing import Any

import pytest

import tensorcore as tc

pytestmark = pytest.mark.standin
WAITS = re.compile(r"wait_event\(|\.synchronize\(\)|\.used\(|record_stream\(|\.events = .*\[event\]")


def programs() -> Iterator[Any]:
    """Programs whose result is known, as functions that answer whether it came out."""

    def sent() -> bool:
        x = tc.full((64,), 2.0).pin_memory()
        return bool(((x.to("cuda", non_blocking=True) + 1).cpu() == 3).all().item())

    def sent_and_freed() -> bool:
        x = tc.full((64,), 2.0).pin_memory()
        y = x.to("cuda", non_blocking=True)
        z = y * 2
        del x, y
        other = tc.full((64,), 9.0).pin_memory()
        w = other.to("cuda", non_blocking=True) + z
        return bool((w.cpu() == 13).all().item())

    def sent_and_overwritten() -> bool:
        x = tc.full((64,), 2.0).pin_memory()
        y = x.to("cuda")
        x.fill_(9)
        return bool((y.cpu() == 2).all().item())

    def pinned_again() -> bool:
        x = tc.full((200,), 7.0).pin_memory()
        y = x.to("cuda", non_blocking=True)
        del x
        tc.full((200,), 9.0).pin_memory()
        return bool((y.cpu() == 7).all().item())

    def fetched() -> bool:
        x = tc.full((64,), 2.0, device="cuda") * 2
        y = x.to("cpu", non_blocking=True)
        x.fill_(1)
        tc.cuda.current_stream().synchronize()
        return bool((y == 4).all().item())

    def fetched_twice() -> bool:
        first = tc.full((300,), 2.0, device="cuda").to("cpu", non_blocking=True)
        del first
        other = tc.full((300,), 5.0).pin_memory()
        tc.cuda.synchronize()
        return bool((other == 5).all().item())

    def between() -> bool:
        x = tc.full((64,), 2.0, device="cuda:0") * 2
        y = x.to("cuda:1")
        x.fill_(1)
        return bool(((y + 1).cpu() == 5).all().item())

    def lent() -> bool:
        side, x = tc.cuda.Stream(), tc.full((77,), 2.0, device="cuda")
        side.wait_stream(tc.cuda.current_stream())
        with tc.cuda.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        z = tc.zeros(77, device="cuda")
        tc.cuda.current_stream().wait_stream(side)
        return bool(((y + z).cpu() == 3).all().item())

    yield from (sent, sent_and_freed, sent_and_overwritten, pinned_again, fetched, fetched_twice, between, lent)


def all_well() -> bool:
    """Whether every program comes out, without a race."""
    from cupy._timeline import Race

    try:
        return all([program() for program in programs()])
    except Race:
        return False
    finally:
        for index in range(2):
            tc.device("cuda", index).synchronize()


def sabotaged(module: types.ModuleType, number: int) -> types.ModuleType:
    """The module without one of its lines."""
    lines = inspect.getsource(module).splitlines()
    indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
    lines[number] = f"{indent}pass"
    made = types.ModuleType(module.__name__)
    made.__dict__.update({name: getattr(module, name) for name in ("__package__", "__spec__", "__file__")})
    exec(compile("\n".join(lines), str(module.__file__), "exec"), made.__dict__)
    return made


def waits_of(module: types.ModuleType) -> list[int]:
    """The lines that wait, or note what to wait for."""
    return [
        i for i, line in enumerate(inspect.getsource(module).splitlines()) if WAITS.search(line) and "def " not in line
    ]


def test_nothing_is_wrong_to_begin_with() -> None:
    """The programs come out with the plugin as it is."""
    assert all_well()


def test_each_wait_of_the_transfers_is_needed(place, monkeypatch) -> None:
    """Without any one of the lines that wait, some program fails."""
    from tensorcore_cuda import transfers

    lines = waits_of(transfers)
    assert len(lines) >= 8
    unneeded = []
    for number in lines:
        broken = sabotaged(transfers, number)
        for index in range(2):
            monkeypatch.setattr(tc.device("cuda", index), "transfers", broken.Transfers(tc.device("cuda", index)))
        if all_well():
            unneeded.append(inspect.getsource(transfers).splitlines()[number].strip())
    monkeypatch.undo()
    assert unneeded == []
    assert all_well()


def test_the_guard_of_freed_memory_is_needed(monkeypatch) -> None:
    """Where the stream of a freed block does not wait for other users, the next tensor races with them."""
    from tensorcore_cuda import memory

    (line,) = [i for i in waits_of(memory) if "wait_event" in inspect.getsource(memory).splitlines()[i]]
    monkeypatch.setattr(memory, "_Guard", sabotaged(memory, line)._Guard)
    assert not all_well()
    monkeypatch.undo()
    assert all_well()


def test_the_pool_of_pinned_memory_waits(place, monkeypatch) -> None:
    """Where the pool forgets a block's copies, a copy reads what its next owner wrote."""
    monkeypatch.setattr(type(place.pinned), "used", lambda self, array, event: None)
    assert not all_well()
    monkeypatch.undo()
    assert all_well()
