"""Random numbers whose parameters are tensors: Poisson, binomial, gamma and Dirichlet, PyTorch's own for the same seed."""

from __future__ import annotations

from typing import Any

from tensorcore import dtypes
from tensorcore.errors import DtypeError
from tensorcore.ops.creation.random import draw
from tensorcore.ops.define import Op
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.pointwise.explog import digamma
from tensorcore.ops.record import record
from tensorcore.ops.shapes.shape import broadcast_tensors
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["_dirichlet_grad", "_sample_dirichlet", "_standard_gamma", "_standard_gamma_grad", "binomial", "poisson"]

# A count does not change with the parameters, until it jumps.
_counts = {
    name: Op(name, inputs, "Random counts.", register=False, grads={key: lambda g: g * 0 for key in inputs.split()})
    for name, inputs in (("poisson", "input"), ("binomial", "count prob"))
}
_gamma = Op("_standard_gamma", "input", "Gamma numbers.", register=False,
            grads=dict(input=lambda g, input, out: g * _standard_gamma_grad(input, out)))  # fmt: skip


def _drawn(op: Op, kind: str, inputs: tuple[Tensor, ...], names: tuple[str, ...], generator: Any) -> Tensor:
    first = inputs[0]
    for one in inputs:
        if not one.dtype.is_floating_point:
            raise DtypeError(
                f"{op.name}: expected floating parameters, got {one.dtype}: not implemented for it; use .float()"
            )
    options = {name: one.device.to_host(one.native) for name, one in zip(names, inputs, strict=True)}
    native = draw(op.name, kind, tuple(first.native.shape), first.dtype, first.device, generator, **options)
    made = new_tensor(native, first.dtype, first.device)
    if mode.enabled and any([one.node is not None for one in inputs]):
        record(op, inputs, None, made)
    return made


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """A Poisson number of each rate, in the rates' dtype. Raises for negative rates."""
    return _drawn(_counts["poisson"], "poisson", (input,), ("rate",), generator)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of each ``count`` trials succeed, each with the probability ``prob``; both of one floating dtype."""
    if count.dtype is not prob.dtype:
        raise DtypeError(
            f"binomial: expected one dtype, found Float and Double or the like, got {count.dtype} and {prob.dtype}"
        )
    both = broadcast_tensors(count, prob)
    return _drawn(_counts["binomial"], "binomial", both, ("count", "probability"), generator)


def _standard_gamma(input: Tensor, generator: Any = None) -> Tensor:
    """A gamma number of scale 1 and each shape; differentiable with respect to the shapes."""
    return _drawn(_gamma, "gamma", (input,), ("alpha",), generator)


def _sample_dirichlet(input: Tensor, generator: Any = None) -> Tensor:
    """A point of the simplex along the last dim for each vector of concentrations: gamma numbers over their sum.

    Drawn in double precision. Differentiable with respect to the concentrations, by the marginal beta distributions.
    """
    given: Any = input.detach()
    wide: Any = _drawn(_gamma, "gamma", (given.double(),), ("alpha",), generator)
    least = dtypes.finfo(input.dtype)
    made = (wide / wide.sum(-1, True)).to(input.dtype).clamp(least.tiny, 1 - least.eps / 2)
    if mode.enabled and input.node is not None:
        record(_dirichlet, (input,), None, made)
    return made  # type: ignore[no-any-return]


def _moved(g: Any, input: Any, out: Any) -> Any:
    # Where one number of a point moves, the others keep their ratios to each other.
    return _dirichlet_grad(out, input, input.sum(-1, True).expand(input.shape)) * (g - (out * g).sum(-1, True))


_dirichlet = Op("_sample_dirichlet", "input", "Points of simplices.", register=False, grads=dict(input=_moved))

_STEPS, _LOOK, _LARGE = 1024, 16, 4096


def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """The derivative of a gamma number with respect to its shape: that of the distribution function over minus the density.

    The power series of the distribution function (NIST Digital Library of Mathematical Functions, 8.7.1), differentiated
    term by term; of large shapes the cube root transform of E. B. Wilson and M. M. Hilferty (1931), which is normal.
    """
    if input.dtype is not dtypes.float64:
        return _standard_gamma_grad(input.double(), output.double()).to(input.dtype)  # type: ignore[attr-defined, no-any-return]
    a: Any = input.detach()
    x: Any = output.detach()
    root = (x / (a - 1 / 3)).abs() ** (1 / 3)
    far = root**3 - 1.5 * (root - 1) * root**2
    near = a < _LARGE
    shape, at = where(near, a, 1.0), where(near, x, 1.0)
    # x**(a + k) / gamma(a + k + 1) over x**(a - 1) / gamma(a), and its logarithm's derivative with respect to a.
    total = _sloped(at / shape, at.log() - digamma(shape + 1), lambda k: at / (shape + k), lambda k: -1 / (shape + k))
    return where(near, -total, far)  # type: ignore[no-any-return]


def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """The derivative of a beta number with respect to its first concentration, ``alpha``, over one less the number.

    The second concentration is ``total - alpha``. As for gamma numbers: by the series of the distribution function (NIST
    Digital Library of Mathematical Functions, 8.17.8), or of its complement for numbers above one half; of two large
    concentrations as if the number were normal, of its own mean and variance.
    """
    if x.dtype is not dtypes.float64:
        return _dirichlet_grad(x.double(), alpha.double(), total.double()).to(x.dtype)  # type: ignore[attr-defined, no-any-return]
    at: Any = x.detach()
    a: Any = alpha.detach()
    n: Any = total.detach()
    b = n - a
    # log s = (log a + log b - 2 log n - log(n + 1)) / 2 of the deviation s, and m = a / n of the mean.
    far = (b / n.square() + (at - a / n) * 0.5 * (1 / a - 2 / n - 1 / (n + 1))) / (1 - at)
    near = a * b / n < _LARGE
    # In place of the large ones, for which the series is too long: 1, 1 and one half.
    a, b, at = where(near, a, 1.0), where(near, b, 1.0), where(near, at, 0.5)
    n = a + b
    low = at <= 0.5
    power, step = where(low, a, b), where(low, at, 1 - at)
    mine = low.to(at.dtype)
    slope = at.log() - digamma(a) + digamma(n) - mine / a
    sum_ = _sloped(
        1 / power, slope, lambda k: (n + (k - 1)) / (power + k) * step, lambda k: 1 / (n + (k - 1)) - mine / (a + k)
    )
    return where(near, at * where(low, -sum_, sum_), far)  # type: ignore[no-any-return]


def _sloped(term: Any, slope: Any, ratio: Any, change: Any) -> Any:
    """The derivative of a series: its terms, each times its logarithm's derivative, added up.

    A term is ``ratio(k)`` times the one before, a logarithm's derivative ``change(k)`` more than that before.
    """
    total = term * slope
    for k in range(1, _STEPS):
        term = term * ratio(k)
        slope = slope + change(k)
        step = term * slope
        total = total + step
        if k % _LOOK == 0 and not (term.device.capabilities.values and bool(((step / total).abs() > 1e-17).any())):
            break
    return total
