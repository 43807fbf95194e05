"""The short ways in C answer as the functions that they stand before, and hand on what is unusual."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import tensorcore as torch
from tensorcore.ops import operands, rules
from tensorcore.ops.calls import apply
from tensorcore.ops.indexing.parse import simple, whole
from tensorcore.ops.inplace import is_free
from tensorcore.ops.output import written
from tensorcore.ops.shapes.join import _fitting
from tensorcore.ops.shapes.order import _permute
from tensorcore.ops.shapes.shape import _sizes, _view
from tensorcore.ops.shapes.split import _keys
from tensorcore.ops.shapes.views_part import _strided_options, select_op, slice_op
from tensorcore.optim.algorithm import with_gradients
from tensorcore.tensor import new_tensor

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")
HUGE = 1 << 70


def outcome(function, *args, **kwargs):
    """What a call gives, or the error that it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


class Whole(int):
    """An int that is none of Python's own."""


CHECKS = [
    (rules.wrap_dim, [(dim, ndim) for dim in (0, 1, -1, 2, -3, 3, True, 1.0, Whole(1), np.int64(-1), HUGE) for ndim in (0, 1, 3)]),
    (rules.wrap_dims, [(dim, 3) for dim in (None, 0, -3, 5, (), (0, -1), [2, 1], (0, -3), (0, 7), (True,), (HUGE,), np.int64(1), "a")]),
    (rules.whole, [("n", value) for value in (0, -7, HUGE, True, 2.0, np.int32(3), "3", None)]),
    (rules.as_shape, [(sizes,) for sizes in ((), (2, 3), ((2, 3),), ([2, 3],), (torch.Size([4]),), (2.0,), (True, 2), (2, True),
                                             (np.int64(3),), (None,), ("ab",), [2, 3])]),
    (rules.broadcast, [((2, 3), (2, 3)), ((1, 3), (2, 1)), ((), (4,)), ((0,), (1,)), ((2,), (3,)), ((2, 1), (3,), (1, 1, 1)),
                       ((), ()), ((3,),), ((0, 2), (3, 1))]),
]  # fmt: skip


@pytest.mark.parametrize("function, args", [(f, one) for f, many in CHECKS for one in many])
def test_a_rule_says_the_same_by_both_ways(function, args) -> None:
    """Dims, sizes and shapes are read as by the function in Python, errors included."""
    short, long = outcome(function, "op", *args), outcome(function.__wrapped__, "op", *args)
    assert short == long
    assert type(short) is type(long)


@pytest.mark.parametrize("sizes", [(6,), (2, 3), (-1,), (2, -1), ((3, 2),), ([3, -1],), (-1, -1), (4, -1), (7,), (), (True, 6),
                                   (2.0, 3), (0, -1), (-2, -3), (HUGE, -1), (np.int64(6),)])  # fmt: skip
@pytest.mark.parametrize("have", [6, 0, 1])
def test_sizes_say_the_same_by_both_ways(sizes, have) -> None:
    """Sizes with one that is to be worked out, for as many elements as there are."""
    x = torch.zeros(have)
    assert outcome(_sizes, "view", x, sizes) == outcome(_sizes.__wrapped__, "view", x, sizes)
    assert outcome(rules.infer_size, "op", sizes, have) == outcome(rules.infer_size.__wrapped__, "op", sizes, have)


_ENDS = (None, 0, 2, -1, -9, 9, HUGE, -HUGE, True, Whole(1), np.int64(1), 1.5)
_ITEMS = (
    0,
    2,
    -3,
    3,
    HUGE,
    True,
    Whole(1),
    None,
    Ellipsis,
    slice(None),
    slice(1, 3),
    slice(-2, None),
    slice(None, None, 0),
    [0],
    "a",
)


@pytest.mark.parametrize("start", _ENDS)
@pytest.mark.parametrize("stop", _ENDS)
def test_slices_are_filled_in_by_both_ways(start, stop) -> None:
    """Ends before, behind and beyond what is there, steps of all kinds, and ends that are no ints, for some sizes."""
    for step in (None, 1, 3, 0, -1, HUGE, Whole(2)):
        for size in (0, 1, 5):
            key = slice(start, stop, step)
            assert repr(outcome(whole, key, size)) == repr(outcome(whole.__wrapped__, key, size))


@pytest.mark.parametrize("first", _ITEMS)
def test_keys_of_ints_and_slices_are_told_by_both_ways(first) -> None:
    """One item, two and three, of the usual kinds and of others, for tensors with fewer, as many and more dims."""
    for key in [
        (),
        (first,),
        *[(first, other) for other in _ITEMS],
        *[(slice(None), first, other) for other in _ITEMS],
    ]:
        for shape in ((), (3,), (3, 3), (3, 0, 3, 2)):
            assert repr(outcome(simple, key, shape)) == repr(outcome(simple.__wrapped__, key, shape))


_OPERANDS = [torch.zeros(2), torch.zeros(()), torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.bool),
             torch.zeros(2, dtype=torch.complex64), 1, 1.5, True, 1j, np.float32(1), torch.float64, "a"]  # fmt: skip


@pytest.mark.parametrize("others", [(), *[(one,) for one in _OPERANDS], *[(1.5, one) for one in _OPERANDS[:5]]])
@pytest.mark.parametrize("first", _OPERANDS)
def test_the_dtype_of_a_result_is_the_same_by_both_ways(first, others) -> None:
    """Tensors of one dtype or of several, with and without dims, beside numbers of every kind."""
    assert outcome(operands.result_type, first, *others) == outcome(operands.result_type.__wrapped__, first, *others)


@pytest.mark.parametrize("args", [((2, 2), (1, 1), 1), ((3,), (3,), None), ((2, 2), (1,), 0), ((5, 5), (1, 1), 0), ((2,), (-1,), 3),
                                  ((0, 2), (1, 1), 0), ((2.0,), (1,), 0), ([2], [1], 0), ((2,), (HUGE,), 0), ((2,), (1,), -1)])  # fmt: skip
@pytest.mark.parametrize(
    "x", [torch.arange(12).view(3, 4), torch.arange(12).view(3, 4)[1:, 1:], torch.zeros(0), torch.zeros(())]
)
def test_strides_by_hand_say_the_same_by_both_ways(x, args) -> None:
    """Sizes and strides inside of a tensor, and all others."""
    assert outcome(_strided_options, x, *args) == outcome(_strided_options.__wrapped__, x, *args)


def test_parts_are_named_by_both_ways() -> None:
    """The keys of parts between cuts, which may go back."""
    for given in ((0, [0, 2, 5]), (2, [0, 3, 1, 4]), (1, [7]), (0, 3), (2, 0)):
        assert _keys(*given) == _keys.__wrapped__(*given)


def test_operands_are_looked_at_by_both_ways() -> None:
    """Tensors pass, whatever else is named in the error of the function."""
    x, p = torch.zeros(2), torch.nn.Parameter(torch.zeros(2))
    for given in ({"a": x, "b": p}, {"a": x, "b": 3}, {"a": None}):
        for function in (operands.check_tensors, operands.check_optional):
            assert outcome(function, "op", **given) == outcome(function.__wrapped__, "op", **given)
    for value in (3, 2.5, np.float32(1.5), torch.tensor(4), "text"):
        assert operands.plain(value) == operands.plain.__wrapped__(value)
    assert operands.plain(x) is x
    assert operands.lifted("op", x, p, 3) == (x, p, 3)
    for inputs in ((x, x), (x, None), [x, 3], (x, "text"), (None,), (x, torch.zeros(2, device="meta"))):
        assert outcome(operands.common_device, "op", inputs) == outcome(
            operands.common_device.__wrapped__, "op", inputs
        )


def test_gradients_are_found_by_both_ways() -> None:
    """Of leaves of one kind in C; without any, with one that another kind stands between, and of what retains one as well."""
    made = [torch.nn.Parameter(torch.ones(2, 3)) for _ in range(3)] + [torch.ones(4, requires_grad=True)]
    for one in made[1:]:
        one.grad = torch.ones_like(one)
    wide = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    wide.grad = torch.ones_like(wide)
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    kept = made[3] * 2
    kept.retain_grad()
    kept.sum().backward()
    for params in (
        made,
        made[:1],
        [],
        [*made, wide, made[1]],
        [made[1], table.weight],
        [kept, made[1]],
        [torch.ones(2)],
    ):
        found, expected = (way({"params": params}) for way in (with_gradients, with_gradients.__wrapped__))
        assert list(found) == list(expected)
        for key, pair in expected.items():
            for ours, theirs in zip(found[key], pair, strict=True):
                assert list(map(id, ours)) == list(map(id, theirs))


def test_a_shape_is_a_size_and_cannot_be_written() -> None:
    """Of arrays of the CPU, of other devices, of subclasses; with any number of dims."""
    for shape in ((), (0,), (3, 1), (2,) * 20):
        for x in (torch.zeros(shape), torch.zeros(shape, device="meta"), torch.nn.Parameter(torch.zeros(shape))):
            assert type(x.shape) is torch.Size
            assert x.shape == shape
            assert x.ndim == len(shape)
    with pytest.raises(AttributeError, match="not writable"):
        torch.zeros(2).shape = (1, 2)


VIEWS = [
    (_view, {"shape": (3, 4)}),
    (_permute, {"dims": (1, 0)}),
    (select_op, {"key": (1,)}),
    (slice_op, {"key": (slice(0, 0, 1),)}),
]


@pytest.mark.parametrize("op, options", VIEWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize(
    "way", ["plain", "recorded", "no_grad", "inference", "of a view", "of an asked view", "anomaly"]
)
def test_a_view_is_the_same_by_both_ways(op, options, dtype, way) -> None:
    """Values, strides, version, origin and node of a view, whatever is switched on."""
    x = torch.arange(12).reshape(4, 3).clone().to(dtype)
    if way == "recorded" and dtype is not torch.int64:
        x.requires_grad_()
    if way.startswith("of"):
        x = x[:]
        assert way == "of a view" or x.origin is not None
    switch = {"no_grad": torch.no_grad, "inference": torch.inference_mode}.get(way, torch.enable_grad)
    with switch(), torch.autograd.set_detect_anomaly(way == "anomaly", check_nan=False):
        short, long = op.view(x, options), op.view.__wrapped__(x, options)
    assert short.tolist() == long.tolist()
    assert (short.stride(), short.storage_offset()) == (long.stride(), long.storage_offset())
    assert short.dtype is long.dtype
    assert short.device is long.device
    assert short.version is long.version is x.version
    assert short.origin.base is long.origin.base
    assert short.origin.kind == long.origin.kind
    assert [(one.name, given) for one, given in short.origin.steps] == [
        (one.name, given) for one, given in long.origin.steps
    ]
    assert (short.node is None) == (long.node is None)
    if short.node is not None:
        assert short.node.edges == long.node.edges == (x.node,)
        assert (short.node.op, short.node.options, short.node.saved) == (
            long.node.op,
            long.node.options,
            long.node.saved,
        )
        assert (short.node.shape, short.node.dtype) == (long.node.shape, long.node.dtype)
        assert long.node.order == short.node.order - 1
        assert (short.node.extra is None) == (long.node.extra is None) == (way != "anomaly")


def test_a_write_reaches_the_views_that_live() -> None:
    """Every view that somebody holds takes up the history of a recorded write; those that are gone take no room."""
    base, factor = torch.ones(4, 4), torch.ones(4, 4, requires_grad=True)
    held = [base[i % 4] for i in range(50)]
    for _ in range(1000):
        base[0], base.view(16)
    assert len(base.version.views) < 110
    base.mul_(factor)
    assert all(view.grad_fn is not None for view in held)
    del held
    for _ in range(100):
        base[0]
    assert len(base.version.views) < 10


def test_several_views_are_off_limits_for_recorded_writes() -> None:
    """The parts of a split are of the kind that refuses such writes; under no_grad of that which was not recorded."""
    x = torch.ones(4, requires_grad=True).clone()
    assert [one.origin.kind for one in x.split(2)] == ["several", "several"]
    assert [one.grad_fn.name() for one in x.chunk(2)] == ["SplitBackward0", "SplitBackward0"]
    with torch.no_grad():
        assert [one.origin.kind for one in x.split(2)] == ["unrecorded", "unrecorded"]


def test_writes_are_counted() -> None:
    """A write counts one and takes the time of the clock, by both ways."""
    x = torch.ones(3)
    assert is_free(x)
    assert is_free.__wrapped__(x)
    written(x)
    before = x.version.stamp
    written.__wrapped__(x)
    assert (x._version, x.version.stamp) == (2, before - 1)
    for other in (x.expand(2, 3), torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)[0], x[1:]):
        assert is_free(other) == is_free.__wrapped__(other)


def test_inference_mode_slows_no_later_write() -> None:
    """What was made in it, and views of that, take the closer look for good; other tensors are free without one."""
    with torch.inference_mode():
        marked = torch.ones(3)
    view, x = marked[1:], torch.ones(3)
    looks: list[str] = []
    sys.setprofile(lambda frame, event, _: looks.append(frame.f_code.co_name) if event == "call" else None)
    try:
        answers = [is_free(one) for one in (x, x[1:], marked, view)]
    finally:
        sys.setprofile(None)
    assert answers == [is_free.__wrapped__(one) for one in (x, x[1:], marked, view)] == [True, True, False, False]
    assert looks.count("is_free") == 2


def test_a_lack_of_memory_is_met_by_the_function(monkeypatch) -> None:
    """A kernel that finds no memory is called once more after room was made."""
    x, calls = torch.ones(2, 2), []
    kernel = x.device.kernels["permute"]

    def short_of_memory(*natives, **options):
        calls.append(1)
        if len(calls) < 2:
            raise MemoryError
        return kernel(*natives, **options)

    monkeypatch.setitem(x.device.kernels, "permute", short_of_memory)
    assert apply(_permute, (x,), {"dims": (1, 0)}).tolist() == [[1, 1], [1, 1]]
    assert len(calls) == 2


def test_a_tensor_that_changes_while_its_kernel_is_found(monkeypatch) -> None:
    """A call reads the arrays that its tensors had when it began, whatever code runs before the kernel does."""
    x = torch.ones(2, 2)
    table, kernel = x.device.kernels, x.device.kernels["permute"]

    def found_late(table, name):
        x.data = torch.zeros(2, 2)
        return kernel

    monkeypatch.setattr(type(table), "__missing__", found_late)
    monkeypatch.delitem(table, "permute")
    assert apply(_permute, (x,), {"dims": (1, 0)}).tolist() == [[1, 1], [1, 1]]
    assert x.tolist() == [[0, 0], [0, 0]]


def test_what_fits_is_joined() -> None:
    """Tensors of sizes that fit by both ways; None where one of them is unusual."""
    a, b = torch.zeros(2, 3), torch.zeros(2, 5)
    for given in (((a, b), 1), ((a, b), -1), ([a, a], 0)):
        short, long = _fitting(*given), _fitting.__wrapped__(*given)
        assert short[1:] == long[1:]
        assert all(one is other for one, other in zip(short[0], long[0], strict=True))
    recorded = torch.zeros(2, 3, requires_grad=True)
    for given in (
        ((a, b), 0),
        ((a, b), 2),
        ((a, b), True),
        ((), 0),
        ((a, a.double()), 0),
        ((a, recorded), 0),
        ((a, 3), 0),
        (a, 0),
    ):
        assert _fitting(*given) is None


def test_tensors_are_marked_in_inference_mode() -> None:
    """A new tensor says that it was made there, and no other does."""
    native = np.zeros(3, np.float32)
    device = torch.device("cpu")
    with torch.inference_mode():
        assert new_tensor(native, torch.float32, device).is_inference()
        assert apply(_permute, (torch.ones(2, 2),), {"dims": (1, 0)}).is_inference()
    assert not new_tensor(native, torch.float32, device).is_inference()


def test_no_reference_is_lost_or_kept() -> None:
    """Calls by the short ways leave the counts of what they touch as they were, and the number of objects."""
    x, y, leaf = torch.ones(4, 4), torch.ones(4, 4), torch.nn.Parameter(torch.ones(2))
    leaf.grad = torch.ones(2)

    def calls():
        x.view(16).shape, x[1:3], x.t().ndim, x.chunk(2), torch.cat([x, y], 1), x.triu(), x.add_(y)
        rules.broadcast("op", (1, 300), (400, 1)), rules.wrap_dims("op", (0, -1), 500), outcome(x.view, 3)
        with torch.no_grad():
            x[0], x.split(1)
        x.double().requires_grad_()[0].sum().backward()
        with_gradients({"params": [leaf, torch.nn.Parameter(y)]})

    for _ in range(20):
        calls()
    things = (x, y, x.device, x.native, x.dtype, x.version, leaf, leaf.grad, _view, select_op, None)
    gc.collect()
    counts, number = [sys.getrefcount(one) for one in things], len(gc.get_objects())
    for _ in range(1000):
        calls()
    gc.collect()
    assert all(abs(sys.getrefcount(one) - count) < 100 for one, count in zip(things, counts, strict=True))
    assert abs(len(gc.get_objects()) - number) < 100


def test_the_functions_run_without_them() -> None:
    """With TENSORCORE_NATIVE=0 nothing stands before a function, and a program gives the same."""
    code = (
        "import tensorcore as torch; from tensorcore.ops.calls import apply; x = torch.ones(4, 3, requires_grad=True); "
        "y = torch.cat([x.t()[1:].reshape(-1), x.view(12)]); y.sum().backward(); "
        "print(hasattr(apply, '__wrapped__'), y.shape, x.grad.sum().item())"
    )
    for wanted, there in (("0", False), ("1", True)):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              env=os.environ | {"TENSORCORE_NATIVE": wanted})  # fmt: skip
        assert done.stdout.split("\n")[0] == f"{there} torch.Size([20]) 20.0"


USUAL = [
    ("add", ([1.0, 2.0], [3.0, 4.0])), ("add", ([1.0, 2.0], 2.5)), ("add", ([1.0, 2.0], True)), ("add", ([1, 2], 2**31 - 1)),
    ("add", ([1, 2], 2**31)), ("add", ([1, 2], -(2**70))), ("add", ([1, 2], 2.5)), ("add", ([True, False], 1)), ("add", ([1.0], [1])),
    ("add", ([1.0, 2.0], [1.0, 2.0, 3.0])), ("add", (3.0, [1.0])), ("add", ([1.0], None)), ("mul", ([[1.0], [2.0]], [3.0, 4.0])),
    ("mul", ([1.0, 2.0], np.float64(2.0))), ("truediv", ([4, 2], [2, 1])), ("exp", ([0.0, 1.0],)), ("exp", ([0, 1],)), ("exp", (1.0,)),
    ("sqrt", ([4.0, -1.0],)), ("abs", ([1 - 2j],)), ("isnan", ([1.0, float("nan")],)), ("eq", ([1.0, 2.0], 2)), ("relu", ([-1.0, 2.0],)),
    ("maximum", ([], [])), ("neg", (lambda: torch.nn.Parameter(torch.ones(1)),)),
    ("atan2", ([0.0, 1.0], [0.0, -1.0])), ("matmul", ([[1.0, 2.0]], [[3.0], [4.0]])),
    ("matmul", ([1.0, 2.0], [1.0])),
]  # fmt: skip


TAPING = {
    "leaf": torch.enable_grad, "plain": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x * 1, lambda x: x),
}  # fmt: skip


@pytest.mark.parametrize("name, values", USUAL)
@pytest.mark.parametrize("taping", TAPING)
def test_an_elementwise_call_gives_the_same_by_both_ways(name, values, taping) -> None:
    """Values, dtype, history, what is saved, gradients and errors, of the short way and of the function alone."""
    call, found = getattr(torch.Tensor, name, None), []
    if call is None or not hasattr(call, "__wrapped__"):
        call = getattr(torch.Tensor, f"__{name}__")
    for way in (call, call.__wrapped__):
        tensors = [torch.tensor(one) if isinstance(one, list) else one() if callable(one) else one for one in values]
        floating = [one for one in tensors if isinstance(one, torch.Tensor) and one.dtype.is_floating_point]
        if taping != "plain":
            for one in floating:
                one.requires_grad_()
        with TAPING[taping]():
            made = outcome(way, *tensors)
        if isinstance(made, torch.Tensor):
            node = made.grad_fn
            facts = [type(made), made.dtype, made.tolist(), made.requires_grad, made.is_inference()]
            if node is not None:
                made.sum().backward()
                facts += [node.name(), *[one.grad.tolist() for one in floating]]
            made = repr(facts)
        found.append(made)
    assert found[0] == found[1]


def test_an_interrupt_of_a_kernel_is_not_swallowed(monkeypatch) -> None:
    """Ctrl-C within a kernel leaves the call, any other error of it has the function make the call again."""
    x, errors = torch.ones(3), [KeyboardInterrupt(), ValueError("first"), ValueError("second")]

    def fail(*args):
        raise errors.pop(0)

    monkeypatch.setitem(x.device.kernels, "exp", fail)
    with pytest.raises(KeyboardInterrupt):
        x.exp()
    with pytest.raises(ValueError, match="second"):
        x.exp()
