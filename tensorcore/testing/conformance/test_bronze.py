"""Bronze: the device stores tensors, moves them, views them, has the primitives of a network, and trains one."""

from __future__ import annotations

import copy
import difflib
import pickle
import random
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.composed import COMPOSED
from tensorcore.backend.kernels import KERNELS
from tensorcore.backend.shapes import VIEWS
from tensorcore.errors import KernelMissing
from tensorcore.ops.define import OPS
from tensorcore.testing.calls import calls_of
from tensorcore.testing.compare import agree, built, outcome, values

__all__: list[str] = []

SHAPES = [(), (0,), (1,), (5,), (2, 0, 3), (2, 3, 4)]
# The ops of a small network, its losses and its optimizers.
BASIC = [
    "add", "sub", "mul", "div", "neg", "abs", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "pow", "maximum",
    "minimum", "clamp", "where", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "sum", "mean",
    "amax", "amin", "argmax", "matmul", "softmax", "log_softmax", "cross_entropy", "mse_loss", "linear", "cat",
    "stack", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "flip", "gather",
    "index_select", "masked_fill", "zeros_like", "ones_like", "clone",
]  # fmt: skip


def arrays(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that every dtype holds."""
    count = int(np.prod(shape))
    return (np.arange(count) % 7 % (2 if dtype == "bool" else 8)).reshape(shape)


class TestNames:
    """What the class says."""

    def test_names(self, device: Any) -> None:
        """Each method ``kernel_{name}`` has the name of a kernel that ops ask for: another would never be called."""
        known = {*KERNELS, *VIEWS, *COMPOSED, "index_bounds"}
        written = [name.removeprefix("kernel_") for name in dir(type(device)) if name.startswith("kernel_")]
        for name in sorted(set(written) - known):
            close = "".join([f"did you mean kernel_{one}? " for one in difflib.get_close_matches(name, known, 1)])
            raise AssertionError(
                f"kernel_{name}: expected the name of a kernel, got one that no op asks for; {close}docs/kernels.md lists all"
            )


class TestStore:
    """What goes in comes out."""

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_store(self, device: Any, dtype: str, shape: tuple[int, ...]) -> None:
        """A host array comes back with its shape, dtype and values, in memory of its own."""
        kind = getattr(tc, dtype)
        host = arrays(dtype, shape).astype(kind.numpy)
        native = device.from_host(host)
        assert type(native) is device.array
        assert tuple(native.shape) == shape
        before = host.copy()
        if host.size:
            host[...] = 1 - host if dtype == "bool" else host + 1
        found = np.array(device.to_host(native))
        assert found.dtype == kind.numpy
        np.testing.assert_array_equal(found.astype(np.complex128), before.astype(np.complex128))

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_allocate(self, device: Any, dtype: str, shape: tuple[int, ...]) -> None:
        """New memory is contiguous, and of the shape and dtype asked for."""
        native = device.allocate(shape, getattr(tc, dtype))
        assert type(native) is device.array
        assert tuple(native.shape) == shape
        assert device.is_contiguous(native)
        assert device.to_host(native).dtype == getattr(tc, dtype).numpy

    def test_make(self, device: Any, dtype: str) -> None:
        """``zeros``, ``ones``, ``full``, ``arange`` and ``tensor`` make what they say."""
        kind = getattr(tc, dtype)
        assert values(tc.zeros(2, 3, dtype=kind, device=device)).tolist() == [[0] * 3] * 2
        assert values(tc.ones(3, dtype=kind, device=device)).tolist() == [1] * 3
        assert values(tc.full((2,), 1, dtype=kind, device=device)).tolist() == [1, 1]
        assert values(tc.tensor([1, 0], dtype=kind, device=device)).tolist() == [1, 0]
        if dtype != "bool" and not kind.is_complex:
            assert values(tc.arange(4, dtype=kind, device=device)).tolist() == [0, 1, 2, 3]

    def test_numbers(self, device: Any, wide: str) -> None:
        """``item``, ``bool``, ``tolist`` and the printed form show the values."""
        x = tc.tensor([1.5, 0.0], dtype=getattr(tc, wide), device=device)
        assert (x[0].item(), bool(x[1]), x.tolist()) == (1.5, False, [1.5, 0.0])
        assert "1.5000, 0.0000" in repr(x)


class TestMove:
    """Between devices, and between dtypes."""

    def test_move(self, device: Any, reference: Any, dtype: str) -> None:
        """A transposed tensor goes to the reference and back with its values."""
        x = tc.tensor(arrays(dtype, (3, 4))).to(getattr(tc, dtype))
        there = x.t().to(device)
        assert there.device is device
        assert there.to(device) is there
        back = there.t().to(reference)
        assert back.device is reference
        np.testing.assert_array_equal(values(back), values(x))
        np.testing.assert_array_equal(values(there.contiguous()), values(x).T)

    def test_cast(self, device: Any, dtype: str) -> None:
        """Each dtype is cast to each other as on the reference."""
        x = tc.tensor(arrays(dtype, (2, 3))).to(getattr(tc, dtype))
        for other in sorted(device.capabilities.dtypes):
            agree(outcome(x.to(device).to, getattr(tc, other)), outcome(x.to, getattr(tc, other)), other)

    def test_copy(self, device: Any, wide: str) -> None:
        """``copy_`` writes values of another device, dtype and shape into a view."""
        x = tc.zeros(3, 4, dtype=getattr(tc, wide), device=device)
        x[1:, ::2].copy_(tc.tensor([7, 8]))
        assert x.tolist() == [[0, 0, 0, 0], [7, 0, 8, 0], [7, 0, 8, 0]]

    def test_same_device(self, device: Any) -> None:
        """The device is one object, whatever names it, and survives a copy and a pickle."""
        assert tc.device(str(device)) is device
        assert tc.device(device.name, device.index) is device
        assert pickle.loads(pickle.dumps(device)) is device
        x = tc.ones(2, device=device)
        assert copy.deepcopy(x).device is device


class TestViews:
    """Views share memory, and know where they lie."""

    @pytest.mark.parametrize("seed", range(24))
    def test_views(self, device: Any, reference: Any, seed: int, wide: str) -> None:
        """A chain of views has the reference's shape, strides, offset and values, and a write through it shows."""
        found = []
        for one in (device, reference):
            base = tc.arange(120, dtype=getattr(tc, wide), device=one).reshape(2, 3, 4, 5)
            view, names = walk(base, random.Random(seed))
            at = view.data_ptr() - base.data_ptr()
            layout = (tuple(view.shape), view.stride(), view.storage_offset(), at if view.numel() else 0, names)
            before = values(view).tolist()
            view.fill_(-1)
            found.append((layout, before, values(base).tolist()))
        assert found[0] == found[1]

    def test_storage(self, device: Any, wide: str) -> None:
        """Views of one memory have one storage, other tensors have others."""
        x = tc.zeros(4, 6, dtype=getattr(tc, wide), device=device)
        assert device.storage_key(x.native) == device.storage_key(x[1:, ::2].t().native)
        assert device.storage_key(x.native) != device.storage_key(x.clone().native)
        assert tuple(device.storage(x[1:].native).shape) == (24,)

    def test_writes(self, device: Any, wide: str) -> None:
        """Writes in place change the tensor and what it shares memory with, and nothing else."""
        x = tc.zeros(3, 3, dtype=getattr(tc, wide), device=device)
        y = x.clone()
        row = x[1]
        row += 2
        x.t()[0].mul_(3)
        x[2, 2] = 9
        assert x.tolist() == [[0, 0, 0], [6, 2, 2], [0, 0, 9]]
        assert row.tolist() == [6, 2, 2]
        assert y.tolist() == [[0] * 3] * 3


class TestPrimitives:
    """The kernels that a network needs."""

    @pytest.mark.parametrize("name", BASIC)
    def test_primitive(self, device: Any, reference: Any, name: str, wide: str) -> None:
        """The op has the reference's values, for floats and, where it takes them, integers and bools."""
        function = OPS[name].function
        for number, call in enumerate(calls_of(name)):
            for dtype in {wide, "float32", "int64", "bool"} & device.capabilities.dtypes:
                found, expected = [
                    outcome(function, *built(call.args, one, dtype), **built(call.kwargs, one, dtype))
                    for one in (device, reference)
                ]
                agree(found, expected, f"{name} call {number} {dtype}")

    def test_missing(self, device: Any) -> None:
        """A kernel that the device lacks is false, and names itself and the device when it is called."""
        kernel = device.kernels["no_such_kernel"]
        assert not kernel
        with tc.fallback(None), pytest.raises(KernelMissing, match=f"no_such_kernel: .*'{device}'"):
            kernel()

    def test_synchronize(self, device: Any) -> None:
        """``synchronize`` returns, also where there is nothing to wait for."""
        tc.ones(3, device=device).add_(1)
        assert device.synchronize() is None
        assert device.synchronize() is None

    def test_report(self, device: Any) -> None:
        """What the device reports of itself is plain data under lower-case names."""
        for key, value in device.report().items():
            assert key == key.lower()
            assert value is None or isinstance(value, (str, int, float, bool))


def test_accumulate(device: Any, wide: str) -> None:
    """Gradients of several walks add up in the memory of the first."""
    x = tc.ones(3, dtype=getattr(tc, wide), device=device, requires_grad=True)
    for _ in range(2):
        (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [7, 7, 7]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_train(device: Any, reference: Any, optimizer: str) -> None:
    """A network of two layers learns the exclusive or, with the reference's losses."""
    losses = []
    for one in (device, reference):
        tc.manual_seed(0)
        net = tc.nn.Sequential(tc.nn.Linear(2, 8), tc.nn.Tanh(), tc.nn.Linear(8, 2)).to(one)
        x = tc.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=one)
        y = tc.tensor([0, 1, 1, 0], device=one)
        steps = getattr(tc.optim, optimizer)(net.parameters(), lr=0.5 if optimizer == "SGD" else 0.05)
        history = []
        for _ in range(100):
            steps.zero_grad()
            loss = tc.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            steps.step()
            history.append(loss.item())
        losses.append(history)
    assert losses[0][-1] < 0.2
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-2, atol=1e-4)


def walk(tensor: Any, draw: random.Random) -> tuple[Any, list[str]]:
    """A chain of views of a tensor, and their names."""
    names = []
    for _ in range(draw.randrange(1, 6)):
        dims = tensor.dim()
        dim, other = draw.randrange(max(dims, 1)), draw.randrange(max(dims, 1))
        kind = draw.choice(
            ["transpose", "slice", "step", "select", "unsqueeze", "narrow", "diagonal", "unfold", "flat"]
        )
        size = tensor.shape[dim] if dims else 0
        if kind == "unsqueeze":
            tensor = tensor.unsqueeze(draw.randrange(dims + 1))
        elif not dims or not size:
            continue
        elif kind == "transpose":
            tensor = tensor.transpose(dim, other)
        elif kind in ("slice", "step"):
            key = slice(draw.randrange(size), None, 2 if kind == "step" else 1)
            tensor = tensor[(slice(None),) * dim + (key,)]
        elif kind == "select" and dims > 1:
            tensor = tensor.select(dim, draw.randrange(size))
        elif kind == "narrow":
            start = draw.randrange(size)
            tensor = tensor.narrow(dim, start, draw.randrange(size - start + 1))
        elif kind == "diagonal" and dims > 2 and dim != other:
            tensor = tensor.diagonal(draw.randrange(-1, 2), dim, other)
        elif kind == "unfold" and not any(step == 0 for step in tensor.stride()):
            tensor = tensor.unfold(dim, draw.randrange(1, size + 1), size)
        elif kind == "flat" and tensor.is_contiguous():
            tensor = tensor.view(-1)
        names.append(kind)
    return tensor, names
