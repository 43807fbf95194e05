"""Cases of reductions, softmax, losses and normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore import dtypes
from tests.cuda.kernels.case import (
    BOOL,
    DOUBLE,
    FLOAT,
    FLOATS,
    INT64,
    INTS,
    UINT8,
    Kernels,
    Put,
    Results,
    case,
    values,
)

# Reductions


@case(FLOATS, scale=30)
def sums(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 3, 70, 33, low=0, high=2)
    for dim in (None, (2,), (0,), (1,), (0, 2), (0, 1), (1, 2)):
        yield k["sum"](put(x), dim=dim)
        yield k["mean"](put(x), dim=dim, keepdim=True)
        yield from k["var_mean"](put(x), dim=dim, keepdim=False, correction=1, root=False)
    yield k["sum"](put(values(dtype, 9001, low=0, high=0.01)))
    yield k["sum"](put(values(dtype, 300, 40, low=0, high=0.1)), dim=(0,))
    yield k["sum"](put(x).transpose(2, 0, 1), dim=(1,))
    yield k["sum"](put(x)[:, ::3], dim=(1, 2))
    yield k["sum"](put(x), dim=(2,), dtype=dtypes.float64)
    yield k["var"](put(x), dim=(2,), keepdim=True, correction=0, root=True)
    for p in (0, 1, 2, np.inf):
        yield k["norm"](put(x), p=p, dim=(1,))
    yield k["logsumexp"](put(x), dim=(2,))
    yield k["prod"](put(values(dtype, 3, 8, low=0.5, high=1.5)), dim=(1,))
    with_nan = np.where(x > 1.9, dtype.type(np.nan), x)
    yield k["nansum"](put(with_nan), dim=(1,))


@case((*INTS, BOOL))
def whole_sums(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 3, 70, 5)
    yield k["sum"](put(x), dim=(1,), dtype=dtypes.int64)
    yield k["sum"](put(x), dtype=dtypes.int64)
    yield k["prod"](put(x[:, :5]), dim=(1,), dtype=dtypes.int64)


def _with_specials(dtype: Any) -> np.ndarray:
    x = values(dtype, 4, 70, 5)
    if dtype.kind not in "iub":
        x[1, 3, 2], x[1, 7, 2], x[2, 0, 0], x[2, 1, 1] = np.nan, np.nan, np.inf, -np.inf
    return x


@case((*FLOATS, INT64, UINT8, BOOL))
def extremes(k: Kernels, put: Put, dtype: Any) -> Results:
    x = put(_with_specials(dtype))
    for dim in (0, 1, 2):
        yield k["amax"](x, dim=(dim,))
        yield k["amin"](x, dim=(dim,), keepdim=True)
        yield k["all"](x, dim=(dim,))
        yield k["any"](x, dim=(dim,))
    yield k["amax"](x)
    yield k["count_nonzero"](x, dim=(1,))
    yield k["all"](x[:0], dim=(0,))


@case((*FLOATS, INT64, BOOL))
def places_of_extremes(k: Kernels, put: Put, dtype: Any) -> Results:
    x = put(_with_specials(dtype))
    for dim in (0, 1, 2):
        yield k["argmax"](x, dim=dim)
        yield k["argmin"](x, dim=dim, keepdim=True)
        yield from k["max_dim"](x, dim=dim)
        yield from k["min_dim"](x, dim=dim, keepdim=True)
    yield k["argmax"](x)


@case((FLOAT, DOUBLE))
def empty_reductions(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 3, 0, 2)
    yield k["sum"](put(x), dim=(1,))
    yield k["mean"](put(x), dim=(1,))
    yield k["sum"](put(x), dim=(0,))
    yield k["prod"](put(x))
    yield k["logsumexp"](put(x), dim=(1,))
    yield from k["var_mean"](put(x), dim=(1,), keepdim=True, correction=1, root=False)
    yield k["sum"](put(values(dtype)), dim=None)


# Softmax and losses


@case(FLOATS)
def softmax(k: Kernels, put: Put, dtype: Any) -> Results:
    for shape, dim in (((5, 7, 33), 2), ((5, 7, 33), 1), ((3, 64), 1), ((2, 5000), 1), ((4, 1), 0), ((7,), 0)):
        x, g = values(dtype, *shape), values(dtype, *shape, seed=9)
        for name in ("softmax", "log_softmax"):
            yield k[name](put(x), dim=dim)
            y = (
                values(dtype, *shape, low=-2, high=0)
                if name == "log_softmax"
                else values(dtype, *shape, low=0, high=0.01)
            )
            yield k[f"{name}_backward"](put(g), put(y), dim=dim)
    x = values(dtype, 4, 9)
    x[0] = -np.inf
    x[1, 2], x[2, 3], x[3, :4] = np.nan, np.inf, -np.inf
    for name in ("softmax", "log_softmax"):
        yield k[name](put(x), dim=1)
        yield k[name](put(x).T, dim=0)


@case(FLOATS, scale=8)
def entropy(k: Kernels, put: Put, dtype: Any) -> Results:
    for shape in ((5, 7), (3, 7, 4), (2, 3000)):
        x = values(dtype, *shape)
        target = np.random.default_rng(8).integers(0, shape[1], (shape[0], *shape[2:]))
        target.flat[0] = -100
        weight = values(dtype, shape[1], low=0.5, high=1.5)
        for name in ("cross_entropy", "nll_loss"):
            for reduction in ("mean", "sum", "none"):
                for weighing in (None, weight):
                    options = dict(reduction=reduction, ignore_index=-100)
                    arrays = put(x), put(target), None if weighing is None else put(weighing)
                    made, *rest = k[name](*arrays, **options)
                    yield made
                    g = put(values(dtype, *made.shape, seed=9))
                    yield k[f"{name}_backward"](g, *arrays, *rest, needs=(True, False, False), **options)[0]


@case(FLOATS, scale=30)
def losses(k: Kernels, put: Put, dtype: Any) -> Results:
    x, y = values(dtype, 5, 7), values(dtype, 5, 7, low=0, high=1, seed=9)
    for reduction in ("mean", "sum", "none"):
        g = put(values(dtype, *((5, 7) if reduction == "none" else ())))
        yield k["mse_loss"](put(x), put(y), reduction=reduction)
        yield from k["mse_loss_backward"](g, put(x), put(y), needs=(True, True), reduction=reduction)
        for weight, pos_weight in (
            (None, None),
            (values(dtype, 5, 7, low=0.5), None),
            (None, values(dtype, 7, low=0.5)),
        ):
            arrays = put(x), put(y), *[None if one is None else put(one) for one in (weight, pos_weight)]
            yield k["binary_cross_entropy_with_logits"](*arrays, reduction=reduction)
            needs = (True, False, False, False)
            yield k["binary_cross_entropy_with_logits_backward"](g, *arrays, needs=needs, reduction=reduction)[0]


# Normalisation

_VIEWS = (
    ((5, 7, 33), (2,), (33,)),  # layer norm
    ((3, 7, 32), (1, 2), (7, 32)),
    ((2, 4100), (1,), (4100,)),
    ((4, 3, 2, 5, 3), (2, 3, 4), (1, 3, 2, 1, 1)),  # group norm
    ((5, 7, 8), (2,), (1, 7, 1)),  # instance norm
    ((5, 7, 33), (0, 2), (1, 7, 1)),  # batch norm
    ((70, 33), (0,), (1, 33)),
)


@case(FLOATS, scale=30)
def norms(k: Kernels, put: Put, dtype: Any) -> Results:
    wide = FLOAT if dtype.itemsize == 2 else dtype
    for view, dims, affine in _VIEWS:
        for centre in (True, False) if 0 not in dims else (True,):
            for parameter in dict.fromkeys((dtype, wide)) if len(view) == 3 else (dtype,):
                x, g = values(dtype, *view), values(dtype, *view, seed=9)
                size = int(np.prod(affine))
                weight, bias = (values(parameter, size, low=0.5, high=1.5, seed=s) for s in (1, 2))
                options = dict(view=view, dims=dims, affine=affine, eps=1e-5, centre=centre)
                made, *rest = k["standardize"](put(x), put(weight), put(bias), **options)
                yield made
                yield from rest
                arrays = put(g), put(x), put(weight), put(bias)
                yield from k["standardize_backward"](*arrays, *rest, needs=(True, True, True), **options)
        made, *rest = k["standardize"](put(x), None, None, **options)
        yield made
        yield k["standardize_backward"](put(g), put(x), None, None, *rest, needs=(True, False, False), **options)[0]


@case((FLOAT, DOUBLE))
def running_statistics(k: Kernels, put: Put, dtype: Any) -> Results:
    mean, var = put(values(dtype, 7)), put(values(dtype, 7, low=0.5))
    k["track_statistics"](
        mean, var, put(values(dtype, 1, 7, 1, seed=2)), put(values(dtype, 1, 7, 1, low=1)), momentum=0.1, count=9
    )
    yield mean
    yield var
    k["track_statistics"](
        mean, None, put(values(dtype, 5, 7, 1, seed=2)), put(values(dtype, 5, 7, 1)), momentum=0.1, count=9
    )
    yield mean
    x, weight, bias = values(dtype, 3, 7, 4, 2), values(dtype, 7, seed=3), values(dtype, 7, seed=4)
    yield k["standardize_by"](
        put(x), put(values(dtype, 7)), put(values(dtype, 7, low=1)), put(weight), put(bias), eps=1e-3
    )
    yield k["standardize_by"](put(x), put(values(dtype, 7)), put(values(dtype, 7, low=1)), None, None, eps=1e-3)
