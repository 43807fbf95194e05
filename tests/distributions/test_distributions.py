"""Distributions against PyTorch's: the same numbers for the same seed, densities, moments, gradients and errors."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tests.distributions.rows import BAD, CONSTRAINTS, KL, ROWS, TRANSFORMS, Row, build

SEED = 8


# What is asked of each distribution: the distribution, its parameters, samples of PyTorch's, the library.


def _drawn(d: Any, lib: Any) -> Any:
    return d.sample((4, 2)), d.sample(), lib.rand(1)


def _redrawn(d: Any, leaves: list[Any], lib: Any) -> Any:
    made = d.rsample((5,))
    weights = lib.arange(made.numel()).reshape(made.shape).to(made) / made.numel() - 0.3
    return made.detach(), *lib.autograd.grad((made * weights).sum(), leaves, allow_unused=True)


def _scored(d: Any, leaves: list[Any], value: Any, lib: Any) -> Any:
    value = lib.tensor(value)
    if value.is_floating_point() and not d.support.is_discrete:
        value.requires_grad_()
        leaves = [*leaves, value]
    made = d.log_prob(value)
    used = [one for one in leaves if one.requires_grad]
    return made.detach(), *(lib.autograd.grad(made.sum(), used, allow_unused=True) if used else ())


def _expanded(d: Any, value: Any, lib: Any) -> Any:
    wide = d.expand((4, *d.batch_shape))
    return wide.batch_shape, wide.event_shape, wide.log_prob(lib.tensor(value[:4])), wide.sample(), repr(wide)


PROBES: dict[str, Any] = {
    "sample": lambda d, leaves, value, lib: _drawn(d, lib),
    "rsample": lambda d, leaves, value, lib: _redrawn(d, leaves, lib),
    "log_prob": lambda d, leaves, value, lib: _scored(d, leaves, value, lib),
    "mean": lambda d, leaves, value, lib: d.mean,
    "mode": lambda d, leaves, value, lib: d.mode,
    "variance": lambda d, leaves, value, lib: d.variance,
    "stddev": lambda d, leaves, value, lib: d.stddev,
    "entropy": lambda d, leaves, value, lib: (d.entropy(), d.perplexity()),
    "entropy's gradient": lambda d, leaves, value, lib: lib.autograd.grad(d.entropy().sum(), leaves, allow_unused=True),
    "enumerate_support": lambda d, leaves, value, lib: (d.enumerate_support(), d.enumerate_support(expand=False)),
    "cdf": lambda d, leaves, value, lib: d.cdf(lib.tensor(value)),
    "icdf": lambda d, leaves, value, lib: d.icdf(lib.linspace(0.01, 0.99, 5).reshape(5, *[1] * len(d.batch_shape))),
    "parameters": lambda d, leaves, value, lib: [getattr(d, name) for name in d.arg_constraints],
    "expand": lambda d, leaves, value, lib: _expanded(d, value, lib),
    "repr": lambda d, leaves, value, lib: repr(d),
    "shapes": lambda d, leaves, value, lib: (
        d.batch_shape, d.event_shape, d.has_rsample, d.has_enumerate_support, d.support.event_dim, d.support.is_discrete,
        sorted(d.arg_constraints),
    ),
}  # fmt: skip

# (row, probe) -> why the results differ.
EXCEPTIONS = {
    (
        "Kumaraswamy",
        "mode",
    ): "PyTorch's is NaN for a concentration0 above 1: it takes the logarithm of a negative number",
    ("Wishart", "rsample"): "PyTorch writes over what its own backward needs",
    ("Wishart of factors", "rsample"): "PyTorch writes over what its own backward needs",
    ("Wishart of factors", "log_prob"): "PyTorch has a gradient for the triangle that cholesky_solve does not read",
}


@pytest.mark.oracle
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("name", ROWS)
def test_distribution(name: str, probe: str, torch: ModuleType) -> None:
    """Each answer of each distribution is PyTorch's, or an error of the same type is raised."""
    if (name, probe) in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name, probe])
    row = ROWS[name]
    expected, mine = _answer(torch, row, probe, torch), _answer(tc, row, probe, torch)
    # PyTorch's own gradient of beta and Dirichlet numbers is an approximation: within 1e-3 for these parameters.
    _compare(mine, expected, rtol=2e-3 if probe == "rsample" and name.startswith(("Beta", "Dirichlet")) else 2e-4)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["Normal", "Gamma", "Dirichlet", "MultivariateNormal", "Laplace", "VonMises", "Binomial"]
)
def test_double_precision(name: str, torch: ModuleType) -> None:
    """Samples and densities in double precision are PyTorch's to as many digits."""
    row = ROWS[name]
    results = []
    for lib in (torch, tc):
        d, _ = build(lib, row, np.float64)
        lib.default_generator.manual_seed(SEED)
        made = d.sample((3,))
        results.append((made, d.log_prob(made)))
    _compare(results[1], results[0], rtol=1e-11)


def _answer(lib: Any, row: Row, probe: str, torch: ModuleType) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Singular sample|Low df|cov_matrix")
        theirs, _ = build(torch, row)
        torch.default_generator.manual_seed(SEED)
        value = theirs.sample((5,)).numpy()
        d, leaves = build(lib, row)
        lib.default_generator.manual_seed(SEED + 1)
        try:
            return PROBES[probe](d, leaves, value, lib)
        except Exception as error:
            return error


def _compare(mine: Any, expected: Any, rtol: float = 2e-4, atol: float = 2e-5) -> None:
    if isinstance(expected, Exception):
        assert isinstance(mine, Exception), (mine, expected)
        assert isinstance(mine, _builtin(expected)), (mine, expected)
    elif isinstance(expected, list | tuple) and not hasattr(expected, "numel"):
        assert len(mine) == len(expected)
        for one, other in zip(mine, expected, strict=True):
            _compare(one, other, rtol, atol)
    elif hasattr(expected, "detach"):
        if isinstance(mine, Exception):
            raise mine
        assert str(mine.dtype) == str(expected.dtype)
        np.testing.assert_allclose(_array(mine), _array(expected), rtol=rtol, atol=atol)
    else:
        assert mine == expected or repr(mine) == repr(expected)


def _builtin(error: Exception) -> type:
    return next(one for one in type(error).__mro__ if one.__module__ == "builtins")


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.detach().resolve_conj().numpy() if hasattr(x, "resolve_conj") else x.detach().numpy())


@pytest.mark.oracle
@pytest.mark.parametrize("one", KL)
def test_divergences(one: str, torch: ModuleType) -> None:
    """Of each pair of types the divergence and its gradient are PyTorch's, or there is none there either."""
    for other in KL:
        for p, q in zip(KL[one], reversed(KL[other]), strict=True):
            answers = []
            for lib in (torch, tc):
                (first, leaves), (second, more) = build(lib, p), build(lib, q)
                try:
                    found = lib.distributions.kl_divergence(first, second)
                    used = [
                        found,
                        *lib.autograd.grad(found[found.isfinite()].sum(), [*leaves, *more], allow_unused=True),
                    ]
                    answers.append(used)
                except Exception as error:
                    answers.append(error)
            try:
                _compare(answers[1], answers[0], rtol=1e-3, atol=1e-4)
            except Exception as error:
                raise AssertionError(f"{one} and {other}: {error}") from error


def test_divergences_at_the_ends() -> None:
    """A uniform distribution that reaches just as far as the other is no reason for an infinite divergence."""
    # PyTorch answers inf, here where each support is exactly the other.
    d = tc.distributions
    flat, other = d.Uniform(0.0, 1.0), d.ContinuousBernoulli(tc.tensor(0.3))
    log = other.log_prob(tc.tensor(0.5)).item()  # the mean of a function that is linear
    assert d.kl_divergence(flat, other).item() == pytest.approx(-log, abs=1e-6)
    assert d.kl_divergence(other, flat).item() == pytest.approx(-other.entropy().item(), abs=1e-6)


def test_wishart_gradient() -> None:
    """The samples of a Wishart distribution move with the degrees of freedom and the factor."""
    df, factor = tc.tensor(5.0, requires_grad=True), tc.eye(2).requires_grad_()
    tc.distributions.Wishart(df, scale_tril=factor).rsample().diagonal().sum().backward()
    assert df.grad > 0
    assert (factor.grad.diagonal() > 0).all()


def test_mode_of_kumaraswamy() -> None:
    """The density is greatest at the mode, and there is no mode where it is greatest at an end."""
    d = tc.distributions.Kumaraswamy(tc.tensor([2.0, 0.5]), tc.tensor([3.0, 3.0]))
    inside, none = d.mode
    near = tc.stack([inside - 0.01, inside, inside + 0.01])
    assert tc.distributions.Kumaraswamy(2.0, 3.0).log_prob(near).argmax() == 1
    assert none.isnan()


@pytest.mark.oracle
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name: str, torch: ModuleType) -> None:
    """Results, inverses, determinants, their gradients, constraints and shapes are PyTorch's."""
    answers = []
    for lib in (torch, tc):
        make, values = TRANSFORMS[name]
        t = make(lib.distributions.transforms, lib)
        x = lib.tensor(values, requires_grad=True)
        y = t(x)
        slope = t.log_abs_det_jacobian(x, y) if t.bijective else y.sum()
        answers.append([
            y, t.inv(y), slope, lib.autograd.grad(slope.sum() + y.sum(), x), t.bijective, repr(t), repr(t.inv),
            tuple(t.forward_shape(x.shape)), tuple(t.inverse_shape(y.shape)), t.domain.event_dim, t.codomain.event_dim,
            t.inv.domain.event_dim, t.inv.inv is t, repr(t.codomain), t.with_cache(1)(x), t == make(lib.distributions.transforms, lib),
        ])  # fmt: skip
    _compare(answers[1], answers[0])


@pytest.mark.oracle
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraint(name: str, torch: ModuleType) -> None:
    """What is inside and outside, how it prints, and the transforms to it are PyTorch's."""
    make, values = CONSTRAINTS[name]
    answers = []
    for lib in (torch, tc):
        constraint = make(lib.distributions.constraints)
        answer = [repr(constraint)]
        for function in (
            lambda c: (c.is_discrete, c.event_dim),
            lambda c: [c.check(lib.tensor(one)) for one in values],  # noqa: B023
            lambda c: repr(lib.distributions.biject_to(c)),  # noqa: B023
            lambda c: repr(lib.distributions.transform_to(c)),  # noqa: B023
        ):
            try:
                answer.append(function(constraint))
            except Exception as error:
                answer.append(error)
        answers.append(answer)
    _compare(answers[1], answers[0])


@pytest.mark.oracle
@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str, torch: ModuleType) -> None:
    """What PyTorch refuses is refused, with an error of the same type."""
    torch.distributions.Distribution.set_default_validate_args(True)  # torch.compile switches it off for good
    errors = []
    for lib in (torch, tc):
        with pytest.raises(Exception) as caught:
            BAD[name](lib.distributions, lib.tensor)
        errors.append(caught.value)
    _compare(errors[1], errors[0])


def test_names() -> None:
    """The module has PyTorch's names, also for libraries that walk through them, and imports no divergences before one is asked for."""
    import subprocess
    import sys

    code = (
        "import sys, tensorcore as tc; found = vars(tc.distributions); print(set(tc.distributions.__all__) - set(found)); "
        "from tensorcore.distributions.normal import Normal; assert Normal is found['Normal']; "
        "print('tensorcore.distributions.kl_same' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "False"]


@pytest.mark.oracle
def test_every_name(torch: ModuleType) -> None:
    """Each public name of PyTorch's rooms is here, and no other type of distribution."""
    for room in ("", ".constraints", ".transforms", ".utils", ".kl", ".constraint_registry"):
        theirs, mine = torch.distributions, tc.distributions
        for part in room.split(".")[1:]:
            theirs, mine = getattr(theirs, part), getattr(mine, part)
        assert [name for name in theirs.__all__ if not hasattr(mine, name)] == []
    assert set(tc.distributions.__all__) <= set(torch.distributions.__all__)


@pytest.mark.oracle
@pytest.mark.parametrize("diag", [-2, -1, 0, 1])
def test_triangles(diag: int, torch: ModuleType) -> None:
    """Triangles of matrices as vectors, and back."""
    matrix = np.arange(32, dtype=np.float32).reshape(2, 4, 4)
    answers = []
    for lib in (torch, tc):
        utils = lib.distributions.utils
        vector = utils.tril_matrix_to_vec(lib.tensor(matrix), diag)
        answers.append((vector, utils.vec_to_tril_matrix(vector, diag) if diag < 1 else 0))
    _compare(answers[1], answers[0])


class _Shifted(tc.distributions.Normal):
    """A subclass with a constructor of its own."""

    def __init__(self, loc: Any) -> None:
        super().__init__(loc, 1.0)


class _Doubled(tc.distributions.Distribution):
    """A distribution as programs define their own."""

    arg_constraints = {"rate": tc.distributions.constraints.positive}  # noqa: RUF012
    support = tc.distributions.constraints.positive

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = tc.distributions.utils.broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(_Doubled, _instance)
        new.rate = self.rate.expand(batch_shape)
        super(_Doubled, new).__init__(new.rate.shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def rsample(self, sample_shape: Any = ()) -> Any:
        return tc.ones(self._extended_shape(sample_shape)).exponential_() * 2 / self.rate


def test_subclasses() -> None:
    """A program's own distributions expand by their own rule, and must have one with a constructor of their own."""
    made = _Doubled(tc.tensor(2.0)).expand((3,))
    assert repr(made) == "_Doubled(rate: torch.Size([3]))"
    assert made.sample((2,)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"rate .* to satisfy the constraint GreaterThan\(lower_bound=0.0\)"):
        _Doubled(tc.tensor(-2.0))
    with pytest.raises(NotImplementedError, match=r"must also define a custom .expand\(\) method"):
        _Shifted(tc.zeros(2)).expand((3, 2))


def test_registered_divergence() -> None:
    """A divergence of a program's own types is found for subclasses too, and the most specific one wins."""
    d = tc.distributions

    @d.register_kl(_Shifted, d.Normal)
    def _divergence(p: Any, q: Any) -> str:
        return "mine"

    assert d.kl_divergence(_Shifted(0.0), d.Normal(0.0, 1.0)) == "mine"
    assert d.kl_divergence(d.Normal(0.0, 1.0), _Shifted(0.0)) == 0


def test_ambiguous_divergence() -> None:
    """Where two functions fit equally well, the one of the more specific first type runs, with a warning."""
    d = tc.distributions

    class First(d.Normal):
        pass

    class Second(First):
        pass

    d.register_kl(Second, First)(lambda p, q: "left")
    d.register_kl(First, Second)(lambda p, q: "right")
    with pytest.warns(RuntimeWarning, match="Please register_kl"):
        assert d.kl_divergence(Second(0.0, 1.0), Second(0.0, 1.0)) == "left"


def test_validation_switch() -> None:
    """Arguments are checked unless the call or the default says otherwise."""
    d = tc.distributions
    assert d.Normal(0.0, -1.0, validate_args=False).scale == -1
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Normal(0.0, -1.0).scale == -1
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        d.Normal(0.0, -1.0)


def test_unsaid() -> None:
    """A distribution that does not say what its arguments or its support are is warned of, and works."""

    class Silent(tc.distributions.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        made = Silent()
    with pytest.warns(UserWarning, match="does not define `support`"):
        made._validate_sample(tc.tensor(1.0))


def test_cache() -> None:
    """With a cache the inverse of a result is the value itself, which rounding cannot lose."""
    t = tc.distributions.TanhTransform(cache_size=1)
    x = tc.tensor(30.0)
    assert t.inv(t(x)) is x
    assert tc.distributions.TanhTransform().inv(x.tanh()).isinf()


def test_pickled() -> None:
    """A distribution comes back from a pickle, its transforms with inverses included."""
    import pickle

    d = tc.distributions.Gumbel(tc.tensor([0.5]), tc.tensor([2.0]))
    again = pickle.loads(pickle.dumps(d))
    assert again.log_prob(tc.tensor([0.3])) == d.log_prob(tc.tensor([0.3]))
    assert repr(again) == "Gumbel(loc: 0.5, scale: 2.0)".replace("0.5", "tensor([0.5000])").replace(
        "2.0", "tensor([2.])"
    )


def test_empty() -> None:
    """A batch of none, and no samples, have results of no elements."""
    d = tc.distributions
    assert d.Normal(tc.zeros(0), tc.ones(0)).sample((2,)).shape == (2, 0)
    assert d.Gamma(tc.ones(3), tc.ones(3)).rsample((0,)).shape == (0, 3)


def test_registered_transforms() -> None:
    """Each constraint's own transform gives values that satisfy it."""
    d = tc.distributions
    for constraint, shape in [
        (d.constraints.positive, (4,)), (d.constraints.interval(-1.0, 2.0), (4,)), (d.constraints.less_than(3.0), (4,)),
        (d.constraints.simplex, (2, 3)), (d.constraints.lower_cholesky, (3, 3)), (d.constraints.positive_definite, (3, 3)),
        (d.constraints.corr_cholesky, (6,)), (d.constraints.independent(d.constraints.positive, 1), (3,)),
    ]:  # fmt: skip
        assert constraint.check(d.transform_to(constraint)(tc.randn(shape))).all()


def test_descent_through_a_dirichlet() -> None:
    """The gradient of the mean of samples is the derivative of the mean."""
    concentration = tc.tensor([0.7, 2.0, 5.0], dtype=tc.float64, requires_grad=True)
    made = tc.distributions.Dirichlet(concentration).rsample((20000,))
    (found,) = tc.autograd.grad(made[:, 1].mean(), concentration)
    total = 7.7
    assert found.tolist() == pytest.approx([-2.0 / total**2, 5.7 / total**2, -2.0 / total**2], abs=2e-3)
