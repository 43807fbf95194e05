"""Learning rate schedulers: PyTorch's rates step by step, and their misuse."""

import copy
import math

import pytest

import tensorcore as tc
from tensorcore import nn, optim

# A chain that begins a sequence takes its first step again, as in PyTorch, before any of the optimizer's.
FIRST_STEP = "ignore:Detected call of `lr_scheduler.step"

SCHEDULES = {
    "LambdaLR": lambda s, o, **k: s.LambdaLR(o, lambda epoch: 0.9**epoch, **k),
    "LambdaLR two": lambda s, o, **k: s.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)], **k),
    "MultiplicativeLR": lambda s, o, **k: s.MultiplicativeLR(o, lambda epoch: 0.95, **k),
    "StepLR": lambda s, o, **k: s.StepLR(o, 3, gamma=0.5, **k),
    "MultiStepLR": lambda s, o, **k: s.MultiStepLR(o, [2, 5, 5], **k),
    "ConstantLR": lambda s, o, **k: s.ConstantLR(o, 0.5, 4, **k),
    "LinearLR": lambda s, o, **k: s.LinearLR(o, 0.25, 0.75, 6, **k),
    "ExponentialLR": lambda s, o, **k: s.ExponentialLR(o, 0.8, **k),
    "PolynomialLR": lambda s, o, **k: s.PolynomialLR(o, 8, 2.0, **k),
    "CosineAnnealingLR": lambda s, o, **k: s.CosineAnnealingLR(o, 5, 0.01, **k),
    "CosineAnnealingWarmRestarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.01, **k),
    "CosineAnnealingWarmRestarts 1": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 3, **k),
    "OneCycleLR": lambda s, o, **k: s.OneCycleLR(o, 0.5, total_steps=25, **k),
    "OneCycleLR linear": lambda s, o, **k: s.OneCycleLR(
        o, [0.5, 0.7], epochs=5, steps_per_epoch=5, anneal_strategy="linear", three_phase=True, **k
    ),
    "CyclicLR": lambda s, o, **k: s.CyclicLR(o, 0.01, [0.1, 0.2], 4, 3, **k),
    "CyclicLR 2": lambda s, o, **k: s.CyclicLR(
        o, [0.01, 0.02], 0.1, 3, mode="triangular2", base_momentum=[0.7, 0.6], **k
    ),
    "CyclicLR range": lambda s, o, **k: s.CyclicLR(
        o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9, cycle_momentum=False, **k
    ),
    "CyclicLR own": lambda s, o, **k: s.CyclicLR(
        o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / (5**x), scale_mode="cycle", **k
    ),
}
COMBINED = {
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 3), s.ExponentialLR(o, 0.9)], [4]),
    "SequentialLR three": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.CosineAnnealingLR(o, 6), s.StepLR(o, 2)], [3, 9]
    ),
    "SequentialLR of chains": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o, 0.5, 1.0, 3), s.ExponentialLR(o, 0.9)], o), s.StepLR(o, 2)], [30]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], o),
}  # fmt: skip


def groups(library, rate=0.1, name="SGD"):
    params = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    second = 3 * rate if isinstance(rate, float) else rate * 3
    return getattr(library.optim, name)(
        [{"params": params[:1]}, {"params": params[1:], "lr": second}], lr=rate, **options
    )


def rates(library, make, optimizer, steps=20):
    """The groups' options before each step, and what the scheduler says at the end."""
    scheduler = make(library.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(steps):
        found.append(
            [(float(group["lr"]), group.get("momentum", group.get("betas"))) for group in optimizer.param_groups]
        )
        optimizer.step()
        scheduler.step()
    return found, scheduler


def assert_close(ours, theirs, rel=1e-9):
    for a, b in zip(ours, theirs, strict=True):
        for (rate, momentum), (other, expected) in zip(a, b, strict=True):
            assert rate == pytest.approx(other, rel=rel, abs=1e-12)
            assert momentum == pytest.approx(expected, rel=rel, abs=1e-12)


@pytest.mark.oracle
@pytest.mark.filterwarnings(FIRST_STEP)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", [*SCHEDULES, *COMBINED])
def test_rates_equal_pytorchs(name, optimizer, torch):
    """Rates, momenta and what a scheduler keeps agree over twenty steps."""
    make = {**SCHEDULES, **COMBINED}[name]
    (ours, mine), (theirs, other) = (rates(one, make, groups(one, name=optimizer)) for one in (tc, torch))
    assert_close(ours, theirs)
    assert mine.get_last_lr() == pytest.approx(other.get_last_lr(), rel=1e-9, abs=1e-12)
    state, expected = mine.state_dict(), other.state_dict()
    assert sorted(state) == sorted(expected)
    for key in state:
        if key not in ("_last_lr", "_schedulers", "max_lrs", "base_lrs"):
            assert (
                state[key] == pytest.approx(expected[key])
                if isinstance(state[key], float)
                else (state[key] == expected[key])
            ), key


@pytest.mark.oracle
@pytest.mark.filterwarnings(FIRST_STEP)
@pytest.mark.parametrize("name", [*SCHEDULES, *COMBINED])
def test_rates_that_are_tensors(name, torch):
    """A rate that is a tensor stays that tensor and takes PyTorch's values."""
    make, found = {**SCHEDULES, **COMBINED}[name], []
    for library in (tc, torch):
        rate = library.tensor(0.1)
        optimizer = groups(library, rate)
        found.append(rates(library, make, optimizer)[0])
        assert optimizer.param_groups[0]["lr"] is rate
    assert_close(*found, rel=1e-5)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:The epoch parameter", "ignore:Detected call of")
@pytest.mark.parametrize("name", [one for one in SCHEDULES if not one.startswith(("OneCycle", "Cyclic"))])
def test_a_step_may_be_named(name, torch):
    """``step(epoch)`` sets the rates of that step, by the closed form where there is one."""
    found = []
    for library in (tc, torch):
        optimizer = groups(library)
        scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        seen = []
        for epoch in (0, 3, 7, 2):
            scheduler.step(epoch)
            seen.append(scheduler.get_last_lr())
        found.append(seen)
    for a, b in zip(*found, strict=True):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("name", SCHEDULES)
def test_resuming_equals_pytorchs(name, torch):
    """A scheduler made with ``last_epoch`` goes on from there with PyTorch's rates."""
    found = []
    for library in (tc, torch):
        optimizer = groups(library)
        _, first = rates(library, SCHEDULES[name], optimizer, 4)
        again = SCHEDULES[name](library.optim.lr_scheduler, optimizer, last_epoch=first.last_epoch)
        seen = [[(float(group["lr"]), group["momentum"]) for group in optimizer.param_groups]]
        for _ in range(3):
            optimizer.step()
            again.step()
            seen.append([(float(group["lr"]), group["momentum"]) for group in optimizer.param_groups])
        found.append(seen)
    assert_close(*found)


@pytest.mark.oracle
@pytest.mark.filterwarnings(FIRST_STEP)
@pytest.mark.parametrize("name", [*SCHEDULES, *COMBINED])
def test_states_are_exchanged_with_pytorch(name, torch):
    """A state that PyTorch's scheduler gave continues here, and ours there."""
    make = {**SCHEDULES, **COMBINED}[name]
    for source, target in ((torch, tc), (tc, torch)):
        optimizer = groups(source)
        _, scheduler = rates(source, make, optimizer, 5)
        twin_optimizer = groups(target)
        twin = make(target.optim.lr_scheduler, twin_optimizer)
        twin.load_state_dict(copy.deepcopy(scheduler.state_dict()))
        for one, two in zip(twin_optimizer.param_groups, optimizer.param_groups, strict=True):
            one.update({key: value for key, value in two.items() if key != "params"})
        for _ in range(4):
            for one, two in ((optimizer, scheduler), (twin_optimizer, twin)):
                one.step()
                two.step()
        assert twin.get_last_lr() == pytest.approx(scheduler.get_last_lr(), rel=1e-9)


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


def test_a_replaced_step_warns():
    """Where the optimizer's step was replaced nobody knows whether it was called, and a warning says so."""
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))])
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden"):
        scheduler.step()


def test_rates_are_asked_of_the_right_method():
    """``get_lr`` outside of a step warns; a scheduler of one's own may write it."""
    scheduler = optim.lr_scheduler.ExponentialLR(optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0), 0.5)
    with pytest.warns(UserWarning, match="get_last_lr"):
        assert scheduler.get_lr() == [0.5]

    class Halves(optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    optimizer = optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0)
    own = Halves(optimizer)
    optimizer.step()
    own.step()
    assert own.get_last_lr() == [0.5]


def test_a_named_step_is_deprecated():
    """``step(epoch)`` warns."""
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))])
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(3)
    with pytest.warns(UserWarning, match="epoch parameter"):
        optim.lr_scheduler.ReduceLROnPlateau(optimizer).step(1.0, epoch=2)


def test_callable_objects_keep_their_attributes():
    """Of a function that is an object the state holds its attributes, of a plain one nothing."""

    class Factor:
        base = 0.5

        def __call__(self, step):
            return self.base**step

    def made(factor):
        return optim.lr_scheduler.LambdaLR(optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0), factor)

    factor, other = Factor(), Factor()
    factor.base = 0.25
    twin = made(other)
    twin.load_state_dict(made(factor).state_dict())
    assert other.base == 0.25
    assert made(lambda step: 1.0).state_dict()["lr_lambdas"] == [None]


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
        (lambda s, o: s.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda s, o: s.SequentialLR(o, [3], []), TypeError, "should have `optimizer`"),
        (lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), ValueError, "does not support `ReduceLROnPlateau`"),
        (lambda s, o: s.ChainedScheduler([s.StepLR(o, 1)], groups(tc)), ValueError, "belong to the same optimizer"),
        (lambda s, o: s.MultiplicativeLR(o, 3), TypeError, "should be a function, but got int"),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
        (lambda s, o: s.CyclicLR(o, [0.1, 0.2], 0.2), ValueError, "base_lr must have the same length"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0, but got 0"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "Expected integer T_mult >= 1, but got 0"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "Expected non-negative epoch"),
        (lambda s, o: s.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown"),
        (lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1, 2]), ValueError, "expected 1 min_lrs, got 2"),
        (lambda s, o: s.OneCycleLR(o, 0.1, 5, pct_start=2.0), ValueError, "between 0 and 1 pct_start"),
        (lambda s, o: optim.swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "one of 'cos' or 'linear'"),
        (lambda s, o: optim.swa_utils.SWALR(o, 0.1, -1), ValueError, "equal or greater than 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(make, error, text):
    """Each raises PyTorch's exception with PyTorch's words."""
    with pytest.raises(error) as caught:
        make(optim.lr_scheduler, optim.SGD([nn.Parameter(tc.ones(1))]))
    assert text in str(caught.value)
