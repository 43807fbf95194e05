"""GradScaler: scaled losses, skipped steps, a factor that follows, its state, and its misuse."""

import math
import pickle

import pytest

import tensorcore as tc
from tensorcore import nn, optim
from tensorcore.amp import GradScaler


def prepared(value=1.0, **options):
    """A parameter, its optimizer, and a scaler that starts at 8."""
    one = nn.Parameter(tc.tensor([value]))
    return one, optim.SGD([one], lr=0.5), GradScaler("cpu", init_scale=8.0, **options)


def iterate(one, optimizer, scaler, factor=1.0):
    """One iteration whose gradient is ``factor``."""
    optimizer.zero_grad()
    scaler.scale((one * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_gradients_are_scaled_and_scaled_back():
    """The backward sees the loss times the factor, the optimizer the gradient of the loss."""
    one, optimizer, scaler = prepared()
    scaler.scale((one * 3).sum()).backward()
    assert one.grad.tolist() == [24.0]
    scaler.unscale_(optimizer)
    assert one.grad.tolist() == [3.0]
    scaler.step(optimizer)
    assert one.tolist() == [-0.5]


def test_a_gradient_that_is_not_finite_skips_the_step():
    """The parameters stay, and the factor shrinks; it grows after enough steps in a row."""
    one, optimizer, scaler = prepared(growth_interval=2)
    for factor, value, scale in (
        (math.inf, 1.0, 4.0), (1.0, 0.5, 4.0), (math.nan, 0.5, 2.0), (1.0, 0.0, 2.0), (1.0, -0.5, 4.0),
    ):  # fmt: skip
        iterate(one, optimizer, scaler, factor)
        assert (one.item(), scaler.get_scale()) == (value, scale)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("bad", [None, math.inf, -math.inf, math.nan])
def test_every_gradient_is_looked_at(bad, fused):
    """One element that is not finite is found wherever it is, with the kernel and where a backend has none."""
    shapes = [(3,), (70000,), (), (0, 2), (4, 5)]
    params = [nn.Parameter(tc.ones(shape)) for shape in shapes] + [nn.Parameter(tc.ones(2, dtype=tc.bfloat16))]
    kernels = tc.device("cpu").kernels
    kernel = kernels["unscale"]
    try:
        if not fused:
            kernels["unscale"] = None
        for place in range(len(params) if bad is not None else 1):
            scaler = GradScaler("cpu", init_scale=8.0)
            scaler.scale(tc.ones(1))
            for i, one in enumerate(params):
                one.grad = tc.full_like(one, 16.0)
                if bad is not None and i == place and one.numel():
                    one.grad.view(-1)[-1] = bad
            params[4].grad = params[4].grad.t().contiguous().t()
            scaler.unscale_(optim.SGD(params))
            (found,) = scaler._per_optimizer_states.popitem()[1]["found_inf_per_device"].values()
            assert found.item() == (bad is not None and params[place].numel() > 0)
            assert all(one.grad.view(-1)[0].item() == 2 for one in params[:2] if bad is None)
    finally:
        kernels["unscale"] = kernel


def test_the_factor_stays_finite():
    """A factor that float32 cannot hold is not taken."""
    one, optimizer, scaler = prepared(growth_interval=1, growth_factor=1e38)
    iterate(one, optimizer, scaler)
    iterate(one, optimizer, scaler)
    assert scaler.get_scale() == 8.0


def test_outputs_may_be_nested():
    """Lists and tuples of tensors are scaled one by one, other iterables as they are asked for."""
    _, _, scaler = prepared()
    x = tc.ones(1)
    assert [one.item() for one in scaler.scale([x, x])] == [8.0, 8.0]
    made = scaler.scale(([x], (x,)))
    assert type(made) is tuple
    assert made[0][0].item() == 8
    assert [one.item() for one in scaler.scale(iter([x]))] == [8.0]
    with pytest.raises(ValueError, match="must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_two_optimizers_share_a_factor():
    """One optimizer's infinite gradient skips its own step alone, and shrinks the factor of both."""
    one, first, scaler = prepared()
    two = nn.Parameter(tc.tensor([1.0]))
    second = optim.SGD([two], lr=0.5)
    scaler.scale((one * math.inf + two).sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (one.item(), two.item(), scaler.get_scale()) == (1.0, 0.5, 4.0)


def test_off_it_does_nothing():
    """With ``enabled=False`` losses, gradients and steps are the program's own."""
    one, optimizer, _ = prepared()
    scaler = GradScaler("cpu", enabled=False)
    loss = one.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert one.item() == 0.5
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}
    assert not scaler.is_enabled()
    scaler.load_state_dict({})


def test_a_state_continues():
    """A dict or a pickle of a scaler goes on as the scaler would."""
    one, optimizer, scaler = prepared(growth_interval=2)
    iterate(one, optimizer, scaler)
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1,
    }  # fmt: skip
    twin = GradScaler("cpu")
    twin.load_state_dict(state)
    used = prepared()[2]
    used.scale(tc.ones(1))
    used.load_state_dict(state)
    for other in (twin, used, pickle.loads(pickle.dumps(scaler))):
        iterate(one, optimizer, other)
        assert other.get_scale() == 16.0
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        twin.load_state_dict({})


def test_a_factor_may_be_set():
    """``update`` takes a new factor, a number or a tensor; the other numbers have their setters."""
    _, _, scaler = prepared()
    scaler.scale(tc.ones(1))
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(tc.tensor(5.0))
    assert scaler.get_scale() == 5.0
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (4.0, 0.25, 7)
    with pytest.raises(AssertionError, match="new_scale should be"):
        scaler.update(tc.ones(2))


def test_an_optimizer_may_scale_back_itself():
    """One that says so gets the factor and what was found, and the scaled gradients."""
    seen = []

    class Own(optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale.item(), self.found_inf.item(), self.param_groups[0]["params"][0].grad.item()))

    one = nn.Parameter(tc.tensor([1.0]))
    optimizer, scaler = Own([one]), GradScaler("cpu", init_scale=8.0)
    iterate(one, optimizer, scaler)
    iterate(one, optimizer, scaler, math.inf)
    assert seen == [(8.0, 0.0, 8.0), (8.0, 1.0, math.inf)]
    assert scaler.get_scale() == 4.0
    assert not hasattr(optimizer, "grad_scale")


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_fused_optimizers_scale_back_themselves(make):
    """They get scaled gradients, divide them, and leave a step that is not finite out with its count."""
    found = []
    for fused in (False, True):
        one = nn.Parameter(tc.tensor([1.0, 2.0]))
        optimizer, scaler = make([one], lr=0.5, fused=fused), GradScaler("cpu", init_scale=8.0)
        for factor in (1.0, math.nan, 3.0):
            iterate(one, optimizer, scaler, factor)
        counts = [state["step"].item() for state in optimizer.state.values() if "step" in state]
        found.append((one.tolist(), one.grad.tolist(), counts, scaler.get_scale()))
    assert found[0] == found[1]
    assert found[1][1:] == ([3.0, 3.0], [] if make is optim.SGD else [2.0], 4.0)


def test_the_order_of_calls_matters():
    """Steps before scaling, twice, or after unscaling twice are refused."""
    one, optimizer, scaler = prepared()
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(one.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 0)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scaler.scale(tc.ones(1))
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)


def test_bad_arguments_are_refused():
    """Factors that do not grow or shrink, and gradients in float16, are refused; a missing device switches it off."""
    with pytest.raises(AssertionError, match=r"growth factor must be > 1\.0"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match=r"backoff factor must be < 1\.0"):
        GradScaler("cpu", backoff_factor=1.0)
    half = nn.Parameter(tc.ones(1, dtype=tc.float16))
    scaler = GradScaler("cpu")
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optim.SGD([half]))
    if not tc.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not GradScaler().is_enabled()
