"""What holds for every op in the registry under the transforms: tangents match gradients, and vmap matches a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import ArgumentTypeError, GradientError, TensorcoreError
from tensorcore.func import grad, jvp, vjp, vmap
from tensorcore.ops.define import OPS
from tensorcore.testing.invariants import defined
from tests.ops.registry_forms import SAMPLED, Call, calls_of, counterpart, mapped, tensors_of, with_leaves

# Ops whose values are whatever the memory held.
UNDEFINED = {"empty_like"}
# Calls whose gradient is by definition another one than the derivative's, by op and what they pass.
EXCEPTIONS = {(name, key) for name in ("embedding", "embedding_bag") for key in ("padding_idx", "scale_grad_by_freq")}
# Arguments that the op takes no gradient for: the op and the position.
CONSTANT = {"nll_loss": 2, "cross_entropy": 2}
NAMES = [name for name in SAMPLED if name not in UNDEFINED]
# How an op says that it has no derivative.
WITHOUT = ("is not implemented", "not differentiable", "does not support automatic differentiation")
EXAMPLES = 3


def program(name: str, call: Call) -> tuple[Any, list[np.ndarray]]:
    """The op as a function of its floating tensors, which gives its floating results, and their values."""
    at = CONSTANT.get(name, len(call.args))
    call = Call((*call.args[:at], *mapped(call.args[at : at + 1], tc.from_numpy), *call.args[at + 1 :]), call.kwargs)
    arrays, rebuilt = with_leaves(call)
    function = defined(name, OPS[name].function)

    def run(*leaves: tc.Tensor) -> tuple[tc.Tensor, ...]:
        args, kwargs = mapped(rebuilt(list(leaves)), tc.from_numpy)
        return tuple(tensors_of(function(*args, **kwargs)))

    run.__name__ = name
    return run, arrays


def turned(array: np.ndarray) -> np.ndarray:
    """The numbers as complex ones off the axes, on which branch cuts lie."""
    return np.asarray(array * (0.8 + 0.6j))


def refused(run: Any, values: list[Any]) -> bool:
    """Whether the op does not take this call at all; some samples are there to be refused."""
    try:
        run(*values)
    except (TensorcoreError, NotImplementedError, OverflowError, ArgumentTypeError):
        return True
    return False


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", NAMES)
def test_tangent_is_the_transpose_of_the_gradient(name: str) -> None:
    """The product of a cotangent with the tangent is that of the pulled back cotangent with the direction."""
    for number, call in enumerate(calls_of(name)):
        if any((name, key) in EXCEPTIONS for key in call.kwargs):
            continue
        for kind in ("real", "complex"):
            run, arrays = program(name, call)
            if kind == "complex":
                arrays = [turned(one) for one in arrays]
            values = [tc.from_numpy(one.copy()) for one in arrays]
            if not values or refused(run, values):
                continue
            rng = np.random.default_rng(number)

            def random(one: Any, rng: Any = rng) -> tc.Tensor:
                made = rng.standard_normal(one.shape)
                made = made + 1j * rng.standard_normal(one.shape) if one.dtype.is_complex else made
                return tc.from_numpy(np.asarray(made)).to(one.dtype)

            floating = [i for i, one in enumerate(run(*values)) if one.is_floating_point() or one.is_complex()]
            if not floating:
                continue

            def kept(*given: tc.Tensor, run: Any = run, floating: list[int] = floating) -> Any:
                tc.manual_seed(3)
                made = run(*given)
                return tuple(made[i] for i in floating)

            directions = [random(one) for one in values]
            try:
                outputs, pull = vjp(kept, *values)
                grads = pull(tuple(random(one) for one in outputs))
            except TensorcoreError as error:
                if not any(one in str(error) for one in WITHOUT):
                    raise
                continue
            rng = np.random.default_rng(number)
            [random(one, rng) for one in values]
            weights = [random(one, rng) for one in outputs]
            _, tangents = jvp(kept, tuple(values), tuple(directions))
            for one, tangent in zip(outputs, tangents, strict=True):
                assert tangent.shape == one.shape, f"{name} call {number} {kind}"
                assert tangent.dtype is one.dtype, f"{name} call {number} {kind}"
            left = sum(product(w, t) for w, t in zip(weights, tangents, strict=True))
            right = sum(product(g, d) for g, d in zip(grads, directions, strict=True))
            np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-9, err_msg=f"{name} call {number} {kind}")


def product(a: tc.Tensor, b: tc.Tensor) -> float:
    """The real inner product."""
    left, right = a.numpy().astype(np.complex128), b.numpy().astype(np.complex128)
    return float((left.conj() * right).sum().real)


def examples(array: np.ndarray) -> np.ndarray:
    """Several arrays like the one given, along a new first dim; indices and masks stay what they may be."""
    if array.dtype.kind in "fc":
        return np.stack([array, array * 0.9, array * 0.8])
    return np.stack([np.roll(array, k) for k in range(EXAMPLES)]).astype(array.dtype)


def choices(call: Call) -> list[tuple[str, list[bool]]]:
    """Which of the call's arrays are mapped over: all of floats, each of floats alone, everything."""
    arrays: list[np.ndarray] = []
    mapped(call, lambda one: arrays.append(one))
    floats = [one.dtype.kind in "fc" for one in arrays]
    found = [("floats", floats)] if any(floats) else []
    if sum(floats) > 1:
        found += [(f"float {i}", [j == i for j in range(len(arrays))]) for i, one in enumerate(floats) if one]
    if not all(floats) and arrays:
        found.append(("all", [True] * len(arrays)))
    return found


# Calls whose gradient has a shape that depends on values.
DYNAMIC_GRADIENT = {"masked_scatter"}
# Calls that look at values, or whose results have a shape that depends on them: refused for examples that differ.
DYNAMIC = {
    "allclose", "argwhere", "bincount", "cov", "ctc_loss", "equal", "fill", "histc", "index_put", "is_nonzero", "istft",
    "masked_select", "nanquantile", "nonzero", "quantile", "rrelu", "unique", "unique_consecutive",
    # Series and recurrences that go on until the last value has settled, or as far as the largest degree.
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "hermite_polynomial_h", "hermite_polynomial_he", "igamma", "igammac", "laguerre_polynomial_l", "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "zeta",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", NAMES)
def test_vmap_equals_a_loop(name: str) -> None:
    """Mapped over the examples at once, the op gives what it gives for each of them."""
    for number, call in enumerate(calls_of(name)):
        for what, chosen in choices(call):
            compare_with_loop(name, number, call, what, chosen)


def compare_with_loop(name: str, number: int, call: Call, what: str, chosen: list[bool]) -> None:
    """Run one call over examples of the chosen arrays, by vmap and one after the other."""
    arrays: list[np.ndarray] = []
    mapped(call, lambda one: arrays.append(one))
    wide = [examples(one) if mine else one for one, mine in zip(arrays, chosen, strict=True)]
    function = defined(name, OPS[name].function)

    def run(*tensors: tc.Tensor) -> tuple[tc.Tensor, ...]:
        tc.manual_seed(3)
        left = iter(tensors)
        args, kwargs = mapped(call, lambda _: next(left))
        return tuple(tensors_of(function(*args, **kwargs)))

    def values(k: int) -> list[tc.Tensor]:
        return [
            tc.from_numpy(np.array(one[k] if mine else one)) for one, mine in zip(wide, chosen, strict=True)
        ]  # fmt: skip

    title = f"{name} call {number} {what}"
    if any(refused(run, values(k)) for k in range(EXAMPLES)):
        return
    expected = [run(*values(k)) for k in range(EXAMPLES)]
    inputs = [tc.from_numpy(np.array(one)) for one in wide]
    try:
        found = vmap(run, tuple(0 if mine else None for mine in chosen), randomness="same")(*inputs)
    except Exception as error:
        if name in DYNAMIC and "vmap" in str(error):
            return
        raise AssertionError(f"{title}: {error!r}") from error
    assert len(found) == len(expected[0]), title
    for i, one in enumerate(found):
        theirs = np.stack([each[i].numpy() for each in expected])
        assert one.dtype is expected[0][i].dtype, title
        assert tuple(one.shape) == theirs.shape, title
        np.testing.assert_allclose(one.numpy(), theirs, rtol=1e-9, atol=1e-12, err_msg=title)


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", NAMES)
def test_vmap_of_the_gradient_equals_a_loop(name: str) -> None:
    """Gradients of each example, with respect to inputs of its own and to those that all examples share."""
    for number, call in enumerate(calls_of(name)):
        run, arrays = program(name, call)
        if not arrays:
            continue
        for alone in (None, *range(len(arrays))) if len(arrays) > 1 else (None,):
            chosen = [alone is None or alone == i for i in range(len(arrays))]
            compare_gradients(f"{name} call {number} {alone}", run, arrays, chosen)


def compare_gradients(title: str, run: Any, arrays: list[np.ndarray], chosen: list[bool]) -> None:
    """The gradients of one call over examples of the chosen arrays, by vmap and one after the other."""
    wide = [examples(one) if mine else one for one, mine in zip(arrays, chosen, strict=True)]

    def values(k: int) -> list[tc.Tensor]:
        return [tc.from_numpy(np.array(one[k] if mine else one)) for one, mine in zip(wide, chosen, strict=True)]

    def total(*given: tc.Tensor) -> tc.Tensor:
        tc.manual_seed(3)
        made = [one for one in run(*given) if one.is_floating_point()]
        return sum([(one * (1 + tc.arange(one.numel(), dtype=tc.float64)).reshape(one.shape)).sum() for one in made])

    if any(refused(run, values(k)) for k in range(EXAMPLES)):
        return
    if not any(one.is_floating_point() for one in run(*values(0))):
        return
    derivative = grad(total, tuple(range(len(arrays))))
    try:
        expected = [derivative(*values(k)) for k in range(EXAMPLES)]
    except TensorcoreError as error:
        if not any(one in str(error) for one in WITHOUT):
            raise
        return
    inputs = [tc.from_numpy(np.array(one)) for one in wide]
    refuses = title.split()[0] in DYNAMIC | DYNAMIC_GRADIENT
    try:
        found = vmap(derivative, tuple(0 if mine else None for mine in chosen), randomness="same")(*inputs)
    except Exception as error:
        if refuses and "vmap" in str(error):
            return
        raise AssertionError(f"{title}: {error!r}") from error
    for i, one in enumerate(found):
        theirs = np.stack([each[i].numpy() for each in expected])
        np.testing.assert_allclose(one.numpy(), theirs, rtol=1e-8, atol=1e-10, err_msg=title)


# Calls whose tangent PyTorch computes otherwise: the op and the kind of numbers or an argument, each with the reason.
DIFFERENT = {
    **{
        (name, kind): "PyTorch's tangent is not that of its own differences"
        for name in ("cholesky_inverse", "triangular_solve")
        for kind in ("real", "complex")
    },
    **{("ldexp", kind): "PyTorch's tangent has 2 to a negative whole power as 0" for kind in ("real", "complex")},
    ("scatter_reduce", "prod"): "PyTorch gives zeros",
    ("silu", "complex"): "PyTorch leaves out a conjugation: its forward and its backward mode disagree",
    ("soft_margin_loss", "complex"): "PyTorch leaves out a conjugation: its forward and its backward mode disagree",
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_tangent_is_that_of_pytorch(torch: Any, name: str) -> None:
    """The tangent of each sampled call equals that of PyTorch's forward mode, of real and of complex numbers."""
    theirs = counterpart(torch, name)
    if theirs is None:
        pytest.skip("PyTorch keeps it elsewhere")
    for number, call in enumerate(calls_of(name)):
        for kind in ("real", "complex"):
            compare_with_pytorch(torch, theirs, name, f"{name} call {number} {kind}", call, kind)


def compare_with_pytorch(torch: Any, theirs: Any, name: str, title: str, call: Call, kind: str) -> None:
    """The tangents of one call in both libraries."""
    arrays, rebuilt = with_leaves(call)
    arrays = [turned(one) for one in arrays] if kind == "complex" else arrays
    rng = np.random.default_rng(2)
    directions = [
        np.asarray(rng.standard_normal(one.shape) + (1j * rng.standard_normal(one.shape) if kind == "complex" else 0))
        for one in arrays
    ]

    def tangents(module: Any, function: Any) -> list[Any]:
        def run(*leaves: Any) -> Any:
            module.default_generator.manual_seed(3)
            args, kwargs = mapped(rebuilt(list(leaves)), lambda array: module.from_numpy(np.array(array)))
            made = tensors_of(function(*args, **kwargs))
            return tuple(one for one in made if one.is_floating_point() or one.is_complex())

        values, along = (tuple(module.from_numpy(one.copy()) for one in given) for given in (arrays, directions))
        return [one.numpy() for one in module.func.jvp(run, values, along)[1]] if arrays else []

    try:
        expected = tangents(torch, defined(name, theirs))
    except Exception:
        return  # refused, or without a forward derivative there
    if any((name, one) in DIFFERENT for one in (kind, *filter(lambda one: isinstance(one, str), call.args))):
        return
    try:
        found = tangents(tc, defined(name, OPS[name].function))
    except (TensorcoreError, NotImplementedError) as error:
        # Some dtypes are refused here that PyTorch takes in forward mode alone.
        if isinstance(error, GradientError) and not any(one in str(error) for one in WITHOUT):
            raise
        return
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8, err_msg=title)
