"""What a backend may leave out: kernels that ops do without, and kernels that are made of other kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, prod
from typing import Any

__all__ = ["COMPOSED", "OPTIONAL", "decomposed"]

Native = Any
Kernel = Callable[..., Any]

# Where one of these is missing, the op that asks for it is computed in other ops, its gradient too.
OPTIONAL = frozenset([
    "adam_step", "addmm", "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward", "conv",
    "conv_input_gradient", "conv_weight_gradient", "cross_entropy", "cross_entropy_backward", "gelu", "leaky_relu", "linear",
    "log_softmax", "log_softmax_backward", "matmul_nt", "matmul_tn", "mse_loss", "mse_loss_backward", "nll_loss",
    "nll_loss_backward", "sgd_step", "silu", "softmax", "softmax_backward", "spread", "standardize", "standardize_backward",
])  # fmt: skip


def decomposed(name: str, kernels: Mapping[str, Kernel]) -> Kernel | None:
    """The kernel ``name`` made of others in the table; None where there is no way to make it.

    Each takes and answers what the backend's own would. Narrow floats are rounded after every step.
    """
    make = _MAKERS.get(name)
    return None if make is None else make(kernels)


def _returning(result: Native, out: Native | None, kernels: Mapping[str, Kernel]) -> Native:
    if out is None:
        return result
    kernels["copy"](out, result)
    return out


def _of_one(formula: Callable[[Mapping[str, Kernel], Native], Native]) -> Callable[[Mapping[str, Kernel]], Kernel]:
    def make(kernels: Mapping[str, Kernel]) -> Kernel:
        return lambda x, out=None: _returning(formula(kernels, x), out, kernels)

    return make


def _of_two(
    formula: Callable[[Mapping[str, Kernel], Native, Native], Native],
) -> Callable[[Mapping[str, Kernel]], Kernel]:
    def make(kernels: Mapping[str, Kernel]) -> Kernel:
        return lambda x, y, out=None: _returning(formula(kernels, x, y), out, kernels)

    return make


def _clamp(k: Mapping[str, Kernel]) -> Kernel:
    return lambda x, low, high, out=None: _returning(k["minimum"](k["maximum"](x, low), high), out, k)


def _mean(k: Mapping[str, Kernel]) -> Kernel:
    def mean(x: Native, *, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Native:
        count = prod(x.shape) if dim is None else prod([x.shape[i] for i in dim])
        # 0 / 0 is the NaN that the mean of nothing is.
        return k["div"](k["sum"](x, dim=dim, keepdim=keepdim), float(count))

    return mean


def _var_mean(k: Mapping[str, Kernel]) -> Kernel:
    def var_mean(
        x: Native, *, dim: tuple[int, ...] | None, keepdim: bool, correction: float, root: bool
    ) -> tuple[Native, Native]:
        count = prod(x.shape) if dim is None else prod([x.shape[i] for i in dim])
        away = k["sub"](x, k["mean"](x, dim=dim, keepdim=True))
        size = k["abs"](away)
        var = k["div"](k["sum"](k["mul"](size, size), dim=dim, keepdim=keepdim), float(max(count - correction, 0.0)))
        return (k["sqrt"](var) if root else var), k["mean"](x, dim=dim, keepdim=keepdim)

    return var_mean


def _var(k: Mapping[str, Kernel]) -> Kernel:
    return lambda x, **options: k["var_mean"](x, **options)[0]


_MAKERS: dict[str, Callable[[Mapping[str, Kernel]], Kernel]] = {
    # Arithmetic
    "square": _of_one(lambda k, x: k["mul"](x, x)),
    "reciprocal": _of_one(lambda k, x: k["div"](1.0, x)),
    "rsqrt": _of_one(lambda k, x: k["div"](1.0, k["sqrt"](x))),
    "relu": _of_one(lambda k, x: k["maximum"](x, 0)),
    "sigmoid": _of_one(lambda k, x: k["div"](1.0, k["add"](k["exp"](k["neg"](x)), 1.0))),
    "exp2": _of_one(lambda k, x: k["exp"](k["mul"](x, log(2.0)))),
    "log2": _of_one(lambda k, x: k["div"](k["log"](x), log(2.0))),
    "log10": _of_one(lambda k, x: k["div"](k["log"](x), log(10.0))),
    "tan": _of_one(lambda k, x: k["div"](k["sin"](x), k["cos"](x))),
    "cosh": _of_one(lambda k, x: k["mul"](k["add"](k["exp"](x), k["exp"](k["neg"](x))), 0.5)),
    # Comparison and choice
    "ne": _of_two(lambda k, x, y: k["logical_not"](k["eq"](x, y))),
    "gt": _of_two(lambda k, x, y: k["lt"](y, x)),
    "le": _of_two(lambda k, x, y: k["logical_or"](k["lt"](x, y), k["eq"](x, y))),
    "ge": _of_two(lambda k, x, y: k["logical_or"](k["lt"](y, x), k["eq"](x, y))),
    "isnan": _of_one(lambda k, x: k["ne"](x, x)),
    "logical_or": _of_two(lambda k, x, y: k["logical_not"](k["logical_and"](k["logical_not"](x), k["logical_not"](y)))),
    "logical_xor": _of_two(lambda k, x, y: k["ne"](k["logical_not"](x), k["logical_not"](y))),
    "fmax": _of_two(lambda k, x, y: k["where"](k["isnan"](x), y, k["where"](k["isnan"](y), x, k["maximum"](x, y)))),
    "fmin": _of_two(lambda k, x, y: k["where"](k["isnan"](x), y, k["where"](k["isnan"](y), x, k["minimum"](x, y)))),
    "clamp": _clamp,
    "clamp_min": _of_two(lambda k, x, y: k["maximum"](x, y)),
    "clamp_max": _of_two(lambda k, x, y: k["minimum"](x, y)),
    # Reduction
    "mean": _mean,
    "var": _var,
    "var_mean": _var_mean,
}

# The kernels that are made of others where a backend has none of its own.
COMPOSED = frozenset(_MAKERS)
