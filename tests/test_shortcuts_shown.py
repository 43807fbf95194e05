"""The short ways in C before views with other sizes, or with the dims in another order, and before parts of given sizes."""

import pytest

import tensorcore as torch
from tensorcore.ops.calls import apply

from .test_shortcuts import HUGE, outcome

pytestmark = pytest.mark.skipif(not hasattr(apply, "__wrapped__"), reason="built without a compiler")
CALLS = {
    "expand": [(2, 3), (2, -1), (4, 2, 3), ((2, 3),), ([4, -1, 3],), (0, 2, 3), (-1, 2, 3), (3,), (2, 4), (2, 3.0), (2, True),
               (HUGE, 2, 3), ()],
    "broadcast_to": [((2, 3),), ([2, -1],), (torch.Size([4, 2, 3]),), (6,), ((3,),), (2, 3), (None,), ([-2, 2, 3],)],
    "permute": [(1, 0), (-1, 0), ((1, 0),), ([0, 1],), (0, 0), (0,), (0, 2), (0, 1, 2), (True, 0), (1.0, 0), ((),), (HUGE, 0)],
    "transpose": [(0, 1), (-1, 0), (1, 1), (0, 2), (True, 0), (0, 1.0), (0,), (HUGE, 0)],
    "swapaxes": [(0, 1), (0, 3)],
    "narrow": [(0, -1, 1), (1, -3, 2), (1, -4, 1), (-1, -1, 2), (0, 0, 0), (0, HUGE, 1)],
    "movedim": [(0, 1), (1, 0), (-1, 0), (0, 0), (0, 2), ((0, 1), (1, 0)), ([0], [1]), (True, 0)],
    "moveaxis": [(0, -1), (0, 1.0)],
    "as_strided": [((2, 2), (1, 2)), ([3], [2], 1), ((2,), (1,), 9), ((2, 2), (1,)), ((-1,), (1,)), ((2,), (-1,)), ((), ()),
                   ((2,), (1,), 1.0), (2, 1)],
    "split": [(1,), (2,), (5,), (0,), (-1,), ([1, 1],), ((2, 1),), ((1, 2), 1), ([], 0), ([3, 0], 1),
              ([1, -1, 2],), (2, 1), (2, -3), (HUGE,), (True,), ([1.0, 1],)],
    "split_with_sizes": [([1, 1],), ((1, 2), -1), (2,), ([4],), ([2], 2), (torch.Size([0, 2]),), ([HUGE, 1],)],
}  # fmt: skip


def seen(one):
    origin = one.origin
    return (
        one.shape,
        one.stride(),
        one.storage_offset(),
        one.tolist(),
        origin and (origin.kind, origin.op.name, origin.options),
    )


def shown(way, x, *given):
    made = way(x, *given)
    return [seen(one) for one in (made if isinstance(made, tuple) else (made,))]


def gradient(way, x, *given):
    leaf = x.clone().requires_grad_()
    made = way(leaf, *given)
    parts = made if isinstance(made, tuple) else (made,)
    sum((part * k).sum() for k, part in enumerate(parts, 1)).backward()
    return leaf.grad.tolist(), parts[0].node.op.name, parts[0].node.options


@pytest.mark.parametrize("name", CALLS)
def test_views_are_shown_by_both_ways(name) -> None:
    """Where a view lies, what its origin says of it, and its gradient, with and without recording; what is wrong is said in words."""
    short = getattr(torch.Tensor, name)
    whole = torch.arange(12.0).view(3, 4)
    for x in (
        torch.arange(6.0).view(2, 3),
        whole[1:, 1:],
        whole[:2, :1],
        torch.tensor(2.0),
        torch.zeros(0, 3),
        torch.arange(2),
    ):
        for given in CALLS[name]:
            for recording in (True, False):
                with torch.set_grad_enabled(recording):
                    for look in (shown, gradient):
                        found = [repr(outcome(look, way, x, *given)) for way in (short, short.__wrapped__)]
                        assert found[0] == found[1]


def test_the_dim_of_parts_may_have_its_name() -> None:
    """Both functions take it by position and by name."""
    x = torch.arange(6.0).view(2, 3)
    assert [one.tolist() for one in x.split(2, dim=1)] == [[[0, 1], [3, 4]], [[2], [5]]]
    assert [one.tolist() for one in x.split_with_sizes([1, 2], dim=-1)] == [[[0], [3]], [[1, 2], [4, 5]]]
