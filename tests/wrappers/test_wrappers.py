"""Devices around devices: a trace has every kernel call, a differential run stops at the first that differs."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import ArgumentError, UnknownDevice
from tensorcore.ops.define import OPS
from tensorcore.wrappers import DifferentialBackend, Divergence, replay
from tests.ops.registry_forms import SAMPLED, Call, calls_of, with_tensors


def train(device: str) -> list[Any]:
    """Losses and parameters of three steps of a small model."""
    tc.manual_seed(3)
    # No bias before batch norm: its gradient is zero but for rounding, which Adam makes as large as any.
    model = nn.Sequential(nn.Linear(4, 5, bias=False), nn.BatchNorm1d(5), nn.GELU(), nn.Linear(5, 3)).to(device)
    optimizer = tc.optim.Adam(model.parameters())
    x, y = tc.randn(6, 4, device=device), tc.randint(0, 3, (6,), device=device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, [one.tolist() for one in model.parameters()]]


def on(device: Any, value: Any) -> Any:
    """A value with its tensors on a device."""
    if isinstance(value, tc.Tensor):
        return value.to(device)
    if isinstance(value, Call):
        return Call(on(device, value.args), on(device, value.kwargs))
    if isinstance(value, dict):
        return {key: on(device, one) for key, one in value.items()}
    return type(value)([on(device, one) for one in value]) if isinstance(value, list | tuple) else value


# Trace


@pytest.fixture
def traced() -> Any:
    device = tc.device("trace:cpu")
    device.calls.clear()
    return device


def test_a_trace_has_each_kernel_call(traced: Any) -> None:
    """Names in order, shapes and dtypes in the place of arrays, options and results."""
    x = tc.ones(2, 3, device=traced)
    (x * 2).sum(0)
    assert [(one.kernel, one.operands, one.options, one.made) for one in traced.calls] == [
        ("full", ((2, 3), 1), {"dtype": tc.float32}, "float32[2, 3]"),
        ("mul", ("float32[2, 3]", 2), {}, "float32[2, 3]"),
        ("sum", ("float32[2, 3]",), {"dim": (0,), "keepdim": False}, "float32[3]"),
    ]
    assert str(traced.calls[1]).startswith("mul(float32[2, 3], 2) -> float32[2, 3]  ")
    assert all(one.seconds > 0 for one in traced.calls)


def test_a_traced_program_gives_the_same_bits(traced: Any) -> None:
    """Forward, backward and optimizer on the device under the trace."""
    assert train("trace:cpu") == train("cpu")
    assert {"linear", "standardize", "cross_entropy_backward", "adam_step"} <= {one.kernel for one in traced.calls}


def test_a_trace_is_a_device_of_its_own(traced: Any) -> None:
    """Always the same one, by any way to it; tensors of the traced device are elsewhere."""
    assert tc.wrappers.trace("cpu") is traced is tc.device("trace") is pickle.loads(pickle.dumps(traced))
    assert str(tc.ones(1, device=traced)) == "tensor([1.], device='trace:cpu')"
    with pytest.raises(RuntimeError, match="same device"):
        tc.ones(1, device=traced) + tc.ones(1)


# Differential


@pytest.fixture
def both(tmp_path: Path) -> Iterator[DifferentialBackend]:
    """The CPU beside the reference in plain Python."""
    device = tc.wrappers.differential("cpu", "pyref")
    before = device.folder
    device.folder = tmp_path
    kernels = dict(device.second.kernels)
    yield device
    device.folder, device.tolerance = before, None
    device.second.kernels.clear()
    device.second.kernels.update(kernels)
    device.kernels.clear()


def break_kernel(device: DifferentialBackend, name: str, change: Any) -> None:
    """Let a kernel of the second device answer with something else."""
    kernel = device.second.kernels[name]
    device.second.kernels[name] = lambda *natives, **options: change(kernel(*natives, **options))
    device.kernels.pop(name, None)


def test_a_program_runs_on_both(both: DifferentialBackend) -> None:
    """Two devices that agree give what the first gives, in a training program with fused kernels and writes."""
    losses, parameters = train("differential:cpu,pyref")
    expected = train("cpu")
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    for got, wanted in zip(parameters, expected[1], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
    assert list(both.folder.iterdir()) == []


def test_the_first_difference_stops_the_program(both: DifferentialBackend) -> None:
    """The error names the kernel, both values and their place, and the file; the file runs the call again."""
    break_kernel(both, "tanh", lambda made: both.second.kernels["mul"](made, 1.01))
    x = tc.tensor([0.0, 1.0, 2.0], device=both)
    y = x * 2
    with pytest.raises(
        Divergence, match=r"expected 'tanh' to give the same on cpu and pyref, got .* at \[2\]"
    ) as caught:
        y.tanh()
    assert caught.value.path is not None
    assert caught.value.path.parent == both.folder
    mine, other = replay(caught.value.path)
    np.testing.assert_allclose(mine, np.tanh([0.0, 2.0, 4.0]), rtol=1e-6)
    np.testing.assert_allclose(other, mine * 1.01, rtol=1e-6)


def test_a_file_holds_options_lists_and_dtypes(both: DifferentialBackend) -> None:
    """A call with more than arrays is read back as it was."""
    break_kernel(both, "cat", lambda made: both.second.kernels["neg"](made))
    with pytest.raises(Divergence) as caught:
        tc.cat([tc.ones(1, 2, device=both), tc.zeros(1, 2, device=both)], 0)
    mine, other = replay(caught.value.path)
    assert mine.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert other.tolist() == [[-1.0, -1.0], [0.0, 0.0]]


def test_a_tolerance_may_be_set(both: DifferentialBackend) -> None:
    """What is nearer than that is no difference."""
    break_kernel(both, "exp", lambda made: both.second.kernels["mul"](made, 1.01))
    both.tolerance = 0.1
    assert tc.zeros(1, device=both).exp().tolist() == [1.0]
    both.tolerance = 0.001
    with pytest.raises(Divergence):
        tc.zeros(1, device=both).exp()


def test_integers_have_to_be_equal(both: DifferentialBackend) -> None:
    """There is no tolerance for them."""
    break_kernel(both, "argmax", lambda made: both.second.kernels["add"](made, 1))
    with pytest.raises(Divergence, match="expected 'argmax'"):
        tc.ones(3, device=both).argmax()


@pytest.mark.parametrize("name", ["differential:cpu", "differential:a,b,c", "differential:"])
def test_two_devices_are_named(name: str) -> None:
    """Fewer or more are refused, and so is the same one twice."""
    with pytest.raises(UnknownDevice, match="name two devices"):
        tc.device(name)
    with pytest.raises(ArgumentError, match="got cpu twice"):
        tc.device("differential:cpu,cpu")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [one for one in SAMPLED if one != "masked_select"])
def test_an_op_runs_on_both(name: str, both: DifferentialBackend) -> None:
    """The CPU's kernels and the reference agree on the registry's calls; the masked_select of the reference widens."""
    ran = 0
    for call in calls_of(name):
        try:
            OPS[name].function(*with_tensors(tc, call, "float32").args, **with_tensors(tc, call, "float32").kwargs)
        except Exception:  # a sample that is there to be refused
            continue
        mine = on(both, with_tensors(tc, call, "float32"))
        OPS[name].function(*mine.args, **mine.kwargs)
        ran += 1
    assert ran


@pytest.mark.parametrize("wrapper", ["trace:cpu", "differential:cpu,pyref", "lazy"])
def test_labels_that_are_no_classes_are_refused_in_the_same_words(wrapper: str) -> None:
    """A device that wraps others says what the one below says."""
    words = []
    for name in ("cpu", wrapper):
        with pytest.raises(tc.errors.DimensionError) as caught:
            tc.nn.functional.cross_entropy(tc.zeros(2, 3).to(name), tc.tensor([0, 7]).to(name))
        words.append(str(caught.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("wrapper", ["trace:cpu", "differential:cpu,pyref", "lazy"])
def test_autocast_takes_the_devices_that_wrap_its_own(wrapper: str) -> None:
    """In a region for ``cpu`` a product on a device over the CPU has the dtype and values of one on the CPU."""
    seen = []
    for name in ("cpu", wrapper):
        tc.manual_seed(4)
        model, x = nn.Linear(3, 2).to(name), tc.randn(4, 3).to(name)
        with tc.autocast("cpu", dtype=tc.bfloat16):
            made = model(x)
        made.float().square().sum().backward()
        seen.append((made.dtype, made.tolist(), model.weight.grad.dtype, model.weight.grad.tolist()))
    assert seen[0] == seen[1]
    assert seen[0][0] is tc.bfloat16
