"""Mixed precision on the device: regions, and scaled steps that the host waits for nowhere."""

from __future__ import annotations

import math

import pytest

import tensorcore as tc


def build(make, **options):
    """A small model, its optimizer and a scaler that starts at 8."""
    tc.manual_seed(0)
    model = tc.nn.Sequential(tc.nn.Linear(6, 8), tc.nn.Tanh(), tc.nn.Linear(8, 3)).cuda()
    return model, make(model.parameters(), **options), tc.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2)


def step(model, optimizer, scaler, x):
    """One iteration in float16."""
    optimizer.zero_grad()
    with tc.autocast("cuda"):
        loss = model(x).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


MAKERS = [
    pytest.param(tc.optim.Adam, {"lr": 0.01}, id="adam"),
    pytest.param(tc.optim.AdamW, {"lr": 0.01, "amsgrad": True}, id="adamw"),
    pytest.param(tc.optim.SGD, {"lr": 0.1, "momentum": 0.9}, id="sgd"),
    pytest.param(tc.optim.SGD, {"lr": 0.1}, id="plain-sgd"),
]


@pytest.mark.standin
@pytest.mark.parametrize("make, options", MAKERS)
def test_a_fused_step_waits_for_nothing(make, options, clock) -> None:
    """Regions, scaling, a skipped step and the new factor: the host goes on through all of them."""
    model, optimizer, scaler = build(make, fused=True, **options)
    data = tc.randn(4, 5, 6, device="cuda")
    data[2] = math.inf
    step(model, optimizer, scaler, data[0])
    waits = clock.waits
    for x in data:
        step(model, optimizer, scaler, x)
    assert clock.waits == waits


@pytest.mark.parametrize("make, options", MAKERS)
def test_a_fused_step_is_the_step(make, options) -> None:
    """Parameters, factors and counts are those of the optimizer that looks at what was found; a bad step changes nothing."""
    data = tc.randn(5, 4, 6, device="cuda")
    data[0], data[3] = math.inf, math.nan
    found = []
    for fused in (False, True):
        model, optimizer, scaler = build(make, fused=fused, **options)
        for x in data:
            step(model, optimizer, scaler, x)
        counts = [one["step"].item() for one in optimizer.state.values() if "step" in one]
        found.append(([one.cpu() for one in model.parameters()], scaler.get_scale(), counts))
    (params, scale, counts), (others, *rest) = found
    assert rest == [scale, counts]
    assert scale == 4.0
    assert counts in ([], [3.0] * 4)
    for one, other in zip(params, others, strict=True):
        tc.testing.assert_close(one, other)


@pytest.mark.standin
def test_unscaled_gradients_may_be_clipped(clock) -> None:
    """``unscale_`` before a fused step leaves nothing to divide, and waits for nothing either."""
    model, optimizer, scaler = build(tc.optim.Adam, fused=True)
    x = tc.randn(5, 6, device="cuda")
    step(model, optimizer, scaler, x)
    optimizer.zero_grad()
    scaler.scale(model(x).square().mean()).backward()
    waits = clock.waits
    scaler.unscale_(optimizer)
    norm = tc.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    scaler.step(optimizer)
    scaler.update()
    assert clock.waits == waits
    assert norm.item() > 0.01
    total = sum(one.grad.square().sum() for one in model.parameters()).sqrt()
    assert total.item() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_run_in_half_precision(kind) -> None:
    """In a region the results and the states are of its dtype, as cuDNN's are, whatever the states that were given."""
    tc.manual_seed(0)
    layer = getattr(tc.nn, kind)(5, 4, num_layers=2, bidirectional=True).cuda()
    x, h0 = tc.randn(3, 2, 5, device="cuda"), tc.randn(4, 2, 4, device="cuda")
    states = (h0, h0) if kind == "LSTM" else h0
    expected, last = layer(x, states)
    with tc.autocast("cuda"):
        found, state = layer(x, states)
    for one, other in zip(
        (found, *(state if kind == "LSTM" else (state,))),
        (expected, *(last if kind == "LSTM" else (last,))),
        strict=True,
    ):
        assert one.dtype is tc.float16
        tc.testing.assert_close(one.float(), other, rtol=1e-2, atol=1e-2)
    found.float().square().sum().backward()
    assert all(one.grad.dtype is tc.float32 for one in layer.parameters())
