"""The short ways in C before calls of few kinds: parts of a tensor, places along a dim, losses of classes, products with a sum."""

from contextlib import nullcontext
from types import FunctionType

import pytest

import tensorcore as torch
from tensorcore.autograd.graph import saved_tensors_hooks
from tensorcore.ops.calls import apply
from tensorcore.ops.define import Op
from tensorcore.ops.indexing.scatter import _usual
from tensorcore.ops.layers.labels import is_plain
from tensorcore.ops.linalg.affine import _add_product, _addmm
from tensorcore.ops.pointwise.complex import _are_pairs
from tensorcore.ops.record import record
from tensorcore.ops.shapes.split import _slices, _split
from tensorcore.ops.shapes.views_part import diagonal_options
from tensorcore.shortcuts import behind, in_python

from .test_shortcuts import HUGE, outcome

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")


@pytest.mark.parametrize("op", [None, _split])
@pytest.mark.parametrize("given", [(0, [0, 2, 3]), (1, [0, 3, 1, 4]), (1, [4]), (0, []), (0, [0, HUGE]), (1, [1, 2.0])])
def test_parts_are_shown_by_both_ways(op, given) -> None:
    """Where each part lies, and what its origin says of it, with and without recording."""
    x = torch.arange(12.0).view(3, 4)

    def parts(function):
        made = function(op, x, *given)
        return [(one.native.ctypes.data, one.shape, one.stride(), one.origin.kind, one.origin.options) for one in made]

    for recording in (True, False):
        with torch.set_grad_enabled(recording):
            assert outcome(parts, _slices) == outcome(parts, _slices.__wrapped__)


@pytest.mark.parametrize(
    "args", [(0, 0, 1), (-1, -1, 0), (2, 1, 1), (0, 0, 7), (True, 0, 1), (1.5, 0, 1), (0, 0.0, 1), (HUGE, 1, 0)]
)
def test_diagonals_are_named_by_both_ways(args) -> None:
    """The dims counted from the front; two that are one, or none, are an error."""
    short, long = (outcome(f, "op", (2, 3), *args) for f in (diagonal_options, diagonal_options.__wrapped__))
    assert short == long


def test_pairs_of_floats_are_seen_by_both_ways() -> None:
    """Rows of two neighbours at even places are pairs, whatever has a step or a beginning that is odd is none."""
    x = torch.arange(24.0)
    for one in (
        x.view(12, 2),
        x.view(3, 4, 2),
        x[1:-1].view(11, 2),
        x.view(4, 6)[:, 2:4],
        x.view(8, 3)[:, :2],
        x.view(2, 12).t(),
        x[:0].view(0, 2),
    ):
        assert _are_pairs(one) == _are_pairs.__wrapped__(one)


@pytest.mark.parametrize("index", [(2, 3), (1, 3), (2, 1), (3, 3), (2, 4), (0, 3), (3,), ()])
@pytest.mark.parametrize("dim", [0, 1, -1, -3, 2, True, HUGE, 1.0])
def test_places_along_a_dim_are_looked_at_by_both_ways(dim, index) -> None:
    """Indices that fit the input, the source, both or none; sources of other dtypes, and the input itself."""
    x, at = torch.zeros(2, 3), torch.zeros(index, dtype=torch.int64)
    for src in (x, torch.zeros(2, 3), torch.zeros(4, 4), torch.zeros(2, 3, dtype=torch.float64), torch.zeros(3), 1.5):
        assert outcome(_usual, x, dim, at, src) == outcome(_usual.__wrapped__, x, dim, at, src)
    assert outcome(_usual, x, dim, at.int(), x) == outcome(_usual.__wrapped__, x, dim, at.int(), x)


def test_usual_losses_of_classes_are_known_by_both_ways() -> None:
    """Scores of floats and a class for each; weights, other words, dtypes and shapes are looked at closer."""
    x, at = torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)
    plain = (x, at, None, None, -100, None, "mean")
    others = [(0, x[0]), (0, x.half()), (0, 3), (1, at.int()), (1, at[:1]), (1, at.view(2, 1)), (2, x[0]), (3, True), (4, 1.0), (6, "most"),
              (6, "".join(["su", "m"])), (6, None)]  # fmt: skip
    for place, other in [(0, x), *others]:
        given = (*plain[:place], other, *plain[place + 1 :])
        assert is_plain(*given) == is_plain.__wrapped__(*given)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("c", [(2, 4), (1, 4), (4,), (2, 1), (), (3, 4), (1, 2, 4)])
def test_products_with_a_sum_are_made_by_both_ways(c, recorded) -> None:
    """Sums that broadcast and those that do not; with a node, and without."""
    x, y = torch.arange(6.0).view(2, 3).requires_grad_(recorded), torch.arange(12.0).view(3, 4)
    for one, other, dims in (
        (x, y, (2, 2)),
        (x, y[:, 0], (2, 1)),
        (x, y.t(), (2, 2)),
        (x.double(), y, (2, 2)),
        (x, y, (3, 3)),
    ):
        for beta, alpha in ((1, 1), (0.5, 2), (True, 1), (0, 1.0)):
            made = [
                outcome(f, _addmm, torch.ones(c), one, other, dims, beta, alpha, None)
                for f in (_add_product, _add_product.__wrapped__)
            ]
            if type(made[0]) is tuple:
                assert made[0] == made[1]
            else:
                assert (made[0].tolist(), type(made[0].grad_fn)) == (made[1].tolist(), type(made[1].grad_fn))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_factors_of_whole_numbers_are_cut_off_by_both_ways(dtype) -> None:
    """Beside integers, with a place and without; those that not every integer dtype has are looked at closer."""
    x, y = torch.arange(6, dtype=dtype).view(2, 3), torch.arange(9, dtype=dtype).view(3, 3)
    for beta, alpha in ((1, 2.9), (0.5, 127), (-1, 1), (1, 300), (True, 1), (1, HUGE), (1, float("nan"))):
        for place in (None, x, y[:2]):
            found = [outcome(f, _addmm, y[:2] * 2, x, y, (2, 2), beta, alpha, None if place is None else place.clone())
                     for f in (_add_product, _add_product.__wrapped__)]  # fmt: skip
            assert repr(found[0]) == repr(found[1])


SCATTERED = {
    "scatter": lambda way, x, at, **to: way(x, 1, at, x, **to),
    "scatter of a number": lambda way, x, at, **to: way(x, dim=1, index=at, value=2.5, **to),
    "scatter_add": lambda way, x, at, **to: way(x, 0, at, x * 2, **to),
    "scatter_reduce": lambda way, x, at, **to: way(x, 0, at, x * 2, "amax", include_self=False, **to),
    "index_add": lambda way, x, at, **to: way(x, 0, at[0, :2], x[:2], alpha=2, **to),
    "masked_fill": lambda way, x, at, **to: way(x, at > 0, 1.5, **to),
    "put": lambda way, x, at, **to: way(x, at, x, True, **to),
}


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("at", [1, 0, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int64])
def test_copies_that_are_written_to_are_made_by_both_ways(name, at, dtype) -> None:
    """New ones, those of a place, which may be of another shape or the input itself, and those with a history; and what is outside."""
    short, ask = getattr(torch, name.split()[0]), SCATTERED[name]
    x, index = torch.arange(6).view(2, 3).to(dtype), torch.full((2, 3), at)

    def placed(way, shape):
        place = torch.empty(shape, dtype=dtype)
        return ask(way, x, index, out=place) is place, place

    def itself(way):
        place = x.clone()
        return ask(way, place, index, out=place), place

    def recorded(way):
        made = ask(way, x.clone().requires_grad_(), index)
        return made, made.grad_fn.options

    for look in (
        lambda way: ask(way, x, index), lambda way: ask(way, x, index, out=None), lambda way: placed(way, (2, 3)),
        lambda way: placed(way, (5,)), lambda way: placed(way, (0,)), itself, recorded,
    ):  # fmt: skip
        assert repr(outcome(look, short)) == repr(outcome(look, short.__wrapped__))


_FORMULAS = [
    dict(a=lambda g: g),
    dict(a=lambda g, b: g * b),
    dict(a=lambda g, a: g * a, b=lambda g, a, b: g * b),
    dict(b=lambda g, out: g * out),
    dict(a=lambda g, a_shape: g, b=lambda g, b_dtype, a: g),
    dict(),
]


@pytest.mark.parametrize("grads", _FORMULAS)
@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize("options", [None, {"dim": 1}])
def test_calls_are_recorded_by_both_ways(grads, options, hooks) -> None:
    """Of leaves, constants, results and absent inputs, of integers, of one result and of several, with hooks and without."""
    op = Op("kept", "a b", "", register=False, grads=grads)
    leaf, constant = torch.ones(2, requires_grad=True), torch.ones(3)
    third, own = leaf * 2, torch.nn.Parameter(constant)
    for inputs in ((leaf, constant), (constant, leaf), [leaf, third], (leaf, None), (own, leaf), (constant, third)):
        for dtype, several in (
            (torch.float32, False),
            (torch.int64, False),
            (torch.complex64, False),
            (torch.half, True),
        ):
            found = []
            for way in (record, record.__wrapped__):
                made = torch.zeros(4, dtype=dtype)
                with saved_tensors_hooks(lambda x: x, lambda x: x) if hooks else nullcontext():
                    found.append([outcome(way, op, inputs, options, [made] if several else made), options])
                node = made.grad_fn
                found[-1].append(made.version is None)
                if node is not None:
                    found[-1] += [node.op, node.edges, node.options, node.extra, node.shape, node.dtype]
                    found[-1] += [
                        getattr(node.saved, "items", node.saved),
                        node.version is made.version,
                        node.out is None,
                    ]
            assert repr(found[0]) == repr(found[1])


@pytest.mark.parametrize("name", ["mul", "exp", "lt", "isnan", "pow", "atan2", "abs", "matmul"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_elementwise_calls_with_a_place_are_made_by_both_ways(name, dtype) -> None:
    """A place of the result's shape and dtype, of others, and the input itself; operands that broadcast, numbers, too many of them."""
    short = getattr(torch, name)
    x = torch.arange(9).view(3, 3).to(dtype)

    def placed(way, others, shape, kind):
        own = x.clone()
        place = own if shape is None else torch.zeros(shape, dtype=kind)
        made = way(own, *others, out=place)
        return made is place, place

    for others in ((), (x,), (x[0],), (2,), (x[:, :1].double(),), (x.view(1, 3, 3),), (x, x)):
        for shape, kind in (
            ((3, 3), dtype),
            ((3, 3), torch.bool),
            ((3, 3), torch.float64),
            ((5,), dtype),
            (None, None),
        ):
            found = [outcome(placed, way, others, shape, kind) for way in (short, short.__wrapped__)]
            assert repr(found[0]) == repr(found[1])
        assert repr(outcome(short, x, *others, out=None)) == repr(outcome(short.__wrapped__, x, *others, out=None))


ALONG = [
    "softmax",
    "log_softmax",
    "cumsum",
    "cummax",
    "logcumsumexp",
    "sort",
    "topk",
    "kthvalue",
    "max",
    "argmin",
    "mode",
    "all",
]


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_what_works_along_a_dim_is_made_by_both_ways(name, shape, dtype) -> None:
    """By position and by name, with places and with a history; dims and counts that are none are looked at closer."""
    short = getattr(torch, name)
    x = (torch.arange(6)[: 6 if shape == (2, 3) else 0 if shape else 1] % 4).view(shape).to(dtype)
    first = (2,) if name in ("topk", "kthvalue") else ()

    def placed(way, *given):
        made = way(x, *given)
        place = (
            torch.empty(3, dtype=made.dtype) if isinstance(made, torch.Tensor) else tuple(map(torch.zeros_like, made))
        )
        return way(x, *given, out=place), place

    def recorded(way, *given):
        leaf = x.clone().requires_grad_()
        made = way(leaf, *given)
        (made if isinstance(made, torch.Tensor) else made[0]).sum().backward()
        return made, leaf.grad

    for given in (
        (1,),
        (-2,),
        (2,),
        (HUGE,),
        (True,),
        (1.0,),
        (1, True),
        (1, 1),
        (1, True, False),
        (1, True, None),
        (),
    ):
        for look in (
            lambda way, *given: way(x, *given),
            lambda way, *given: way(x, *first, dim=given[0]),
            placed,
            recorded,
        ):
            assert repr(outcome(look, short, *first, *given)) == repr(outcome(look, short.__wrapped__, *first, *given))
    for count in (0, 1, 3, 4, -1, True, 2.0, HUGE):
        assert repr(outcome(short, x, count)) == repr(outcome(short.__wrapped__, x, count))


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "min"])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
@pytest.mark.parametrize(
    "given",
    [(), (1,), (-2, True), (None, True), ((1, 0),), ([0], False), ((0, 0),), ((),), (2,), (HUGE,), (True,), (0, 1)],
)
def test_reductions_are_made_by_both_ways(name, shape, given) -> None:
    """By position and by name, with a place and with a gradient; dims that are none, or there twice, are looked at closer."""
    short = getattr(torch, name)
    x, named = (
        torch.arange(6.0)[: 6 if shape == (2, 3) else 0 if shape else 1].view(shape),
        dict(zip(("dim", "keepdim"), given, strict=False)),
    )

    def placed(function, *args):
        place = torch.empty(3)
        made = function(*args, out=place)
        return made is place, place

    def gradient(function, *args):
        leaf = args[0].clone().requires_grad_()
        made = function(leaf, *args[1:])
        made.sum().backward()
        return made.node.op.name, made.node.options["dim"], made.node.options["keepdim"], leaf.grad

    for ask in (
        lambda function, *args: function(*args),
        lambda function, *args: function(args[0], **named),
        placed,
        gradient,
    ):
        if ask is not placed or name != "min" or not given:
            assert repr(outcome(ask, short, x, *given)) == repr(outcome(ask, short.__wrapped__, x, *given))


def test_a_twin_of_a_function_has_its_short_way_while_it_runs_the_same() -> None:
    """What a profiler or a region calls in the place of a function; with other code the twin is asked, as the function would be."""
    plain = in_python(apply)
    twin = FunctionType(plain.__code__, plain.__globals__, "twin", plain.__defaults__)
    twin.__kwdefaults__ = plain.__kwdefaults__
    way = behind(plain, twin)
    assert way.__wrapped__ is twin
    assert way(Op("exp", "input", "", register=False), (torch.zeros(2),)).tolist() == [1, 1]
    twin.__code__ = (lambda *args, **options: "asked").__code__
    assert way(Op("exp", "input", "", register=False), (torch.zeros(2),)) == "asked"
    assert behind(outcome, twin) is twin
