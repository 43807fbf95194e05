"""What compiled functions take for granted: each change is noticed, named, and traced again within bounds."""

from __future__ import annotations

import enum
import gc
import operator
import random
import weakref

import numpy as np
import pytest

import tensorcore as tc
from tests.compile.test_functions import counted, same

SCALE = 2.0
CONFIG = {"shift": 1.0}


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda x: (tc.ones(3, 2), 1.0, True), "the shape of argument 0 is [3, 2] now"),
        (lambda x: (x.double(), 1.0, True), "the dtype of argument 0 is torch.float64 now"),
        (lambda x: (tc.ones(3, 2).t(), 1.0, True), "the strides of argument 0 is (1, 2) now"),
        (lambda x: (x.requires_grad_(), 1.0, True), "requires_grad of argument 0 is True now"),
        (lambda x: (x, 2.0, True), "argument 1 is 2.0 now"),
        (lambda x: (x, 1, True), "argument 1 is 1 now"),
        (lambda x: (x, 1.0, False), "argument 2 is False now"),
    ],
)
def test_a_changed_argument_is_traced_again(change, text) -> None:
    """Each kind of change is noticed, gives the result that it should, and is named."""

    @counted
    def f(x, number, flag):
        return x * number if flag else x + number

    f(tc.ones(2, 3), 1.0, True)
    args = change(tc.ones(2, 3))
    assert same(f(*args), f.__wrapped__(*args))
    assert f.explain().traces == 2
    assert f.explain().reasons == [f"traced again: {text}"]


def test_captured_numbers_are_guarded() -> None:
    """Globals, entries of dicts, closures and attributes that change are noticed."""
    global SCALE
    inner = 3.0

    class Shifted:
        by = 1.0

        def __call__(self, x):
            return x + self.by

    shifted = Shifted()

    @counted
    def f(x):
        return shifted(x * SCALE * inner) + CONFIG["shift"]

    x = tc.ones(1)
    assert f(x).item() == 8
    SCALE = 3.0
    assert f(x).item() == 11
    CONFIG["shift"] = 2.0
    assert f(x).item() == 12
    inner = 1.0
    assert f(x).item() == 6
    shifted.by = 5.0
    assert f(x).item() == 10
    SCALE, CONFIG["shift"] = 2.0, 1.0
    names = [reason.removeprefix("traced again: ").split(";")[0] for reason in f.explain().reasons]
    assert names[0] == "the global 'SCALE' is 3.0 now"
    assert len(names) == 4


class Shared:
    """What a class has, that a function names and makes objects of."""

    by, total = 2.0, tc.zeros(1)

    def __call__(self, x):
        return x * self.by * SCALE


def test_what_a_named_class_has_is_guarded() -> None:
    """Its numbers, the globals that its methods name, and its tensors, which a call may put others in the place of."""
    global SCALE
    local = type("Local", (Shared,), {"by": 3.0})

    @counted
    def f(x):
        return Shared()(x) + local()(x)

    @counted
    def summed(x):
        Shared.total = Shared.total + x
        return Shared.total * 1

    x = tc.ones(1)
    assert [f(x).item(), f(x).item(), f.explain().replays] == [10.0, 10.0, 1]
    Shared.by = 4.0
    assert f(x).item() == 14
    local.by = 1.0
    assert f(x).item() == 10
    SCALE = 1.0
    assert f(x).item() == 5
    SCALE, Shared.by = 2.0, 2.0
    assert [summed(x).item() for _ in range(5)] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert "Shared.total is another one now" in str(summed.explain())
    Shared.total = tc.zeros(1)


class Model(tc.nn.Module):
    """Reads ``scale``, and by another way ``shift``; nothing reads ``epoch``."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift, self.epoch, self.seen = 2.0, 1.0, 0, 0

    def forward(self, x):
        return x * self.scale


def test_an_attribute_that_nothing_reads_is_not_guarded() -> None:
    """A change of it costs no trace; a change of one that the call reads does, and is named."""
    model = Model()
    f = tc.compile(model)
    x = tc.ones(2)
    assert f(x).tolist() == [2, 2]
    model.epoch, model.shift = 5, 7.0
    assert f(x).tolist() == [2, 2]
    assert f.explain().traces == 1
    model.scale = 3.0
    assert f(x).tolist() == [3, 3]
    assert f.explain().reasons == ["traced again: 'model'.scale is 3.0 now"] or f.explain().traces == 2


def test_an_attribute_read_by_a_computed_name_is_guarded() -> None:
    """Where code asks for attributes by names that it does not have, all of them are looked at."""
    model = Model()
    read = operator.attrgetter("shift")
    name = "sca" + "le"
    by_name = counted(lambda x: x * getattr(model, name))
    by_getter = counted(lambda x: x * read(model))
    x = tc.ones(1)
    assert (by_name(x).item(), by_getter(x).item()) == (2, 1)
    model.scale, model.shift = 3.0, 4.0
    assert (by_name(x).item(), by_getter(x).item()) == (3, 4)


def test_an_attribute_that_the_call_only_writes_is_not_frozen() -> None:
    """A call that leaves something in an attribute leaves it there each time."""

    class Counting(Model):
        def forward(self, x):
            self.seen = self.seen + 1
            return x * self.scale

    model = Counting()
    f = tc.compile(model)
    for _ in range(6):
        f(tc.ones(2))
    assert model.seen == 6


def test_hooks_of_all_modules_are_guarded() -> None:
    """One that is put in place after the trace runs in the next call, and none after it is gone."""
    f, seen = tc.compile(tc.nn.Linear(2, 2)), []
    f(tc.ones(1, 2))
    handle = tc.nn.modules.module.register_module_forward_hook(lambda *given: seen.append(1))
    try:
        f(tc.ones(1, 2))
    finally:
        handle.remove()
    f(tc.ones(1, 2))
    assert seen == [1]
    assert f.explain().replays == 1


def test_slots_and_sets_are_guarded() -> None:
    """State that lies in slots and in sets is noticed as well as that in dicts."""

    class Settings:
        __slots__ = ("by",)

    settings, switched_on = Settings(), {"twice"}
    settings.by = 2.0
    f = counted(lambda x: x * settings.by * (2 if "twice" in switched_on else 1))
    x = tc.ones(1)
    assert f(x).item() == 4
    settings.by = 3.0
    assert f(x).item() == 6
    switched_on.clear()
    assert f(x).item() == 3


def test_modes_are_guarded() -> None:
    """Grad mode, autocast and the default dtype are part of what a trace is for."""

    @counted
    def f(x):
        return x @ x + tc.ones(2)

    x = tc.ones(2, 2, requires_grad=True)
    assert f(x).requires_grad
    with tc.no_grad():
        assert not f(x).requires_grad
    with tc.autocast("cpu", dtype=tc.bfloat16):
        assert f(x).dtype is f.__wrapped__(x).dtype
    tc.set_default_dtype(tc.float64)
    try:
        assert f(x).dtype is tc.float64
    finally:
        tc.set_default_dtype(tc.float32)
    assert f(x).requires_grad
    assert f.explain().traces == 4


def test_the_cache_is_bounded_and_says_so() -> None:
    """At its limit it warns once, naming what changes, and calls like none before run as they are."""

    @tc.compile(options={"limit": 3})
    def f(x, n):
        return x * n

    x = tc.ones(2)
    for n in range(3):
        f(x, n)
    with pytest.warns(UserWarning, match="traced 3 times.*argument 1 is 3 now"):
        assert f(x, 3).tolist() == [3, 3]
    assert f(x, 4).tolist() == [4, 4]
    assert f(x, 1).tolist() == [1, 1]
    found = f.explain()
    assert (found.traces, found.replays, found.eager) == (3, 1, 2)


def test_a_trace_keeps_no_argument() -> None:
    """The tensors of the traced call, its results and what was in between go when the program lets them go."""

    @counted
    def f(x):
        return (x * 2).exp()

    x = tc.ones(2, requires_grad=True)
    made = f(x)
    seen = weakref.ref(x), weakref.ref(made), weakref.ref(x.native)
    del x, made
    gc.collect()
    assert [one() for one in seen] == [None] * 3
    f(tc.ones(2, requires_grad=True))
    assert f.explain().replays == 1


def test_reset_forgets() -> None:
    """After a reset the next call is traced."""

    @counted
    def f(x):
        return x + 1

    f(tc.ones(1))
    tc.compiler.reset()
    assert f.explain().traces == 0
    f(tc.ones(1))
    assert f.explain().traces == 1


class Kind(enum.StrEnum):
    """Words that are members, as configurations of public models have them."""

    DOUBLE = "double"


class Maker(dict):
    """A dict that makes a new object whenever it is read."""

    def __getitem__(self, key):
        kind, options = super().__getitem__(key)
        return kind(**options)


FACTORS = {Kind.DOUBLE: 2.0}
ACTIVATIONS = Maker(elu=(tc.nn.ELU, {"alpha": 1.0}))


def test_dicts_that_members_of_an_enum_are_keys_of(monkeypatch) -> None:
    """A key that is a str of a class of its own is guarded as itself, and a new value there is noticed."""
    compiled = counted(lambda x: x * FACTORS[Kind.DOUBLE])
    assert [compiled(tc.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    assert compiled.explain().replays == 1
    monkeypatch.setitem(FACTORS, Kind.DOUBLE, 3.0)
    assert compiled(tc.ones(1)).item() == 3.0


def test_dicts_that_make_what_they_give(monkeypatch) -> None:
    """Of a dict with its own ``__getitem__`` what it holds is guarded, as what it gives is new in each call."""
    compiled = counted(lambda x: ACTIVATIONS["elu"](x))
    low = -tc.ones(1)
    assert same(compiled(low), compiled(low))
    assert compiled.explain().replays == 1
    monkeypatch.setitem(ACTIVATIONS, "elu", (tc.nn.ELU, {"alpha": 0.5}))
    assert same(compiled(low), tc.nn.functional.elu(low, 0.5))


def test_attributes_of_modules_that_are_named_as_hooks() -> None:
    """An attribute of a program's own called ``_forward_...`` or ``..._hooks`` is guarded as any other."""

    class Named(tc.nn.Module):
        def __init__(self):
            super().__init__()
            self._forward_factor, self.some_hooks = None, 2.0

        def forward(self, x):
            return x * self.some_hooks if self._forward_factor is None else x * self._forward_factor

    module = Named()
    compiled = counted(module)
    assert [compiled(tc.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    assert compiled.explain().replays == 1
    module._forward_factor = 5.0
    assert compiled(tc.ones(1)).item() == 5.0


@pytest.mark.parametrize("draw", [random.random, lambda: float(np.random.rand())], ids=["python", "numpy"])
@pytest.mark.parametrize("options", [{}, {"breaks": True}], ids=["whole", "breaks"])
def test_numbers_that_python_or_numpy_draws(draw, options) -> None:
    """A call that draws them is not replayed: each has numbers of its own, and fullgraph refuses it."""
    seen = []

    def f(x):
        seen.append(draw())
        return x * seen[-1]

    compiled = tc.compile(f, options=options)
    found = [compiled(tc.ones(1, dtype=tc.float64)).item() for _ in range(4)]
    assert found == seen
    assert len({*seen}) == 4
    assert "draws random numbers" in compiled.explain().reasons[0]
    with pytest.raises(RuntimeError, match="draws random numbers"):
        tc.compile(f, fullgraph=True)(tc.ones(1))


def test_a_global_named_as_an_attribute_is_none_that_is_read(monkeypatch) -> None:
    """``self.scale`` and the text "same" look at no globals of these names, whatever a loop puts there."""

    class Model(tc.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = tc.nn.Conv1d(1, 1, 3, padding="same")

        def forward(self, x):
            return self.scale(x).sum()

    model = tc.compile(Model())
    for _ in range(4):
        x = tc.ones(1, 1, 4)
        for name in ("scale", "same"):
            monkeypatch.setitem(globals(), name, x)
        model(x)
    assert (model.explain().traces, model.explain().replays) == (1, 3)


def test_sentinels_that_others_equal() -> None:
    """What code compares by identity is guarded so: a string, or a number, that equals a sentinel and is another object."""
    word, number = "".join(["au", "to!"]), float("1.5")

    def scaled(x, how, rate):
        return x * (2 if how is word else 3) * (5 if rate is not number else 7)

    f = tc.compile(scaled, options={"limit": 16})
    for how in (word, "".join(["au", "to!"]), word, "other"):
        for rate in (number, float("1.5"), 2.5):
            assert f(tc.ones(()), how, rate).item() == scaled(1, how, rate)
    assert f.explain().replays >= 3
