"""Calls to test views, joins, indexing and scatters with; see ``samples/__init__.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorcore.ops.samples import Call, Make, unary

__all__ = ["unary", "unary_plain"]

I64 = np.int64


def _fixed(*calls: Callable[[Make], Call]) -> Callable[[Make], Iterator[Call]]:
    def calls_of(array: Make) -> Iterator[Call]:
        for one in calls:
            yield one(array)

    return calls_of


def _index(*values: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
    made = np.array(values, I64)
    return made if shape is None else made.reshape(shape)


MASK = np.array([[True, False, True, False], [False, False, True, True], [True, True, True, False]])

unary_plain = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(5),), {}))
view = _fixed(lambda a: ((a(3, 4), (2, 6)), {}), lambda a: ((a(3, 4), (-1,)), {}), lambda a: ((a(2, 0, 3), (0, 6)), {}))
reshape = _fixed(lambda a: ((a(3, 4), (2, 6)), {}), lambda a: ((a(3, 4), (-1,)), {}), lambda a: ((a(), (1, 1)), {}))
permute = _fixed(lambda a: ((a(2, 3, 4), (2, 0, 1)), {}), lambda a: ((a(2, 3), (-1, 0)), {}))
two_dims = _fixed(lambda a: ((a(2, 3, 4), 0, 2), {}), lambda a: ((a(2, 3, 4), -1, -2), {}))
matrix = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(3),), {}))
matrix_plain = _fixed(lambda a: ((a(3, 4),), {}))
batches = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(2, 3, 4),), {}))
movedim = _fixed(lambda a: ((a(2, 3, 4), 0, 2), {}), lambda a: ((a(2, 3, 4), (0, 2), (1, 0)), {}))
expand = _fixed(lambda a: ((a(3, 1), (2, 3, 4)), {}), lambda a: ((a(3, 1), (-1, 2)), {}), lambda a: ((a(), (2,)), {}))
broadcast_to = _fixed(lambda a: ((a(3, 1), (2, 3, 4)), {}))
squeeze = _fixed(lambda a: ((a(1, 3, 1),), {}), lambda a: ((a(1, 3, 1), 0), {}), lambda a: ((a(1, 3, 1), 1), {}))
unsqueeze = _fixed(lambda a: ((a(3, 4), 1), {}), lambda a: ((a(3, 4), -1), {}), lambda a: ((a(), 0), {}))
flatten = _fixed(lambda a: ((a(2, 3, 4),), {}), lambda a: ((a(2, 3, 4), 1), {}), lambda a: ((a(),), {}))
unflatten = _fixed(lambda a: ((a(2, 6), 1, (2, -1)), {}))
few_dims = _fixed(lambda a: ((a(),), {}), lambda a: ((a(3),), {}), lambda a: ((a(2, 3),), {}))

select = _fixed(lambda a: ((a(3, 4), 0, 1), {}), lambda a: ((a(3, 4), 1, -1), {}))
narrow = _fixed(
    lambda a: ((a(3, 4), 1, 1, 2), {}), lambda a: ((a(3, 4), 0, -2, 1), {}), lambda a: ((a(3, 4), 0, 3, 0), {})
)
diagonal = _fixed(
    lambda a: ((a(3, 4),), {}),
    lambda a: ((a(2, 3, 4), 1, 0, 2), {}),
    lambda a: ((a(3, 4), -2), {}),
    lambda a: ((a(3, 4), 7), {}),
)
unfold = _fixed(lambda a: ((a(3, 7), 1, 3, 2), {}), lambda a: ((a(5), 0, 2, 1), {}))
as_strided = _fixed(lambda a: ((a(3, 4), (2, 3), (4, 1), 1), {}), lambda a: ((a(12), (3, 3), (2, 1)), {}))
unbind = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(3, 4), -1), {}))
split = _fixed(lambda a: ((a(5, 4), 2), {}), lambda a: ((a(5, 4), [1, 4]), {}), lambda a: ((a(5, 4), 3, 1), {}))
split_with_sizes = _fixed(lambda a: ((a(5, 4), [1, 0, 4]), {}))
chunk = _fixed(lambda a: ((a(5, 4), 2), {}), lambda a: ((a(5, 4), 3, 1), {}))
tensor_split = _fixed(lambda a: ((a(5, 4), 3), {}), lambda a: ((a(5, 4), (1, 3), 1), {}))
hsplit = _fixed(lambda a: ((a(4, 6), 3), {}), lambda a: ((a(6), (2, 3)), {}))
vsplit = _fixed(lambda a: ((a(4, 6), 2), {}))
dsplit = _fixed(lambda a: ((a(2, 3, 4), 2), {}))
as_strided_scatter = _fixed(lambda a: ((a(3, 4), a(2, 2), (2, 2), (1, 2), 1), {}))
select_scatter = _fixed(lambda a: ((a(3, 4), a(4), 0, 1), {}))
slice_scatter = _fixed(lambda a: ((a(5, 4), a(2, 4), 0, 1, 5, 2), {}), lambda a: ((a(3, 4), a(3, 2), 1), {"start": 2}))
diagonal_scatter = _fixed(lambda a: ((a(3, 4), a(3)), {}), lambda a: ((a(3, 4), a(2), -1), {}))

cat = _fixed(
    lambda a: (([a(2, 3), a(4, 3)],), {}), lambda a: (([a(2, 3), a(2, 1)], -1), {}), lambda a: (([a(2, 3), a(0)],), {})
)
stack = _fixed(
    lambda a: (([a(2, 3), a(2, 3)],), {}), lambda a: (([a(2, 3), a(2, 3)], -1), {}), lambda a: (([a(), a()],), {})
)
stack_plain = _fixed(lambda a: (([a(3, 2), a(3, 2)],), {}), lambda a: (([a(3), a(3)],), {}))
tile = _fixed(lambda a: ((a(2, 3), (2,)), {}), lambda a: ((a(2, 3), (2, 1, 3)), {}))
repeat_interleave = _fixed(
    lambda a: ((a(2, 3), 2), {}), lambda a: ((a(2, 3), 2, 1), {}), lambda a: ((a(2, 3), _index(1, 0, 2), 1), {})
)

index_put = _fixed(
    lambda a: ((a(3, 4), (_index(0, 2, 0),), a(3, 4)), {"accumulate": True}),
    lambda a: ((a(3, 4), (_index(0, 2), _index(1, 1)), a(2)), {}),
    lambda a: ((a(3, 4), (MASK,), a()), {}),
)
gather = _fixed(
    lambda a: ((a(3, 4), 0, _index(0, 2, 2, 1, 1, 0, shape=(2, 3))), {}),
    lambda a: ((a(3, 4), 1, _index(3, 0, 0, shape=(3, 1))), {}),
)
take_along_dim = _fixed(lambda a: ((a(3, 4), _index(3, 0, 0, shape=(3, 1)), 1), {}))
PLACES = _index(0, 2, 2, 1, 1, 0, shape=(2, 3))
scatter = _fixed(
    lambda a: ((a(3, 4), 0, _index(0, 2, 2, 1, 1, 0, shape=(2, 3)), a(2, 3)), {}),
    lambda a: ((a(3, 4), 1, _index(0, 2, 3, shape=(3, 1)), 1.5), {}),
)
scatter_add = _fixed(lambda a: ((a(3, 4), 0, PLACES, a(2, 3)), {}), lambda a: ((a(3, 4), 1, PLACES, a(2, 3)), {}))
scatter_reduce = _fixed(
    *[
        lambda a, how=how, own=own: ((a(3, 4, low=0.5), 0, PLACES, a(2, 3, low=0.5), how), {"include_self": own})
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ]
)
index_select = _fixed(lambda a: ((a(3, 4), 0, _index(0, 2, 0)), {}), lambda a: ((a(3, 4), -1, _index()), {}))
index_add = _fixed(
    lambda a: ((a(3, 4), 0, _index(0, 2, 0), a(3, 4)), {}),
    lambda a: ((a(3, 4), 1, _index(3, 3), a(3, 2)), {"alpha": 2}),
)
index_copy = _fixed(
    lambda a: ((a(3, 4), 0, _index(0, 2), a(2, 4)), {}), lambda a: ((a(3, 4), 1, _index(3), a(3, 1)), {})
)
index_fill = _fixed(lambda a: ((a(3, 4), 0, _index(0, -1), 1.5), {}), lambda a: ((a(3, 4), 1, _index(3), a()), {}))
take = _fixed(lambda a: ((a(3, 4), _index(0, -1, 5, 5, shape=(2, 2))), {}))
put = _fixed(
    lambda a: ((a(3, 4), _index(0, -1, 5), a(3)), {}),
    lambda a: ((a(3, 4), _index(0, 0, 5), a(3)), {"accumulate": True}),
)
masked_fill = _fixed(lambda a: ((a(3, 4), MASK, 1.5), {}), lambda a: ((a(3, 4), MASK[0], a()), {}))
masked_select = _fixed(lambda a: ((a(3, 4), MASK), {}), lambda a: ((a(3, 4), MASK[0]), {}))
masked_scatter = _fixed(lambda a: ((a(3, 4), MASK, a(12)), {}), lambda a: ((a(3, 4), MASK[0], a(2, 3)), {}))
bincount = _fixed(lambda a: ((_index(0, 2, 2, 5),), {}), lambda a: ((_index(0, 2, 2),), {"minlength": 6}))

tri = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(2, 3, 4), -1), {}), lambda a: ((a(3, 4), 1), {}))
diag = _fixed(lambda a: ((a(3),), {}), lambda a: ((a(3, 4), 1), {}), lambda a: ((a(3), -1), {}))
diag_embed = _fixed(lambda a: ((a(2, 3),), {}), lambda a: ((a(2, 3), 1, 0, 2), {}))
flip = _fixed(lambda a: ((a(2, 3, 4), (0, -1)), {}))
roll = _fixed(lambda a: ((a(3, 4), 1), {}), lambda a: ((a(3, 4), (1, -2), (0, 1)), {}))
rot90 = _fixed(lambda a: ((a(3, 4),), {}), lambda a: ((a(2, 3, 4), -1, (1, 2)), {}))
meshgrid = _fixed(lambda a: ((a(2), a(3)), {"indexing": "ij"}), lambda a: ((a(2), a(3)), {"indexing": "xy"}))
cartesian_prod = _fixed(lambda a: ((a(2), a(3)), {}), lambda a: ((a(3),), {}))
one_hot = _fixed(lambda a: ((_index(0, 2, 1),), {}), lambda a: ((_index(0, 2, shape=(1, 2)), 5), {}))
