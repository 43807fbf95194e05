"""Averaged models: PyTorch's means, buffers and schedule, and statistics that fit them."""

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn, optim
from tensorcore.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, update_bn

FUNCTIONS = {
    "default": lambda s: {},
    "swa": lambda s: {"avg_fn": s.get_swa_avg_fn()},
    "swa multi": lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()},
    "ema": lambda s: {"avg_fn": s.get_ema_avg_fn(0.7)},
    "ema multi": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.7)},
    "ema buffers": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.7), "use_buffers": True},
    "swa buffers": lambda s: {"use_buffers": True},
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", FUNCTIONS)
def test_means_equal_pytorchs(name, torch):
    """Parameters, buffers and the count agree after some updates."""
    rng = np.random.default_rng(8)
    values = rng.standard_normal((5, 3, 4))
    found = []
    for library in (tc, torch):
        model = library.nn.Sequential(library.nn.Linear(4, 3), library.nn.BatchNorm1d(3))
        averaged = library.optim.swa_utils.AveragedModel(model, **FUNCTIONS[name](library.optim.swa_utils))
        for value in values:
            with library.no_grad():
                model[0].weight.copy_(library.tensor(value))
            model(library.tensor(value, dtype=library.float32))
            averaged.update_parameters(model)
        found.append({k: v for k, v in averaged.state_dict().items() if "0.bias" not in k})
    ours, theirs = found
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        if "running" not in key:
            np.testing.assert_allclose(value.numpy(), theirs[key].numpy(), rtol=1e-5, err_msg=key)


def test_a_mean_starts_with_the_first_values():
    """The first update copies, the second is halfway, the copy of the model is its own."""
    model = nn.Linear(1, 1, bias=False)
    averaged = AveragedModel(model)
    for value in (2.0, 4.0):
        with tc.no_grad():
            model.weight.fill_(value)
        averaged.update_parameters(model)
    assert averaged.module.weight.item() == 3
    assert averaged.n_averaged.item() == 2
    assert averaged(tc.ones(1, 1)).item() == 3
    assert model.weight.item() == 4


def test_statistics_of_all_batches():
    """``update_bn`` sets running means over a loader's batches, and leaves mode and momentum as they were."""
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Identity())
    model.eval()
    batches = [tc.tensor([[1.0], [3.0]]), (tc.tensor([[5.0], [7.0]]), "label")]
    update_bn(batches, model)
    assert model[0].running_mean.tolist() == [4.0]
    assert model[0].running_var.tolist() == [2.0]
    assert model[0].momentum == 0.1
    assert not model.training
    update_bn(None, nn.Linear(1, 1))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 4}, {"anneal_epochs": 0}], ids=str
)
def test_swa_rates_equal_pytorchs(options, torch):
    """The rates anneal to PyTorch's, alone and after another scheduler; the states have the same keys."""
    found, states = [], []
    for library in (tc, torch):
        optimizer = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.1)
        first = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        scheduler = library.optim.swa_utils.SWALR(optimizer, 0.02, **options)
        seen = []
        for i in range(15):
            optimizer.step()
            (first if i < 3 else scheduler).step()
            seen.append(optimizer.param_groups[0]["lr"])
        found.append(seen)
        states.append(scheduler.state_dict())
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert sorted(states[0]) == sorted(states[1])


def test_bad_arguments_are_refused():
    """Decays outside of [0, 1] and two functions at once are refused."""
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="Invalid decay value 2"):
            make(2)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max)
    with pytest.raises(TypeError, match="not an Optimizer"):
        optim.swa_utils.SWALR(3, 0.1)
