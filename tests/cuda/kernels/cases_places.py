"""Cases of optimizers, of places that arrays name, of scans, pools and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore import dtypes, optim
from tensorcore.optim.algorithm import _directed
from tests.cuda.kernels.case import (
    BOOL,
    COMPLEX,
    FLOAT,
    FLOATS,
    INT8,
    INT32,
    INT64,
    INTS,
    UINT8,
    Kernels,
    Put,
    Results,
    case,
    values,
)

# Optimizers


@case(FLOATS)
def optimizers(k: Kernels, put: Put, dtype: Any) -> Results:
    shapes = [(3, 5), (7,), (9001,), (), (0,), (64,)]
    kinds = [[put(values(dtype, *shape, low=0.1, high=1.0, seed=i)) for shape in shapes] for i in range(5)]
    numbers = dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8)
    steps = [float(i + 1) for i in range(len(shapes))]
    k["adam_step"](*kinds, steps=steps, **numbers, weight_decay=0.1)
    k["adam_step"](*kinds[:4], None, steps=steps, **numbers, weight_decay=0.1, decoupled=True, maximize=True)
    yield from (one for kind in kinds for one in kind)
    k["sgd_step"](*kinds[:2], None, lr=0.1, weight_decay=0.1)
    k["sgd_step"](*kinds[:3], lr=0.1, momentum=0.9, first=True)
    k["sgd_step"](*kinds[:3], lr=0.1, momentum=0.9, dampening=0.1, nesterov=True, maximize=True)
    yield from (one for kind in kinds[:3] for one in kind)
    yield k["unscale"](kinds[1], factor=0.5)
    yield from kinds[1]
    endless = values(dtype, 77)
    endless[70] = np.inf
    yield k["unscale"]([put(values(dtype, 3)), put(endless)], factor=0.5)
    yield k["unscale"](kinds[1], factor=put(0.5, FLOAT))
    yield from kinds[1]


@case(FLOATS)
def optimizers_on_the_device(k: Kernels, put: Put, dtype: Any) -> Results:
    """With counts, factors and findings that only the device knows."""
    sizes = (3, 9001, 64)
    kinds = [[put(values(dtype, size, low=0.1, high=1.0, seed=i)) for size in sizes] for i in range(5)]
    counts = [put(float(i), FLOAT) for i in range(len(sizes))]
    scale = put(4.0, FLOAT)
    for found in (put(0.0, FLOAT), put(1.0, FLOAT), None):
        k["adam_step"](*kinds, counts, scale, found, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8)
        k["sgd_step"](*kinds[:3], scale, found, lr=0.1, momentum=0.9)
        yield from (one for kind in (*kinds, counts) for one in kind)


@case((FLOAT,))
def many_parameters(k: Kernels, put: Put, dtype: Any) -> Results:
    kinds = [[put(values(dtype, 3, low=0.1, high=1.0, seed=i)) for _ in range(70)] for i in range(2)]
    k["sgd_step"](*kinds, None, lr=0.5)
    yield from kinds[0]


@case(FLOATS)
def norms_of_many(k: Kernels, put: Put, dtype: Any) -> Results:
    """Of as many arrays as take two launches, some of several blocks, some of no elements."""
    sizes = [3, 0, 9001, 8192, *[2 + i % 5 for i in range(30)]]
    for p in (1.0, 2.0):
        yield k["norms"]([put(values(dtype, size, seed=i)) for i, size in enumerate(sizes)], p=p)
    lost = values(dtype, 8200)
    lost[8195] = np.nan
    yield k["norms"]([put(values(dtype, 9001)), put(lost), put(values(dtype, 1))], p=float("inf"))


# Formulas of optimizers with the arrays of their state and numbers, and how the gradient comes to them.
_MOVING = {"lr": 0.1, "eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "t": 3.0}
_STEPS: list[tuple[Any, int, dict[str, Any], dict[str, Any]]] = [
    (optim.Adadelta, 2, {"lr": 0.1, "rho": 0.9, "eps": 1e-6}, {"maximize": True}),
    (optim.Adagrad, 1, {"lr": 0.1, "eps": 1e-10}, {"weight_decay": 0.1}),
    (optim.Adamax, 2, _MOVING, {}),
    (optim.ASGD, 1, {"eta": 0.1, "mu": 1.0, "lambd": 1e-4}, {}),
    (optim.ASGD, 1, {"eta": 0.1, "mu": 0.5, "lambd": 1e-4}, {"maximize": True, "weight_decay": 0.1}),
    (optim.NAdam, 2, {**_MOVING, "now": 0.3, "ahead": 0.6}, {"weight_decay": 0.1, "decoupled": True}),
    (optim.RAdam, 2, {**_MOVING, "rectified": None, "enough": False}, {}),
    (optim.RAdam, 2, {**_MOVING, "rectified": 0.7, "enough": True}, {}),
    (optim.RMSprop, 1, {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "momentum": 0.0, "centered": False}, {}),
    (optim.RMSprop, 3, {"lr": 0.1, "alpha": 0.9, "eps": 1e-3, "momentum": 0.5, "centered": True}, {}),
    (optim.Rprop, 2, {"shorter": 0.5, "longer": 1.2, "shortest": 1e-6, "longest": 50.0}, {}),
]


@case(FLOATS)
def optimizers_by_formula(k: Kernels, put: Put, dtype: Any) -> Results:
    for kind, arrays, numbers, given in _STEPS:
        shapes = [(3, 5), (7,), (9001,), (), (0,)]
        held = [[put(values(dtype, *one, low=0.5, high=1.0, seed=i)) for i in range(2 + arrays)] for one in shapes]
        held[0][1][...] *= -1
        if arrays == 3:  # a mean gradient, whose square the mean of the squares exceeds
            for some in held:
                some[4][...] *= 0.5
        options = {"maximize": False, "weight_decay": 0.0, "decoupled": False, **given, **numbers}
        k["step"](_directed(kind.formula), held, [options] * 4 + [{**options, "maximize": True}])
        yield from (one for some in held for one in some)


@case((COMPLEX,))
def complex_optimizers(k: Kernels, put: Put, dtype: Any) -> Results:
    """Each part of a complex number moves like a real one."""
    held = [[put(values(FLOAT, 2 * size, low=0.5, high=1.0, seed=i).view(dtype)) for i in range(3)] for size in (1, 9)]
    held.append([put(values(FLOAT, 2, seed=i).view(dtype).reshape(())) for i in range(3)])
    options = {"lr": 0.1, "eps": 1e-10, "maximize": False, "weight_decay": 0.1, "decoupled": False}
    k["step"](_directed(optim.Adagrad.formula), held, [options] * 3)
    yield from (one.reshape(-1).view(FLOAT) for some in held for one in some)


# Places


@case((*FLOATS, INT64, INT8, BOOL))
def reading(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 6, 5, 8)
    at = np.array([3, 0, 3, 4])
    yield k["index_select"](put(x), put(at), dim=1)
    yield k["index_select"](put(x), put(at, INT32), dim=2)
    yield k["index_select"](put(x)[:, :, 1:], put(at), dim=0)
    yield k["index_select"](put(x), put(at[:0]), dim=0)
    yield k["embedding"](put(x[:, 0]), put(at.reshape(2, 2)), padding=None, by_count=False)
    yield k["index_tensors"](put(x), indices=(None, put(np.array([[-1, 0], [2, -5]]))))
    index = np.random.default_rng(8).integers(0, 5, (4, 3, 8))
    yield k["gather"](put(x), put(index), dim=1)
    yield k["gather"](put(x).transpose(2, 1, 0), put(index[..., :6]), dim=1)
    yield k["pick"](put(x[:4]), put(index[:, :1]), dim=1)


@case((*FLOATS, INT64, BOOL))
def writing(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 6, 5, 8)
    order = np.stack([np.random.default_rng(i).permutation(5)[:3] for i in range(8)], -1)
    index = np.broadcast_to(order, (4, 3, 8)).copy()
    yield k["scatter"](put(x), put(index), put(values(dtype, 6, 5, 8, seed=9)), dim=1)
    yield k["put_picked"](put(values(dtype, 6, 1, 8)), put(index[:1, :1].repeat(6, 0)), dim=1, size=7)


@case(FLOATS)
def adding(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 6, 5, 8)
    at = np.array([3, 0, 3, 4])
    yield k["index_add"](put(x), put(at), put(values(dtype, 6, 4, 8, seed=9)), dim=1, alpha=2)
    into = put(x)
    yield k["index_add"](into, put(at), put(values(dtype, 4, 5, 8, seed=9)), dim=0, out=into)
    indices = np.array([[1, 2, 1], [0, 2, 2]])
    g = values(dtype, 2, 3, 7)
    yield k["embedding_gradient"](put(g), put(indices), rows=5, padding=None, by_count=False)
    yield k["embedding_gradient"](put(g), put(indices), rows=5, padding=2, by_count=False)
    index = np.random.default_rng(8).integers(0, 5, (4, 3, 8))
    yield k["scatter_reduce"](put(x), put(index), put(values(dtype, 6, 5, 8, seed=9)), dim=1, reduce="sum")


# Scans


@case(FLOATS, scale=8)
def scans(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 3, 300, 2, low=0, high=0.1)
    for dim in (0, 1, 2):
        yield k["cumsum"](put(x), dim=dim)
        yield k["cumsum_back"](put(x), dim=dim)
        yield k["logcumsumexp"](put(x), dim=dim)
    yield k["cumsum"](put(x[:, :, 0]), dim=1)
    yield k["cumsum_back"](put(x[:, :, 0]), dim=1)
    yield k["cumprod"](put(values(dtype, 3, 70, low=0.9, high=1.1)), dim=1)
    special = values(dtype, 3, 70)
    special[0, 5], special[0, 9], special[1, 3], special[2, :4] = np.nan, np.nan, np.inf, -np.inf
    for name in ("cummax", "cummin"):
        yield from k[name](put(special), dim=1)
        yield from k[name](put(special), dim=0)
    yield k["logcumsumexp"](put(special[1:]), dim=1)
    yield k["cumsum"](put(x), dim=1, dtype=dtypes.float64)


@case((*INTS, BOOL))
def whole_scans(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 3, 40)
    yield k["cumsum"](put(x), dim=1, dtype=dtypes.int64)
    yield k["cumprod"](put(x[:, :5]), dim=0, dtype=dtypes.int64)
    yield from k["cummax"](put(x), dim=1)


# Order


@case((*FLOATS, INT64, UINT8, BOOL))
def orders(k: Kernels, put: Put, dtype: Any) -> Results:
    x = values(dtype, 3, 70, 2)
    if dtype.kind not in "iub":
        x[0, 5, 0], x[0, 9, 0], x[1, 3, 1], x[2, 4, 0] = np.nan, np.nan, np.inf, -np.inf
    for dim in (0, 1, 2):
        for backwards in (False, True):
            yield from k["sort"](put(x), dim=dim, descending=backwards, stable=True)
    for largest in (False, True):
        # Positions of equal elements are the order's own, and NumPy's kernel has another; so only values.
        yield k["topk"](put(x), k=7, dim=1, largest=largest)[0]
    yield k["topk"](put(x[:, :1]), k=1, dim=1)[0]


@case((FLOAT,))
def the_largest_of_many(k: Kernels, put: Put, dtype: Any) -> Results:
    x = np.random.default_rng(8).permutation(5000).reshape(1, 5000).astype(dtype)
    yield from k["topk"](put(x), k=40, dim=1)
    yield from k["topk"](put(x), k=1000, dim=1, largest=False)


# Pools

_POOLS = (
    ((2, 3, 9), dict(counts=(4,), kernel=(3,), stride=(2,), padding=(0,))),
    ((2, 3, 7, 8), dict(counts=(4, 4), kernel=(3, 2), stride=(2, 2), padding=(1, 0))),
    ((1, 2, 5, 6, 4), dict(counts=(3, 3, 2), kernel=(2, 3, 2), stride=(2, 2, 2), padding=(1, 1, 0))),
)


@case(FLOATS)
def pools(k: Kernels, put: Put, dtype: Any) -> Results:
    for shape, options in _POOLS:
        x = values(dtype, *shape)
        x[0, 0].flat[3], x[0, 1].flat[:5] = np.nan, -np.inf
        dilation = dict(dilation=(1,) * len(options["kernel"]))
        made = k["max_pool"](put(x), **options, **dilation)
        yield made
        g = values(dtype, *shape[:2], *options["counts"], seed=9)
        yield k["max_pool_indices"](put(x), made, **options, **dilation)
        yield k["max_pool_gradient"](put(g), put(x), made, **options, **dilation)
        yield k["max_pool_pick"](put(values(dtype, *shape)), put(x), made, **options, **dilation)
        for padded, divisor in ((True, None), (False, None), (True, 5)):
            rest = dict(options, count_padding=padded, divisor=divisor)
            yield k["avg_pool"](put(values(dtype, *shape)), **rest)
            yield k["avg_pool_gradient"](put(g), shape=shape, **rest)
    wide = dict(counts=(3,), kernel=(3,), stride=(2,), padding=(0,), dilation=(2,))
    made = k["max_pool"](put(values(dtype, 2, 2, 9)), **wide)
    yield made
    yield k["max_pool_gradient"](put(values(dtype, 2, 2, 3)), put(values(dtype, 2, 2, 9)), made, **wide)


# Convolutions

_CONVOLUTIONS = (
    ((2, 4, 9), (6, 4, 3), dict(counts=(4,), stride=(2,), padding=(0,), dilation=(1,), groups=1)),
    ((2, 4, 7, 6), (6, 2, 3, 2), dict(counts=(4, 4), stride=(2, 2), padding=(1, 1), dilation=(1, 1), groups=2)),
    (
        (1, 2, 5, 6, 4),
        (3, 2, 2, 3, 2),
        dict(counts=(3, 4, 3), stride=(2, 1, 1), padding=(1, 0, 0), dilation=(1, 1, 1), groups=1),
    ),
    ((2, 3, 8), (4, 3, 3), dict(counts=(4,), stride=(1,), padding=(0,), dilation=(2,), groups=1)),
    ((2, 4, 5, 5), (6, 4, 1, 1), dict(counts=(5, 5), stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)),
)


@case(scale=30)
def convolutions(k: Kernels, put: Put, dtype: Any) -> Results:
    for shape, weight_shape, options in _CONVOLUTIONS:
        x, weight = values(dtype, *shape), values(dtype, *weight_shape, seed=9)
        bias, g = (
            values(dtype, weight_shape[0], seed=3),
            values(dtype, shape[0], weight_shape[0], *options["counts"], seed=4),
        )
        yield k["conv"](put(x), put(weight), put(bias), **options)
        rest = {name: value for name, value in options.items() if name != "counts"}
        yield k["conv_input_gradient"](put(g), put(weight), shape=shape, **rest)
        yield k["conv_weight_gradient"](put(g), put(x), shape=weight_shape, **rest)
