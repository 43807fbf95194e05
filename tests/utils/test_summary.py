"""The table of a model's layers, and the count of operations behind it."""

from __future__ import annotations

import sys

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import ArgumentError, ArgumentTypeError, ShapeError
from tensorcore.utils.flop_counter import FlopCounterMode
from tensorcore.utils.module_tracker import ModuleTracker


def small() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))


def test_rows_carry_shapes_parameters_and_operations() -> None:
    """Each layer has the shapes of its call, its parameters, and two operations for each multiply-add."""
    rows = {row.name: row for row in tc.summary(small(), (2, 1, 8, 8)).rows}
    assert rows["0"][3:] == ((2, 1, 8, 8), (2, 4, 6, 6), 40, 2 * 2 * 4 * 36 * 9)
    assert rows["4"][3:] == ((2, 144), (2, 10), 1450, 2 * 2 * 144 * 10)
    assert rows[""].flops == rows["0"].flops + rows["4"].flops


def test_the_run_has_no_values() -> None:
    """The model runs on meta, in no memory: a layer of 4 TB of activations is summed up at once."""
    found = tc.summary(nn.Linear(1000, 10**9, device="meta"), (1000, 1000))
    assert (found.total_params, found.total_flops) == (1001 * 10**9, 2 * 10**15)


def test_the_model_stays_as_it_is() -> None:
    """Statistics of batch norm, lazy layers, training mode and hooks are those from before."""
    model, seen = nn.Sequential(nn.LazyLinear(3), nn.BatchNorm1d(3)), []
    model[1].register_forward_hook(lambda *args: seen.append(args))
    assert tc.summary(model, (5, 7), mode="eval").total_params == 30
    assert (repr(model[0].weight), model[1].num_batches_tracked.item()) == ("<UninitializedParameter>", 0)
    assert model.training
    assert seen == []


def test_a_model_that_asks_for_values_runs_on_its_own_device() -> None:
    """``item()`` in forward: the run is a real one, and buffers and random numbers are put back."""

    class Asks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            tc.rand(1)
            return x if self.norm(x).sum().item() > 1 else -x

    model = Asks()
    state = tc.get_rng_state()
    found = tc.summary(model, (4, 3))
    assert (str(found.device), found.rows[1].output_shape) == ("cpu", (4, 3))
    assert model.norm.num_batches_tracked.item() == 0
    assert tc.equal(tc.get_rng_state(), state)


def test_without_an_input_there_are_parameters_alone() -> None:
    """The model is not run; a shared parameter counts once and a frozen one is no trainable one."""
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    model.append(nn.Linear(4, 1)).requires_grad_(False)
    found = tc.summary(model)
    assert (found.total_params, found.trainable_params, found.total_flops) == (21, 0, None)
    assert found.rows[0].output_shape is None


def test_text_lists_layers_down_to_a_depth() -> None:
    """Deeper layers are in ``rows`` and not in the table."""
    found = tc.summary(nn.Sequential(nn.Sequential(nn.Linear(2, 2))), (1, 2), depth=1)
    assert "Linear" not in found.text()
    assert len(found.rows) == 3
    assert found.text().splitlines()[-1] == "FLOPs of one call: 8, counted on meta"


def test_printing_needs_no_rich(monkeypatch) -> None:
    """Where rich is not installed, the table is the plain one."""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    found = tc.summary(nn.Linear(2, 3), (1, 2))
    assert str(found) == found.text()


def test_several_inputs_and_dtypes() -> None:
    """A list of shapes is a list of arguments; ``input_data`` brings its own, a dict as keywords."""
    bilinear = tc.summary(nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)])
    assert bilinear.rows[0].input_shape == [(5, 2), (5, 3)]
    assert tc.summary(nn.Embedding(9, 4), (2, 3), dtypes=tc.int64).rows[0].output_shape == (2, 3, 4)
    assert tc.summary(nn.Linear(2, 3), input_data={"input": tc.ones(7, 2)}).rows[0].output_shape == (7, 3)


@pytest.mark.parametrize(
    "error, args, options",
    [
        (ArgumentTypeError, (tc.relu, (1,)), {}),
        (ArgumentError, (nn.ReLU(), (1, -1)), {}),
        (ArgumentError, (nn.ReLU(), (1,)), {"mode": "test"}),
        (ArgumentError, (nn.ReLU(), (1,)), {"input_data": 1}),
        (ArgumentError, (nn.ReLU(), [(1,), (2,)]), {"dtypes": [tc.int64]}),
        (ShapeError, (nn.Linear(2, 3), (1, 5)), {}),
    ],
)
def test_wrong_arguments_are_refused(error, args, options) -> None:
    """What is no model, no shape, or does not fit the model says so."""
    with pytest.raises(error):
        tc.summary(*args, **options)


def test_nothing_looks_on_after_the_count() -> None:
    """The kernel table of a device is its own again, also after an error."""
    device = tc.device("cpu")
    table = device.kernels
    counter = FlopCounterMode(display=False)
    with pytest.raises(ShapeError), counter:
        tc.ones(2, 3) @ tc.ones(2, 3)
    assert counter.get_total_flops() == 0
    assert device.kernels is table


def test_counters_may_overlap() -> None:
    """Two counters that end in the order they began each count what ran inside of them."""
    first, second = FlopCounterMode(display=False), FlopCounterMode(display=False)
    first.__enter__()
    tc.ones(2, 3) @ tc.ones(3, 4)
    second.__enter__()
    tc.ones(2, 3) @ tc.ones(3, 4)
    first.__exit__()
    tc.ones(2, 3) @ tc.ones(3, 4)
    second.__exit__()
    assert (first.get_total_flops(), second.get_total_flops()) == (96, 96)


def test_tracker_names_modules_by_path() -> None:
    """The paths of nested modules start at the outermost one's class, and end with its call."""
    seen = []
    model = nn.Sequential(nn.Sequential(nn.ReLU()))
    with ModuleTracker(enter=lambda path, module: seen.append(path)) as tracker:
        model(tc.ones(1))
        assert (tracker.path, tracker.parents) == (None, {"Global"})
    assert seen == ["Sequential", "Sequential.0", "Sequential.0.0"]


def test_tracker_leaves_modules_that_raise() -> None:
    """A ``forward`` that raises ends its module too."""
    with ModuleTracker() as tracker:
        with pytest.raises(ShapeError):
            nn.Sequential(nn.Linear(2, 3))(tc.ones(1, 5))
        assert tracker.path is None


@pytest.mark.oracle
@pytest.mark.parametrize("backward", [False, True])
def test_count_is_that_of_pytorch(torch, backward) -> None:
    """The counts of a small network, forward and backward, are those of PyTorch's counter."""
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    totals = []
    for library, counter in ((tc, FlopCounterMode), (torch, Theirs)):
        model = library.nn.Sequential(
            library.nn.Conv2d(3, 8, 3, stride=2), library.nn.ReLU(), library.nn.ConvTranspose2d(8, 4, 2),
            library.nn.Flatten(), library.nn.Linear(4 * 16, 5),
        )  # fmt: skip
        x = library.ones(2, 3, 7, 7)
        with counter(display=False) as found:
            out = model(x)
            if backward:
                out.sum().backward()
        totals.append(found.get_total_flops())
    assert totals[0] == totals[1]
