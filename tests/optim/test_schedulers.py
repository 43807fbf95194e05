"""Learning rate schedulers: PyTorch's rates step by step, and their misuse."""

import math

import pytest

import tensorcore as tc
from tensorcore import nn, optim

SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5]),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.75, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=25),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=5, steps_per_epoch=5, anneal_strategy="linear", three_phase=True
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 3), s.ExponentialLR(o, 0.9)], [4]),
}  # fmt: skip


def rates(library, name, steps=20):
    params = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
    optimizer = library.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.1, momentum=0.9)
    scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(steps):
        found.append([(group["lr"], group["momentum"]) for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return found, scheduler.get_last_lr()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Please also save or load the state of the optimizer")
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_equal_pytorchs(name, torch):
    """Rates and momenta of both groups agree over twenty steps."""
    (ours, mine), (theirs, other) = rates(tc, name), rates(torch, name)
    for a, b in zip(ours, theirs, strict=True):
        assert a == [pytest.approx(pair, rel=1e-9, abs=1e-12) for pair in b]
    assert mine == pytest.approx(other, rel=1e-9, abs=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"mode": "max", "threshold_mode": "abs", "cooldown": 1}, {"min_lr": 0.05}])
def test_plateaus_equal_pytorchs(options, torch):
    """The rate falls at the same steps as PyTorch's for the same measurements."""
    measured = [1.0, 0.9, 0.9, 0.95, 0.9, 0.91, 0.5, 0.6, -0.6, -0.6, -0.59999, -0.6, -0.6, 0.7, 0.7, 0.7]
    found = []
    for library in (tc, torch):
        optimizer = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.1)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5, **options)
        lrs = []
        for value in measured:
            scheduler.step(value)
            lrs.append(optimizer.param_groups[0]["lr"])
        found.append(lrs)
    assert found[0] == pytest.approx(found[1])


def test_steps_halve_the_rate():
    """StepLR multiplies by gamma every step_size steps."""
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))], lr=0.8)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    found = []
    for _ in range(5):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert found == [0.8, 0.8, 0.4, 0.4, 0.2]


def test_a_cosine_ends_at_its_floor():
    """CosineAnnealingLR goes from the first rate to eta_min in T_max steps."""
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    for i in range(1, 5):
        optimizer.step()
        scheduler.step()
        assert scheduler.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi * i / 4)) / 2)


def test_a_state_continues():
    """A scheduler with a loaded state sets the rates that the first one would have set."""
    first = optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0)
    scheduler = optim.lr_scheduler.MultiStepLR(first, [2])
    second = optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0)
    twin = optim.lr_scheduler.MultiStepLR(second, [5])
    first.step()
    scheduler.step()
    twin.load_state_dict(scheduler.state_dict())
    second.step()
    twin.step()
    assert second.param_groups[0]["lr"] == pytest.approx(0.1)


def test_stepping_too_early_warns():
    """A scheduler that steps before its optimizer says so."""
    scheduler = optim.lr_scheduler.ExponentialLR(optim.SGD([nn.Parameter(tc.ones(1))]), 0.5)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda s, o: s.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda s, o: s.LinearLR(o, 0.0), ValueError, "greater than 0"),
        (lambda s, o: s.OneCycleLR(o, 0.1), ValueError, "either total_steps OR"),
        (lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-1), ValueError, "positive integer total_steps"),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda s, o: s.LambdaLR(o, [len, len]), ValueError, "Expected 1 lr_lambdas"),
        (lambda s, o: s.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "one more than the number of milestone"),
    ],
)
def test_bad_arguments_are_refused(make, error, text):
    """Each raises PyTorch's exception with PyTorch's words."""
    with pytest.raises(error) as caught:
        make(optim.lr_scheduler, optim.SGD([nn.Parameter(tc.ones(1))]))
    assert text in str(caught.value)
