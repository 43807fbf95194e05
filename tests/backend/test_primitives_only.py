"""A backend that has primitives alone: every op runs by its decomposition, with the results of the backend that has all kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from docs import kernels
from tensorcore.backend.composed import COMPOSED
from tensorcore.backend.decompose import VIEWED
from tensorcore.backend.kernels import OPTIONAL
from tensorcore.backend.xp import XPBackend
from tensorcore.errors import KernelMissing
from tensorcore.ops.define import OPS
from tensorcore.testing.invariants import defined
from tests.ops.registry_forms import SAMPLED, Call, calls_of, tensors_of, with_tensors

# The kernels that a backend must have for every op to run, views among them. The number goes down only.
PRIMITIVES = 59
UNDEFINED = {"empty", "empty_like"}


class Primitive(XPBackend):
    """NumPy without any kernel that the frontend can do without.

    Attributes:
        asked: the kernels that it was asked for and has.
    """

    def __init__(self) -> None:
        super().__init__(np, "primitive")
        self.asked: set[str] = set()

    def find_kernel(self, name: str) -> Any:
        if name in OPTIONAL | COMPOSED | (VIEWED - {"as_strided"}):
            return None
        kernel = super().find_kernel(name)
        if kernel is not None:
            self.asked.add(name)
        return kernel


@pytest.fixture(scope="module")
def primitive() -> Primitive:
    """The device."""
    return Primitive()


def moved(call: Call, device: Any) -> Call:
    """The call with its tensors on a device, as leaves of their own."""

    def there(one: Any) -> Any:
        if isinstance(one, tc.Tensor):
            return one.detach().to(device).requires_grad_(one.requires_grad)
        if isinstance(one, dict):
            return {key: there(each) for key, each in one.items()}
        return type(one)([there(each) for each in one]) if isinstance(one, (list, tuple)) else one

    return Call(there(call.args), there(call.kwargs))


def outcome(name: str, call: Call) -> Any:
    """The values of a call and of its gradients, or the exception."""
    tc.manual_seed(3)
    try:
        results = tensors_of(defined(name, OPS[name].function)(*call.args, **call.kwargs))
        leaves = [one for one in tensors_of([call.args, call.kwargs]) if one.requires_grad]
        outputs = [(one * one).abs().sum() for one in results if one.requires_grad]
        if outputs and leaves:
            results += tc.autograd.grad(outputs, leaves, allow_unused=True, materialize_grads=True)
    except Exception as error:
        if isinstance(error, KernelMissing) and "expected a kernel" in str(error):
            raise
        return error
    return [one.detach().cpu().numpy() for one in results]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", SAMPLED)
def test_op_runs_on_primitives_alone(name: str, primitive: Primitive) -> None:
    """Values and gradients are those of the backend with all kernels, for real and complex numbers and integers."""
    if name in UNDEFINED:
        pytest.skip("the values are not defined")
    for number, call in enumerate(calls_of(name)):
        for dtype in ("float64", "float32", "complex128", "int64", "bool"):
            mine = with_tensors(tc, call, dtype, grad=dtype in ("float64", "complex128"))
            expected, found = outcome(name, mine), outcome(name, moved(mine, primitive))
            context = f"{name} call {number} {dtype}"
            if isinstance(expected, Exception):
                assert isinstance(found, type(expected)), f"{context}: {found!r} for {expected!r}"
                continue
            assert not isinstance(found, Exception), f"{context}: {found!r}"
            for a, b in zip(found, expected, strict=True):
                tolerance = 1e-4 if str(a.dtype) in ("float32", "complex64", "int32") else 1e-9
                assert (a.dtype, a.shape) == (b.dtype, b.shape), context
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=context)


def test_parts_without_elements_are_views(primitive: Primitive) -> None:
    """A slice of nothing is taken and added to, wherever it would begin."""
    nothing = tc.zeros(0, 3, 4, device=primitive)
    assert nothing[:, 1:, 2:].shape == (0, 2, 2)
    assert tc.ones(2, 3, device=primitive)[2:, 1:].shape == (0, 2)
    assert tc.nn.functional.pad(nothing, (1, 2)).shape == (0, 3, 7)


def test_network_trains_on_primitives_alone(primitive: Primitive) -> None:
    """Two layers learn the exclusive or, with the same loss as on the backend with all kernels."""
    losses = []
    for device in (tc.device("cpu"), primitive):
        tc.manual_seed(0)
        net = tc.nn.Sequential(tc.nn.Linear(2, 8), tc.nn.Tanh(), tc.nn.Linear(8, 2)).to(device)
        x = tc.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=device)
        y = tc.tensor([0, 1, 1, 0], device=device)
        optimizer = tc.optim.Adam(net.parameters(), lr=0.05)
        for _ in range(120):
            optimizer.zero_grad()
            loss = tc.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[1] < 0.05
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)


def test_kernels_that_may_be_missing_exist() -> None:
    """A name among those that may be left out is that of a kernel that XPBackend has."""
    assert sorted((OPTIONAL | COMPOSED) - XPBackend().table.keys()) == []


def test_number_of_primitives(primitive: Primitive) -> None:
    """All ops together ask for the kernels that the documentation lists as needed, and for four views."""
    for name in SAMPLED:
        for call in calls_of(name):
            for dtype in ("float64", "complex128", "int64"):
                outcome(name, moved(with_tensors(tc, call, dtype, grad=dtype != "int64"), primitive))
    views = {"as_strided", "reinterpret", "view_as_complex", "view_as_real"}
    assert primitive.asked == kernels.needed() | views
    assert len(primitive.asked) == PRIMITIVES
    counts = f"asks for {PRIMITIVES}, the {PRIMITIVES - len(views)} that"
    assert counts in (Path(kernels.__file__).parent / "writing-a-backend.md").read_text("utf-8")


def _arrays() -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of kernels that second derivatives and rarer forms ask for."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 4, 5)).astype(np.float32)
    pool = {"counts": (3, 3), "kernel": (2, 3), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 1)}
    equal = np.round(x)
    equal[0, 0, 1, 1] = np.nan
    made = XPBackend(np, "reference").kernels["max_pool"](equal, **pool)
    rows = np.array([[0, 2, 2], [4, 0, 1]])
    return {
        "positive": ((x,), {}),
        "pick": ((x, random.integers(0, 4, (2, 3, 6, 5))), {"dim": 2}),
        "shifted": ((x,), {"dim": 2, "step": -3}),
        "shared": ((x[0, 0],), {"geometry": ((4, 5), (1, 1), 0)}),
        "triangle_indices": ((3, 4, 1), {"upper": True, "dtype": tc.int64}),
        "embedding_pick": ((x[0, 0], rows % 4), {"padding": 2, "by_count": True}),
        "max_pool_indices": ((equal, made), pool),
        "max_pool_pick": ((x, equal, made), pool),
    }


@pytest.mark.parametrize("name", sorted(_arrays()))
def test_kernel_made_of_others(name: str, primitive: Primitive) -> None:
    """What no first derivative asks for is composed too, with the values of the kernel that is there."""
    arrays, options = _arrays()[name]
    found, expected = primitive.kernels[name](*arrays, **options), XPBackend(np).kernels[name](*arrays, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
