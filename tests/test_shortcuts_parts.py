"""Many parts of a tensor, which share what is known of where they come from."""

import gc

import pytest

import tensorcore as torch
from tensorcore.ops.calls import apply
from tensorcore.ops.shapes.split import _slices, _split, _unbind

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")
CALLS = [
    (_unbind, 0, 12),
    (_unbind, 1, 10),
    (_split, 0, [*range(13)]),
    (_split, 0, [0, 1, 3, 4, 5, 6, 7, 8, 12]),
    (_split, 1, [*range(0, 10, 1), 10]),
    (_split, 0, [0, 1, 1, 4, 5, 6, 7, 8, 9, 12]),
    (None, 0, [*range(13)]),
]


def shown(parts):
    return [
        (one.data_ptr(), one.shape, one.stride(), one._base is not None, one.origin.kind, one.origin.steps)
        for one in parts
    ]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "of",
    [
        lambda x: x,
        lambda x: x.t().contiguous().t(),
        lambda x: x.view(24, 5)[::2, :].repeat(1, 2),
        lambda x: x.view(10, 12).t(),
        lambda x: torch.cat((x, x)).split(12)[1],
        lambda x: torch.cat((x, x)).view(20, 12)[::2].t(),
        lambda x: x[:, :1].expand(12, 10),
        lambda x: x.expand(10, 12, 10).unbind()[3],
        lambda x: x.repeat(10, 1, 1).unbind()[3],
    ],
)
def test_parts_and_their_views_know_where_they_come_from(call, of) -> None:
    """Each part's steps from the base are those of the long way, and so are those of views that are taken of it."""
    op, dim, cuts = call
    x = of(torch.arange(120.0).view(12, 10))
    for recording in (True, False):
        with torch.set_grad_enabled(recording):
            short, long = _slices(op, x, dim, cuts), _slices.__wrapped__(op, x, dim, cuts)
            views = [[one.view(one.shape) for one in parts] for parts in (short, long)]
            assert shown(views[0]) == shown(views[1])
            assert shown(short) == shown(long)


@pytest.mark.parametrize("shape", [(0, 10), (12, 0)])
def test_parts_without_elements(shape) -> None:
    """They have no place of their own in memory, and keep their options."""
    made = torch.ones(shape).split(1, 1) if shape[1] else torch.ones(shape).split(1)
    assert [one.origin.options["key"][-1].start for one in made] == [*range(len(made))]


def test_parts_follow_a_recorded_write_to_the_base() -> None:
    """Parts, views of them and parts whose shape was changed get the base's history, each its own place of it."""
    x, weight = torch.ones(10, 3), torch.arange(30.0).view(10, 3).requires_grad_()
    parts = x.unbind()
    view, widened = parts[4][1:], parts[5].unsqueeze_(0)
    x.mul_(weight)
    for one, expected in ((parts[3], [3]), (view, [4, 4]), (widened, [5])):
        weight.grad = None
        one.sum().backward(retain_graph=True)
        assert one.requires_grad
        assert [*dict.fromkeys(weight.grad.nonzero()[:, 0].tolist())] == [*dict.fromkeys(expected)]
    assert weight.grad.tolist()[5] == [1, 1, 1]


def test_a_part_refuses_a_recorded_write() -> None:
    """It is one of several results, as those of few parts are."""
    parts = torch.ones(10, 3).split(1)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        parts[2].mul_(torch.ones(1, requires_grad=True))


def test_a_part_that_shows_other_memory_keeps_its_origin() -> None:
    """Where a part came from was told by its memory, and is remembered when that is another."""
    x = torch.ones(10, 3)
    part = x.unbind()[7]
    part.data = torch.zeros(3)
    assert part._base is x
    assert part.origin.options == {"key": (7,)}


def test_the_collector_of_cycles_looks_at_one_object_of_each_part() -> None:
    """A tensor each, and nothing of what it holds: rows by the ten thousands make it look at all of the program's otherwise."""
    x = torch.ones(1000, 3)
    for show in (torch.unbind, lambda x: x.split(1)):
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            parts = show(x)
            seen = len(gc.get_objects()) - before
        finally:
            gc.enable()
        assert len(parts) == 1000
        assert seen < 1100


def test_a_cycle_through_a_part_is_collected() -> None:
    """A base that holds its parts goes with them."""

    class Mark:
        pass

    gc.collect()
    before = sum(isinstance(one, Mark) for one in gc.get_objects())
    x = torch.ones(20, 3)
    x.mark, x.parts = Mark(), x.unbind()
    del x
    gc.collect()
    assert sum(isinstance(one, Mark) for one in gc.get_objects()) == before
