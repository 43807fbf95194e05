"""The short ways in C before what joins tensors, works on matrices or has several results, with a place for them and without."""

import pytest

import tensorcore as torch
from tensorcore.ops.calls import apply

from .test_shortcuts import HUGE, outcome

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")


def both(name):
    """A function behind its short way, and as it is in Python."""
    short = torch
    for part in name.split("."):
        short = getattr(short, part)
    return short, short.__wrapped__


def alike(look, name, *given, **named):
    found = [repr(outcome(look, way, *given, **named)) for way in both(name)]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["cat", "concat", "stack", "hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (0, 3)])
def test_tensors_are_joined_by_both_ways(name, shape) -> None:
    """In new memory and in places of the shape, of others, of another dtype, that are views, and that are joined themselves."""
    count = 1
    for size in shape:
        count *= size
    parts = [torch.arange(k, k + count).float().view(shape) for k in (0, 10, 20)]
    wanted = outcome(both(name)[1], parts)
    sizes = wanted.shape if isinstance(wanted, torch.Tensor) else (3,)

    def placed(way, make, tensors=parts):
        out = make()
        return way(tensors, out=out) is out, out, out._version

    for make in (
        lambda: torch.zeros(sizes),
        lambda: torch.zeros(7),
        lambda: torch.zeros(sizes, dtype=torch.float64),
        lambda: torch.zeros(sizes, dtype=torch.int64),
        lambda: torch.zeros((2, *sizes))[1],
        lambda: torch.zeros(sizes, requires_grad=True),
        lambda: None,
    ):
        alike(placed, name, make)
    alike(lambda way: way([one.clone().requires_grad_() for one in parts], out=torch.zeros(sizes)), name)
    for others in (
        (),
        [],
        parts[0],
        [*parts[:1], 1.5],
        [parts[0], parts[1].double()],
        [parts[0], parts[1].view(-1)[:1]],
    ):
        alike(lambda way, others=others: way(others), name)
        alike(placed, name, lambda: torch.zeros(sizes), others)

    def joined(way):
        own = [one.clone() for one in parts]
        return way(own, out=own[0])

    alike(joined, name)


@pytest.mark.parametrize("name", ["tril", "triu", "linalg.cholesky_ex", "linalg.lu_factor_ex", "linalg.ldl_factor_ex"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (2, 3), (3,), (0, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int64, torch.bfloat16])
def test_what_works_on_matrices_is_made_by_both_ways(name, shape, dtype) -> None:
    """With words that the kernel is told and others, by position and by name, with places and with a history."""
    x = (torch.eye(3) * 4).expand(2, 3, 3)[(0,) * (3 - len(shape))] if shape[-1] else torch.zeros(0, 0)
    x = (x[:2] if shape == (2, 3) else x).to(dtype).contiguous()

    def placed(way, *given, **named):
        made = way(x, *given, **named)
        one = isinstance(made, torch.Tensor)
        place = torch.empty_like(made) if one else tuple(map(torch.zeros_like, made))
        return way(x, *given, out=place, **named), place

    def recorded(way, *given, **named):
        leaf = x.clone().requires_grad_()
        made = way(leaf, *given, **named)
        (made if isinstance(made, torch.Tensor) else made[0]).abs().sum().backward()
        return leaf.grad

    words = {
        "tril": [{"diagonal": one} for one in (0, 1, -1, True, 1.0, HUGE)],
        "triu": [{"diagonal": -1}, {"upper": True}],
        "linalg.cholesky_ex": [{"upper": True}, {"upper": 1}, {"check_errors": True}, {"pivot": True}],
        "linalg.lu_factor_ex": [{"pivot": False}, {"pivot": True}, {"check_errors": True}],
        "linalg.ldl_factor_ex": [{"hermitian": True}, {"hermitian": True, "check_errors": True}],
    }[name]
    for named in ({}, *words):
        for look in (lambda way, **named: way(x, **named), placed, recorded):
            alike(look, name, **named)
        alike(lambda way, *given: way(x, *given), name, *named.values())
    alike(lambda way: way(x, 1, 2), name)


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_both_extremes_are_found_by_both_ways(shape, dtype) -> None:
    """Over everything and a dim, in places, and with a gradient; a pair that cannot take them both is left as it was."""
    x = torch.arange(6)[: 6 if shape == (2, 3) else 0 if shape else 1].view(shape).to(dtype)

    def placed(way, pair, **named):
        places = pair()
        made = outcome(way, x, out=places, **named)
        return made, places, [one._version for one in places]

    def gradient(way, **named):
        leaf = x.clone().requires_grad_()
        sum(one.sum() for one in way(leaf, **named)).backward()
        return leaf.grad

    for named in (
        {},
        {"dim": 1},
        {"dim": -1, "keepdim": True},
        {"keepdim": True},
        {"dim": 3},
        {"dim": (0, 1)},
        {"dim": True},
    ):
        alike(lambda way, **named: way(x, **named), "aminmax", **named)
        alike(gradient, "aminmax", **named)
        for pair in (
            lambda: (torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=dtype)),
            lambda: (torch.zeros((), dtype=dtype), torch.zeros((), dtype=dtype)),
            lambda: (torch.zeros(2, dtype=dtype), torch.zeros(7, dtype=dtype)[1:6]),
            lambda: (torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=torch.float64)),
            lambda: (torch.zeros(2, dtype=dtype),) * 2,
            lambda: (torch.zeros(2, dtype=dtype),),
        ):
            alike(placed, "aminmax", pair, **named)
    alike(lambda way: way(x, 1), "aminmax")


@pytest.mark.parametrize("name", ["cross", "linalg.cross"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64, torch.bool])
def test_cross_products_are_made_by_both_ways(name, dtype) -> None:
    """Vectors along each dim, those that broadcast, are views or no vectors; with places, the operands among them, and gradients."""
    x = (torch.arange(9) % 5).view(3, 3).to(dtype)
    pairs = [
        (x, x.flip(0)),
        (x, x[:1]),
        (x[:1].t(), x),
        (x[0], x[1]),
        (x, x[0]),
        (x[:2], x),
        (x[:, :2], x[:, :2]),
        (x[:0], x[:0]),
        (x, x.double()),
    ]

    def placed(way, one, other, **named):
        place = torch.zeros(3, 3, dtype=dtype)
        return way(one, other, out=place, **named) is place, place

    def gradient(way, one, other, **named):
        leaves = one.clone().requires_grad_(), other.clone().requires_grad_()
        way(*leaves, **named).abs().sum().backward()
        return [leaf.grad for leaf in leaves]

    for one, other in pairs:
        for named in ({}, {"dim": 0}, {"dim": -1}, {"dim": 2}, {"dim": None}, {"dim": 1.0}):
            for look in (lambda way, *pair, **named: way(*pair, **named), placed, gradient):
                alike(look, name, one, other, **named)
        alike(lambda way, *pair: way(*pair, 1), name, one, other)
        alike(lambda way, one, other: way(one.clone(), other, out=other), name, one, other.clone())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64])
def test_places_in_sorted_sequences_are_found_by_both_ways(dtype) -> None:
    """Sequences of one dim and of several, values of other shapes and dtypes, on both sides, and with places."""
    x = torch.arange(6).view(2, 3).to(dtype)

    def placed(way, *pair, **named):
        place = torch.zeros(2, 3, dtype=torch.int64)
        return way(*pair, out=place, **named) is place, place

    for sequence, values in (
        (x, x),
        (x[0], x),
        (x[0], x[0, 0]),
        (x, x[:1]),
        (x, x[0]),
        (x[0, 0], x),
        (x[0], x.double()),
        (x[:0], x[:0]),
        (x, 1),
        (x[0], 2),
    ):
        for named in (
            {},
            {"right": True},
            {"right": 1},
            {"side": "right"},
            {"out_int32": True},
            {"sorter": None},
            {"right": True, "side": "left"},
        ):
            for look in (lambda way, *pair, **named: way(*pair, **named), placed):
                alike(look, "searchsorted", sequence, values, **named)
    alike(lambda way: way(x, x, True), "searchsorted")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
def test_complex_numbers_are_made_of_their_parts_by_both_ways(dtype) -> None:
    """Parts that broadcast, of other dtypes and none; with places that fit and others, and with gradients."""
    x = torch.arange(6).view(2, 3).to(dtype)

    def placed(way, make, *parts):
        out = make()
        return way(*parts, out=out) is out, out

    def gradient(way, *parts):
        leaves = [one.clone().requires_grad_() for one in parts]
        (way(*leaves) * (1 + 2j)).abs().sum().backward()
        return [leaf.grad for leaf in leaves]

    for parts in ((x, x), (x, x[0]), (x, x.double()), (x, 2.0), (x, x[:, :2]), (x,), (x[:0], x[:0])):
        alike(lambda way, *parts: way(*parts), "complex", *parts)
        alike(gradient, "complex", *parts)
        for make in (
            lambda: torch.zeros(2, 3, dtype=torch.complex64),
            lambda: torch.zeros(2, 3),
            lambda: torch.zeros(5, dtype=torch.complex64),
            lambda: torch.zeros(2, 3, dtype=torch.complex128),
            lambda: torch.zeros(2, 2, 3, dtype=torch.complex64)[1],
            lambda: None,
        ):
            alike(placed, "complex", make, *parts)
