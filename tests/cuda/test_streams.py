"""Streams, events and the order of work; without a wait in its place, the stand-in raises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import tensorcore as tc


def test_work_on_another_stream_waits_for_an_event() -> None:
    """``wait_stream`` orders two streams both ways."""
    side, x = tc.cuda.Stream(), tc.ones(4, device="cuda")
    side.wait_stream(tc.cuda.current_stream())
    with tc.cuda.stream(side):
        y = x + 1
    tc.cuda.current_stream().wait_stream(side)
    assert (y * 2).tolist() == [4] * 4


@pytest.mark.standin
def test_a_missing_wait_is_a_race() -> None:
    """Reading on one stream what another may still be writing raises, and so does writing what another may still read."""
    from cupy._timeline import Race

    side, x = tc.cuda.Stream(), tc.ones(4, device="cuda")
    with tc.cuda.stream(side), pytest.raises(Race, match="reads memory that work on stream 1 may still be writing"):
        x + 1
    side.wait_stream(tc.cuda.current_stream())
    with tc.cuda.stream(side):
        x + 1
    with pytest.raises(Race, match="may still be reading"):
        x.add_(1)
    side.synchronize()
    x.add_(1)


@pytest.mark.standin
def test_freed_memory_in_use_elsewhere_is_not_given_again() -> None:
    """Without ``record_stream`` the next tensor lies where the other stream still reads; with it, its stream waits."""
    from cupy._timeline import Race

    for recorded in (False, True):
        tc.cuda.synchronize()
        side, x = tc.cuda.Stream(), tc.ones(1000, device="cuda")
        side.wait_stream(tc.cuda.current_stream())
        with tc.cuda.stream(side):
            y = x * 2
        if recorded:
            x.record_stream(side)
        address = x.data_ptr()
        del x
        if recorded:
            z = tc.zeros(1000, device="cuda")
            assert z.data_ptr() == address
        else:
            with pytest.raises(Race):
                tc.zeros(1000, device="cuda")
        tc.cuda.current_stream().wait_stream(side)
        assert y.sum().item() == 2000
    tc.cuda.synchronize()


def test_events_measure_time() -> None:
    """Milliseconds between two events; without timing it is refused."""
    start, end = tc.cuda.Event(enable_timing=True), tc.cuda.Event(enable_timing=True)
    start.record()
    tc.ones(10, device="cuda") + 1
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    with pytest.raises((RuntimeError, TypeError), match="enable_timing"):
        tc.cuda.Event().elapsed_time(end)


def test_streams_compare_by_what_they_are() -> None:
    """The current stream is the default one outside a context and the chosen one inside."""
    side = tc.cuda.Stream()
    assert tc.cuda.current_stream() == tc.cuda.default_stream() != side
    with side:
        assert tc.cuda.current_stream() == side
        assert tc.cuda.ExternalStream(side.cuda_stream).cuda_stream == side.cuda_stream
    assert tc.cuda.current_stream() == tc.cuda.default_stream()
    assert side.query()


def test_current_device() -> None:
    """``set_device`` and ``device`` say what ``cuda`` means."""
    if tc.cuda.device_count() < 2:
        pytest.skip("one device")
    assert tc.cuda.current_device() == 0
    with tc.cuda.device(1):
        x = tc.ones(3, device="cuda")
        assert str(x.device) == "cuda:1"
    assert tc.cuda.current_device() == 0
    assert (x * 2).tolist() == [2, 2, 2]
    assert (x.to("cuda:0") + tc.ones(3, device="cuda")).tolist() == [2, 2, 2]


def test_each_thread_has_a_current_device_of_its_own() -> None:
    """``set_device`` in one thread leaves what ``cuda`` means in the others, and a new thread begins with the first."""
    if tc.cuda.device_count() < 2:
        pytest.skip("one device")
    with tc.cuda.device(1), ThreadPoolExecutor(1) as other:
        assert other.submit(tc.cuda.current_device).result() == 0
        other.submit(tc.cuda.set_device, 1).result()
    assert tc.cuda.current_device() == 0
    assert str(tc.ones(2, device="cuda").device) == "cuda:0"


@pytest.mark.standin
def test_copies_between_devices_wait_for_one_another(clock) -> None:
    """Source and target may be written right after, and the host waits for nothing."""
    x = tc.arange(5.0, device="cuda:0")
    waits = clock.waits
    y = x.to("cuda:1")
    x.add_(1)
    y.mul_(2)
    assert clock.waits == waits
    assert (x.tolist(), y.tolist()) == ([1, 2, 3, 4, 5], [0, 2, 4, 6, 8])


def test_the_current_device_is_not_asked_for(place) -> None:
    """What belongs to one device works while another is the current one: its default stream, its events, compiled programs."""
    if tc.cuda.device_count() < 2:
        pytest.skip("one device")
    x = tc.ones(400, device="cuda:1")
    side, event = tc.cuda.Stream("cuda:1"), tc.cuda.Event()
    tc.cuda.default_stream("cuda:1").record_event(event)
    side.wait_event(event)
    with tc.cuda.stream(side):
        y = x + 1
    x.record_stream(side)
    del x
    z = tc.zeros(400, device="cuda:1")
    tc.cuda.default_stream("cuda:1").wait_stream(side)
    assert (y + z).sum().item() == 800
    tc.cuda.default_stream("cuda:1").synchronize()
    assert tc.compile(lambda one: (one * 2 + 1).relu())(z).sum().item() == 400
    assert tc.cuda.current_device() == 0
