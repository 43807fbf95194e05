"""New tensors and draws by the short way in C and by the function in Python: the same values, errors and states."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import tensorcore as torch
from tensorcore.backend.default_generator import default_generator, own_generator
from tensorcore.backend.random import Generator
from tensorcore.backend.twister import Twister
from tensorcore.ops.calls import apply
from tensorcore.ops.creation.create import _filled
from tensorcore.ops.creation.random import created, draw
from tensorcore.ops.creation.random_fill import _fill

from .test_shortcuts import HUGE, Whole, outcome

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")
SIZES = [
    (),
    (3,),
    ((2, 3),),
    ([2, 3],),
    (torch.Size([4]),),
    (0, 2),
    (-1,),
    (2.0,),
    (True,),
    (Whole(2),),
    (np.int64(2),),
    (HUGE,),
    "ab",
]
KINDS = [("uniform", {}), ("normal", {}), ("uniform", {"low": 1.0, "high": 3.0}), ("bernoulli", {"probability": 0.5}),
         ("integers", {"low": 0, "high": 7}), ("random", {}), ("cauchy", {}), ("uniform", {"low": 3.0, "high": 1.0})]  # fmt: skip


def _compare(short, long) -> None:
    """Both from one state: what they give and the state that they leave."""
    found = []
    for way in (short, long):
        torch.manual_seed(5)
        made = outcome(way)
        if isinstance(made, torch.Tensor):
            made = (made.dtype, made.device, tuple(made.shape), made.requires_grad, made.stride(), made.is_inference(),
                    None if made.is_meta else repr(made.tolist()))  # fmt: skip
        elif isinstance(made, np.ndarray):
            made = (made.dtype, made.shape, made.tolist())
        found.append((made, torch.get_rng_state().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind, options", KINDS[:5])
def test_new_tensors_are_the_same_by_both_ways(kind, options, size) -> None:
    """Sizes of all kinds, with and without a dtype, a device, a gradient and a generator, also in inference mode."""
    for dtype in (None, torch.float64, torch.int64, torch.complex64, float, "float32"):
        for device in (None, torch.device("cpu"), "cpu", "meta", 3):
            given = ("op", kind, size, None, dtype, device, False, None)
            _compare(lambda g=given: created(*g, **options), lambda g=given: created.__wrapped__(*g, **options))
    for wants, source in ((True, None), (False, torch.Generator().manual_seed(3)), (None, None), (False, 3)):
        given = ("op", kind, size, None, None, None, wants, source)
        if not isinstance(source, torch.Generator):
            _compare(lambda g=given: created(*g, **options), lambda g=given: created.__wrapped__(*g, **options))
    with torch.inference_mode():
        given = ("op", kind, size, None, None, None, False, None, torch.float64)
        _compare(lambda: created(*given, **options), lambda: created.__wrapped__(*given, **options))


@pytest.mark.parametrize("size", [*SIZES, (0, 1 << 62, 4), (1 << 62, 4), (1 << 62, 4, 0)])
def test_tensors_of_one_value_are_the_same_by_both_ways(size) -> None:
    """Values that fit and others, dtypes, devices and what they do not store, also in inference mode."""
    for dtype in (None, torch.float64, torch.uint8, torch.bool, torch.complex64, torch.bfloat16, int, "float32"):
        for device in (None, torch.device("cpu"), "cpu", torch.device("meta"), 3):
            for value in (0, 1, True, -1, 2.5, 300, 1e300, 1j, float("nan"), HUGE, "a"):
                given = ("op", size, value, dtype, device, False, None)
                _compare(lambda g=given: _filled(*g), lambda g=given: _filled.__wrapped__(*g))
    for wants in (True, None):
        given = ("op", size, 0, None, None, wants, None)
        _compare(lambda g=given: _filled(*g), lambda g=given: _filled.__wrapped__(*g))
    with torch.inference_mode():
        given = ("op", size, 0, torch.float64, None, False, None)
        _compare(lambda: _filled(*given), lambda: _filled.__wrapped__(*given))


def test_undefined_values_are_allocated_by_both_ways() -> None:
    """The shape, the dtype and the device; into an ``out`` too."""
    for size in ((2, 3), ((0,),), ()):
        for dtype in (None, torch.int8):
            short, long = (way("op", size, None, dtype, None, False, None) for way in (_filled, _filled.__wrapped__))
            assert (short.shape, short.dtype, short.device) == (long.shape, long.dtype, long.device)
    out = torch.zeros(4)
    assert torch.full((2,), 3.0, out=out) is out
    assert out.tolist() == [3.0, 3.0]


def test_the_default_dtype_and_device_are_asked_at_each_call() -> None:
    """Also by the short way: after they were set, and back."""
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.rand(2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert torch.rand(2).is_meta
    assert torch.rand(2).dtype is torch.float32
    assert torch.randn(2).device == torch.device("cpu")


@pytest.mark.parametrize("kind, options", KINDS)
def test_arrays_are_the_same_by_both_ways(kind, options) -> None:
    """Of all dtypes, and of no device that draws."""
    device = torch.device("cpu")
    for dtype in (torch.float32, torch.float64, torch.int32, torch.bfloat16, torch.bool):
        for shape in ((), (5,), (2, 3), (0,), (-1, 2)):
            given = ("op", kind, shape, dtype, device, None)
            _compare(lambda g=given: draw(*g, **options), lambda g=given: draw.__wrapped__(*g, **options))


def _targets():
    leaf = torch.zeros(3, requires_grad=True)
    return [torch.zeros(4), torch.zeros(()), torch.zeros(0), torch.zeros(2, 3).t(), torch.zeros(6)[::2], torch.zeros(3).expand(2, 3),
            torch.zeros(3, 4)[1], leaf, leaf * 2, leaf.detach(), torch.zeros(3, dtype=torch.int64), torch.zeros(2, device="meta"),
            torch.nn.Parameter(torch.zeros(2)), 3]  # fmt: skip


@pytest.mark.parametrize("kind, options", KINDS)
def test_tensors_are_filled_the_same_by_both_ways(kind, options) -> None:
    """Whole memory and views, leaves and results, recorded and not; a write is counted once."""
    for switch in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        for ours, theirs in zip(_targets(), _targets(), strict=True):
            with switch():
                _compare(lambda x=ours: _fill("op", x, kind, None, **options),
                         lambda x=theirs: _fill.__wrapped__("op", x, kind, None, **options))  # fmt: skip
            if isinstance(ours, torch.Tensor):
                assert ours._version == theirs._version
                assert str(ours.grad_fn)[:12] == str(theirs.grad_fn)[:12]


_METHODS = {
    "uniform_": [(), (2.0,), (1, 3), (3.0, 1.0), (0.0, HUGE), ("a",), (0.0, 1.0, 2.0), (True, 2)],
    "normal_": [(), (1.5,), (1, 2), (0.0, -1.0), (None, 1.0)],
    "log_normal_": [(), (0.0, 0.5), (0.0, 0.0)],
    "bernoulli_": [(), (0.25,), (1,), (1.5,), (np.float64(0.5),), (torch.tensor([0.0, 1.0, 0.5, 1.0]),)],
    "exponential_": [(), (2.5,), (0,)],
    "cauchy_": [(), (1.0, 2.0), (0.0, 0.0)],
    "random_": [(), (7,), (-3, 3), (3, 3)],
}


@pytest.mark.parametrize("name", _METHODS)
def test_methods_draw_over_a_tensor_the_same_by_both_ways(name) -> None:
    """Numbers of each kind, by place and by name, with a generator and without: of what may be written and what may not."""
    short = vars(torch.Tensor)[name]
    keywords = [{}, {"generator": None}, {"generator": 3}, {"from": 1.0}, {"to": 2}, {"mean": 2.0}, {"mean": 1, "std": 2.0}, {"p": 0.75},
                {"lambd": 2.0}, {"sigma": 0.5}, {"other": 1}]  # fmt: skip
    for given in _METHODS[name]:
        for named in keywords:
            for ours, theirs in zip(_targets(), _targets(), strict=True):
                _compare(lambda x=ours, g=given, k=named: short(x, *g, **k),
                         lambda x=theirs, g=given, k=named: short.__wrapped__(x, *g, **k))  # fmt: skip
                if isinstance(ours, torch.Tensor):
                    assert ours._version == theirs._version
    x = torch.zeros(20)
    assert getattr(x, name)() is x
    mine, drawn = torch.Generator().manual_seed(3), getattr(x, name)().tolist()
    assert getattr(x, name)(generator=mine).tolist() != drawn
    assert getattr(x, name).__name__ == name


def test_a_device_that_is_looked_at_draws_arrays_of_its_own() -> None:
    """A profiler and a compiled call see the copy over the tensor, and the numbers are the same."""
    device, x = torch.device("cpu"), torch.zeros(4)
    assert device.draw_over is not None
    expected = torch.zeros(4)
    torch.manual_seed(5)
    expected.uniform_()
    with torch.profiler.profile() as profile:
        assert device.draw_over is None
        torch.manual_seed(5)
        x.uniform_()
    assert x.tolist() == expected.tolist()
    assert "kernel::copy" in {one.name for one in profile.events()}
    assert device.draw_over is not None


def test_a_method_is_seen_by_a_profiler_and_by_modes_also_behind_its_short_way() -> None:
    """A record names it while it is on; a mode and a subclass are handed it as it stands in the class; then it draws as ever."""
    x = torch.zeros(4)
    with torch.profiler.profile() as profile:
        x.uniform_()
    assert "aten::uniform_" in {one.key for one in profile.key_averages()}
    source = """
import tensorcore as torch
from tensorcore.overrides import TorchFunctionMode, resolve_name
calls = []
class Seen(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        calls.append(func)
        return func(*args, **(kwargs or {}))
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)
x = torch.zeros(4)
with Seen():
    assert x.uniform_() is x
assert calls == [torch.Tensor.uniform_], calls
assert resolve_name(calls[0]) == "torch.Tensor.uniform_"
x.as_subclass(Own).normal_(mean=1.0)
assert calls[-1] is torch.Tensor.normal_
assert x.uniform_(5, 6).min() >= 5
"""
    subprocess.run([sys.executable, "-c", source], check=True)


def test_a_thread_with_a_generator_of_its_own_draws_from_it() -> None:
    """By the methods and by new tensors, as long as it has one; other threads draw from the process's."""
    x, found = torch.zeros(3), []

    def work() -> None:
        own_generator(Generator(9))
        found.append((torch.rand(3).tolist(), x.clone().uniform_().tolist()))
        own_generator(None)
        found.append(default_generator() is before)

    before = default_generator()
    state = torch.get_rng_state()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    source = Generator(9)
    assert found == [(source.uniform((3,)).tolist(), source.uniform((3,)).tolist()), True]
    assert torch.equal(torch.get_rng_state(), state)


def test_arrays_of_numpys_are_shared_by_both_ways() -> None:
    """Of all layouts, dtypes and owners: the same tensor, warning or error; also where the host was not asked for before."""
    whole, fixed = np.arange(12.0).reshape(3, 4), np.ones(3)
    fixed.flags.writeable = False
    structured = np.zeros(3, [("a", "i4"), ("b", "i2")])
    arrays = [whole, whole[1:, ::2], whole.T, whole[::-1], np.array(2.0), np.zeros((0, 3)), fixed, whole.astype(">f8"), [1], None,
              structured["a"], structured["b"], np.array(["a"]), np.zeros(2, "V0"), np.zeros(2, "c8"), whole.view(np.matrix)]  # fmt: skip
    for one in arrays:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            short = outcome(torch.from_numpy, one)
            with torch.inference_mode():  # the long way
                long = outcome(torch.from_numpy, one)
        if not isinstance(short, torch.Tensor):
            assert short == long
            continue
        assert (short.dtype, short.device) == (long.dtype, long.device)
        assert (short.shape, short.stride()) == (long.shape, long.stride())
        assert short.data_ptr() == long.data_ptr() == one.__array_interface__["data"][0]
        assert (short.storage_offset(), short.requires_grad) == (long.storage_offset(), False)
    with pytest.warns(UserWarning, match="writable"):
        torch.from_numpy(fixed)


def test_each_example_of_a_vmap_draws_as_it_is_told() -> None:
    """A draw inside of vmap is refused, or is one for all, or one for each."""
    x = torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(lambda row: row + torch.rand(3))(x)
    same = torch.vmap(lambda row: row + torch.rand(3), randomness="same")(x)
    apart = torch.vmap(lambda row: row.clone().uniform_(), randomness="different")(x)
    assert (same == same[0]).all()
    assert not (apart == apart[0]).all()


def _given(result):
    def draw(*given):
        if isinstance(result, type):
            raise result("no")
        return result

    return draw


_NUMBERS = [np.ones(1), np.ones(2)]


@pytest.mark.parametrize("result", [None, ValueError, (_NUMBERS[0], 0.25), (_NUMBERS[1], None), (_NUMBERS[0], None)])
@pytest.mark.parametrize("name", ["lend", "lend_normal"])
@pytest.mark.parametrize("kept", [None, 0.5])
def test_a_generator_lends_its_state_by_both_ways(name, result, kept) -> None:
    """What was drawn, what is kept, errors and the state afterwards; and the lock is free again for other threads."""
    way, found = vars(Twister)[name], []
    for lend in (way, way.__wrapped__):
        source = Generator(3)
        source._normal = kept
        made = outcome(lend, source, _given(result))
        found.append((repr(made), source._normal, source._unused, source.get_state().tolist()))
        free: list[bool] = []
        other = threading.Thread(target=lambda source=source, free=free: free.append(source._lock.acquire(timeout=5)))
        other.start()
        other.join()
        assert free == [True]
    assert found[0] == found[1]


def test_what_is_lent_is_the_state_and_the_arguments() -> None:
    """A capsule of NumPy's first, then the normal that is kept, then what the call was given, also of a bound method."""
    source = Generator(3)
    source._normal = 0.5
    assert [str(type(one)) for one in source.lend(lambda *given: given)] == ["<class 'PyCapsule'>"]
    assert source.lend(lambda *given: given, 1, "a")[1:] == (1, "a")
    assert source.lend_normal(lambda *given: (given[1:], 0.5), 1, "a") == (0.5, 1, "a")
