"""Optimizers beside PyTorch's: the same parameters and state after many steps, whatever the options."""

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn, optim
from tests.optim.trajectories import CASES, OPTIMIZERS, assert_same_state, problem, steps

TOLERANCES = {"float32": {"rtol": 5e-4, "atol": 2e-5}, "float64": {"rtol": 1e-8, "atol": 1e-11}}


def made(library, case, params):
    name, i = case
    return getattr(library.optim, name)(params, **OPTIMIZERS[name][i])


def both(torch, case, dtype, count):
    """Parameters and optimizers of both libraries after some steps."""
    found = []
    for library in (tc, torch):
        params, loss = problem(library, dtype)
        optimizer = made(library, case, params)
        steps(optimizer, loss, count)
        found.append((params, optimizer))
    return found


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_trajectory_equals_pytorchs(case, dtype, torch):
    """After 100 steps parameters, state and what is printed agree."""
    (ours, mine), (theirs, other) = both(torch, case, dtype, 100)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **TOLERANCES[dtype])
    assert repr(mine) == repr(other)
    state, expected = mine.state_dict(), other.state_dict()
    assert repr(state["param_groups"]) == repr(expected["param_groups"])
    assert_same_state(state, expected, **TOLERANCES[dtype])


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_state_of_pytorchs_continues(case, torch):
    """A state that PyTorch gave is taken over, and the next steps are PyTorch's; and the other way round."""
    # PyTorch goes on with the step's length of ASGD in float32.
    tolerance = {"rtol": 1e-6} if case[0] == "ASGD" else TOLERANCES["float64"]
    (ours, mine), (theirs, other) = both(torch, case, "float64", 3)

    def converted(state, library):
        make = torch.tensor if library is torch else tc.tensor
        values = {
            i: {k: make(v.numpy()) if hasattr(v, "numpy") else v for k, v in one.items()}
            for i, one in state["state"].items()
        }
        return {"state": values, "param_groups": state["param_groups"]}

    for start, source in ((theirs, other), (ours, mine)):
        found = []
        for library in (tc, torch):
            params, loss = problem(library, "float64")
            with library.no_grad():
                for one, two in zip(params, start, strict=True):
                    one.copy_(library.tensor(two.detach().numpy()))
            optimizer = made(library, case, params)
            optimizer.load_state_dict(converted(source.state_dict(), library))
            steps(optimizer, loss, 3)
            found.append(params)
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **tolerance)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Rprop"])
def test_rates_that_are_tensors(name, torch):
    """A rate of one element counts as the number in it, up to the float32 that PyTorch computes with it in."""
    found = []
    for library in (tc, torch):
        params, loss = problem(library, "float64")
        optimizer = getattr(library.optim, name)(params, lr=library.tensor(2.0**-7))
        steps(optimizer, loss, 5)
        found.append(params)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.oracle
def test_groups_have_options_of_their_own(torch):
    """Each group moves by its own options."""
    found = []
    for library in (tc, torch):
        params, loss = problem(library, "float64")
        groups = [{"params": params[:1], "lr": 0.1}, {"params": params[1:], "momentum": 0.9, "maximize": True}]
        steps(library.optim.RMSprop(groups, lr=0.001), loss, 20)
        found.append(params)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("name", [one for one in OPTIMIZERS if one != "Adafactor"])
def test_complex_parameters_are_pairs_of_real_ones(name, torch):
    """Real and imaginary parts move like two real parameters."""
    found = []
    for library in (tc, torch):
        one = library.nn.Parameter(library.tensor([1 + 2j, -0.5j, 3.0 + 0j], dtype=library.complex128))
        optimizer = getattr(library.optim, name)([one], lr=0.05)
        for i in range(10):
            one.grad = library.tensor([0.5 + 1j, -1.0 + 0.1j * i, 2.0 - 1j], dtype=library.complex128)
            optimizer.step()
        found.append(one.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bit_parameters_move_as_pytorchs(name, dtype, torch):
    """Ten steps of 16-bit parameters stay within their coarse rounding of PyTorch's."""
    found = []
    for library in (tc, torch):
        one = library.nn.Parameter(library.ones(4, dtype=getattr(library, dtype)))
        optimizer = getattr(library.optim, name)([one], lr=0.01, **({} if name == "Rprop" else {"weight_decay": 0.01}))
        for i in range(10):
            one.grad = library.tensor([0.5, -1.0, 2.0, 0.1 + 0.1 * i], dtype=getattr(library, dtype))
            optimizer.step()
        found.append(one.detach().float().tolist())
    np.testing.assert_allclose(*found, atol=0.05)


@pytest.mark.parametrize("case", [one for one in CASES if one[0] != "Adafactor"], ids=str)
def test_the_plain_path_equals_the_kernel(case):
    """Where a backend has no kernel the formula runs on tensors, and with ``step`` alone on arrays, to one result."""
    device = tc.device("cpu")
    names = ("sgd_step", "adam_step", "step")
    kernels = {key: device.kernels[key] for key in names}
    found = []
    for missing in ((), names[:2], names):
        device.kernels.update(dict.fromkeys(missing))
        try:
            params, loss = problem(tc, "float64")
            steps(made(tc, case, params), loss, 5)
        finally:
            device.kernels.update(kernels)
        found.append([one.detach().numpy() for one in params])
    for several in zip(*found, strict=True):
        for one in several[1:]:
            np.testing.assert_allclose(several[0], one, rtol=1e-10)


DIFFERENTIABLE = [one for one in OPTIMIZERS if one not in ("Adafactor", "Rprop", "ASGD")]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_steps_may_be_differentiated(name):
    """The derivative of the parameter after two recorded steps by a factor of the gradients is that of differences."""

    def after(factor, **options):
        start = tc.tensor([1.0, -2.0], dtype=tc.float64, requires_grad=True)
        one = start.clone()
        one.retain_grad()
        optimizer = getattr(optim, name)([one], lr=0.1, **options)
        for g in ([0.5, -1.0], [0.25, 1.5]):
            one.grad = factor * tc.tensor(g, dtype=tc.float64)
            optimizer.step()
        return one.sum()

    factor = tc.tensor(1.5, dtype=tc.float64, requires_grad=True)
    after(factor, differentiable=True).backward()
    more, less = (after(tc.tensor(one, dtype=tc.float64)).item() for one in (1.5 + 1e-6, 1.5 - 1e-6))
    assert factor.grad.item() == pytest.approx((more - less) / 2e-6, rel=1e-4, abs=1e-7)


def test_a_rate_may_be_learned():
    """A recorded step carries gradients back to a rate that is a tensor."""
    rate = tc.tensor(0.5, requires_grad=True)
    one = tc.tensor([1.0], requires_grad=True).clone()
    one.retain_grad()
    optimizer = optim.SGD([one], lr=rate, differentiable=True)
    one.grad = tc.tensor([3.0])
    optimizer.step()
    one.sum().backward()
    assert rate.grad.item() == -3


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(nesterov=False, momentum=0.5, weight_decay=0.0),
        dict(adjust_lr_fn="match_rms_adamw", ns_steps=3),
        dict(adjust_lr_fn="original", ns_coefficients=(2.0, -1.5, 0.5), eps=1e-3),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_muon_moves_as_pytorchs(options, shape, torch):
    """Twenty steps of a matrix stay within the rounding of bfloat16, in which the directions are computed."""
    rng = np.random.default_rng(8)
    start, grads = rng.standard_normal(shape), rng.standard_normal((20, *shape))
    found = []
    for library in (tc, torch):
        one = library.nn.Parameter(library.tensor(start))
        optimizer = library.optim.Muon([one], lr=0.02, **options)
        for g in grads:
            one.grad = library.tensor(g)
            optimizer.step()
        found.append(one.detach().numpy())
    assert np.abs(found[0] - found[1]).max() < 0.02 * np.abs(found[1] - start).max()


def test_an_average_is_kept_beside():
    """ASGD averages the parameters from step t0 on."""
    one = nn.Parameter(tc.tensor([0.0]))
    optimizer = optim.ASGD([one], lr=1.0, lambd=0.0, t0=0)
    seen = []
    for g in (1.0, 1.0, 2.0):
        one.grad = tc.tensor([g])
        optimizer.step()
        seen.append(one.item())
    assert seen == [-1, -2, -4]
    assert optimizer.state[one]["ax"].item() == pytest.approx(-3)
