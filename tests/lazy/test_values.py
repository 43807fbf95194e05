"""Deferred values: what stays undone, memory that is shared, devices that meet, numbers that vary, and errors."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.xp import XPBackend
from tensorcore.errors import DeviceError, DimensionError, IndexOutside, LoadError, ShapeError
from tensorcore.lazy import LazyBackend
from tensorcore.lazy.kinds import ELEMENTWISE
from tensorcore.lazy.making import relieve
from tensorcore.utils import safetensors


def test_a_lazy_tensor_waits() -> None:
    """Neither its own values nor those computed of it are there before one is needed."""
    x = tc.lazy.tensor([1, 2, 3])
    y = x * 2
    assert [x.is_initialized(), y.is_initialized()] == [False, False]
    assert y.tolist() == [2, 4, 6]
    assert [x.is_initialized(), y.is_initialized()] == [True, True]
    assert tc.ones(2).is_initialized()


def test_creation_inside_lazy_is_lazy() -> None:
    """In the block every tensor made without a device is lazy, modules' parameters too; after it none."""
    eager = tc.ones(2)
    with tc.lazy() as device:
        made = [tc.zeros(2), tc.arange(3), tc.randn(2), tc.tensor(1.0), tc.empty(1), tc.eye(2)]
        made += [tc.as_tensor(np.ones(2)), tc.as_tensor(eager), tc.asarray([1]), tc.hann_window(4), tc.fft.fftfreq(4)]
        model = tc.nn.Linear(2, 2)
    assert isinstance(device, LazyBackend)
    assert all(one.device is device for one in [*made, *model.parameters()])
    assert tc.zeros(2).device == tc.device("cpu")


def test_the_same_name_is_the_same_device() -> None:
    """``lazy`` is over the default device; ``lazy:...`` names another one."""
    assert tc.device("lazy") is tc.device("lazy:cpu") is tc.lazy()
    assert tc.device("lazy:meta").target is tc.device("meta")
    assert str(tc.device("lazy")) == "lazy"
    assert str(tc.device("lazy:meta")) == "lazy:meta"
    assert pickle.loads(pickle.dumps(tc.device("lazy"))) is tc.device("lazy")


def test_an_array_that_is_given_out_cannot_be_written() -> None:
    """Several values may share its memory: NumPy refuses, and a copy is a copy."""
    x = tc.lazy.tensor([1.0, 2.0])
    array = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5
    y = x.cpu()
    y[0] = 7
    assert x.tolist() == [1.0, 2.0]


def test_data_is_as_it_was_when_it_was_taken() -> None:
    """A later write to the array, or to the eager tensor that an op was given, is not seen."""
    array = np.ones(2, np.float32)
    x = tc.tensor(array, device="lazy")
    eager = tc.from_numpy(array)
    y = x + eager
    z = eager.to("lazy")
    array[:] = 9
    eager.add_(1)
    assert [x.tolist(), y.tolist(), z.tolist()] == [[1, 1], [2, 2], [1, 1]]


def test_lazy_and_eager_tensors_meet() -> None:
    """The result is lazy, and gradients find the way back to each device."""
    w = tc.ones(3, requires_grad=True)
    x = tc.lazy.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (w * x).sum()
    assert isinstance(y.device, LazyBackend)
    y.backward()
    assert w.grad.device == tc.device("cpu")
    assert w.grad.tolist() == [1.0, 2.0, 3.0]
    assert isinstance(x.grad.device, LazyBackend)
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_devices_that_do_not_meet_are_refused_at_once() -> None:
    """A lazy tensor over one device and a tensor of another one."""
    with pytest.raises(DeviceError, match="to be on the same device"):
        tc.lazy.tensor([1.0, 2.0]) + tc.empty(2, device="meta")


def test_a_write_is_seen_through_every_view() -> None:
    """Views taken before and after, of views, and the memory itself, hold one value."""
    x = tc.zeros(2, 3, device="lazy")
    before = x.t()
    row = x[1]
    row[1:] = 5
    x.view(-1)[0] = 7
    flat = tc.as_strided(x, (6,), (1,))
    flat.mul_(2)
    assert x.tolist() == [[14, 0, 0], [0, 10, 10]]
    assert before.tolist() == [[14, 0], [0, 10], [0, 10]]
    assert row.tolist() == [0, 10, 10]
    assert x._version == 3


def test_a_saved_tensor_that_was_written_is_refused() -> None:
    """Version counters are those of an eager tensor."""
    x = tc.ones(2, device="lazy", requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_result_keeps_nothing_alive_once_it_is_made() -> None:
    """What a value was made of is let go."""
    x = tc.lazy.tensor([1.0, 2.0])
    reference = weakref.ref(x.native.memory.value)
    y = x * 2
    del x
    assert reference() is not None
    y.tolist()
    gc.collect()
    assert reference() is None


def test_copies_and_pickles_hold_the_values() -> None:
    """A deep copy has memory of its own; a pickle comes back with values on the same device."""
    x = tc.lazy.tensor([1.0, 2.0]) * 2
    twin = copy.deepcopy(x)
    x.zero_()
    assert twin.tolist() == [2.0, 4.0]
    assert pickle.loads(pickle.dumps(twin)).tolist() == [2.0, 4.0]


def test_random_numbers_and_states_are_those_of_eager() -> None:
    """Draws advance the generator when their line runs, whether or not anyone looks."""
    seen = []
    for device in ("cpu", "lazy"):
        tc.manual_seed(4)
        tc.rand(3, device=device)
        x = tc.randn(5, device=device) + tc.randperm(5, device=device)
        state = tc.get_rng_state()
        seen.append((x.tolist(), state.tolist(), tc.rand(1).item()))
    assert seen[0] == seen[1]


def test_a_number_that_varies_costs_no_new_plan() -> None:
    """A program with another learning rate each time is still the same program."""
    x = tc.lazy.tensor([1.0, 2.0])
    for i in range(8):
        x = (x + 0.1 * i) * 1.5
        tc.evaluate(x)
    assert [one.replayed for one in tc.lazy.realisations()][-4:] == [True] * 4


def test_a_slice_that_moves_costs_no_new_plan() -> None:
    """A program on another part of the data is still the same program."""
    data = tc.arange(40.0, device="lazy")
    tc.evaluate(data)
    tc.lazy.clear()
    sums = [(data[i : i + 4] * 2).sum().item() for i in range(0, 40, 4)]
    assert sums == [float(2 * sum(range(i, i + 4))) for i in range(0, 40, 4)]
    assert [one.replayed for one in tc.lazy.realisations()][1:] == [True] * 9


# Errors


def test_a_shape_error_is_raised_at_its_line() -> None:
    """Nothing is written down of a call that does not fit."""
    x, y = tc.zeros(2, 3, device="lazy"), tc.zeros(4, device="lazy")
    with pytest.raises(ShapeError, match="must match"):
        x + y
    with pytest.raises(ShapeError, match="matmul"):
        x @ x
    with pytest.raises(DimensionError):
        x.sum(5)
    assert tc.lazy.realisations() == []


def test_an_error_of_values_names_the_line_that_wrote_the_call_down() -> None:
    """The error is the kernel's, and the line is that of the op, not of the look."""
    index = tc.lazy.tensor([0, 7]) + 0
    table = tc.zeros(3, 2, device="lazy")
    rows = table.index_select(0, index)  # the line
    with pytest.raises(IndexError, match=rf"written down as 'index_select' at {__file__}:") as caught:
        rows.tolist()
    number = int(str(caught.value).rpartition(":")[2].rstrip(")"))
    assert "# the line" in Path(__file__).read_text().splitlines()[number - 1]


def test_an_index_out_of_range_is_what_any_op_raises_for_it() -> None:
    """PyTorch raises RuntimeError in gather and IndexError in index_select: the late error is both."""
    x, index = tc.ones(2, 3, device="lazy"), tc.lazy.tensor([[7]]) + 0
    for made in (x.gather(1, index), x.index_select(1, index[0]), x.scatter(1, index, 1.0)):
        with pytest.raises(
            IndexError, match="expected every index inside its dimension, got one outside: index 7"
        ) as caught:
            made.tolist()
        assert isinstance(caught.value, RuntimeError)
        assert caught.type is IndexOutside


@pytest.mark.parametrize("wrong", [-1, 3, -9])
@pytest.mark.parametrize("loss", [tc.nn.functional.cross_entropy, tc.nn.functional.nll_loss])
def test_labels_that_are_no_classes_are_refused(loss: Any, wrong: int) -> None:
    """With eager's text: at their line where they are there, and when they are made where they are not."""
    x = tc.zeros(2, 3, device="lazy")
    there, later = tc.lazy.tensor([0, wrong]), tc.lazy.tensor([0, wrong])
    tc.evaluate(there)
    with pytest.raises(DimensionError, match=f"Target {wrong} is out of bounds"):
        loss(x, there)
    with pytest.raises(
        DimensionError, match=f"Target {wrong} is out of bounds.*written down as '{loss.__name__}' at {__file__}"
    ):
        loss(x, later + 0).item()
    for _ in range(3):  # as a plan too
        for good in ([0, 2], [1, -100]):
            labels = tc.tensor(good)
            assert loss(x, labels.to("lazy") * 1).item() == loss(x.cpu(), labels).item()
        with pytest.raises(DimensionError, match=f"Target {wrong} is out of bounds"):
            loss(x, tc.tensor([0, wrong]).to("lazy") * 1).item()


def test_an_error_leaves_what_does_not_depend_on_it() -> None:
    """After an error at evaluation the inputs have their values, and the failing value fails again."""
    index = tc.lazy.tensor([7]) + 0
    table = tc.ones(3, 2, device="lazy") * 2
    rows = table[index]
    for _ in range(3):
        with pytest.raises(IndexError, match="written down"):
            rows.tolist()
    assert table.sum().item() == 12.0


# Files


def test_sparse_matrices_multiply_lazily() -> None:
    """The product and both gradients have the values and the dtypes of eager, whatever the dtype of the indices."""
    seen = []
    for device in ("cpu", "lazy"):
        values = tc.tensor([3.0, 4.0, 5.0], device=device, requires_grad=True)
        dense = tc.arange(6.0, device=device).view(3, 2).requires_grad_()
        sparse = tc.sparse_coo_tensor(tc.tensor([[0, 1, 1], [2, 0, 2]], device=device), values, (2, 3))
        made = tc.sparse.mm(sparse, dense)
        made.square().sum().backward()
        seen.append([(str(one.native.dtype), one.tolist()) for one in (made, values.grad, dense.grad)])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_what_a_plan_writes_to_is_taken_by_every_kernel(name: str) -> None:
    """An elementwise kernel in NumPy takes ``out=``, for that is what a plan gives it."""
    kernel = XPBackend(np).kernels[name]
    if not kernel:
        pytest.skip(f"{name} is made of other kernels in NumPy")
    signature = inspect.signature(kernel)
    assert "out" in signature.parameters or any(one.kind == one.VAR_KEYWORD for one in signature.parameters.values())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "name, options",
    [("silu", {}), ("gelu", {}), ("gelu", {"approximate": "tanh"}), ("leaky_relu", {"negative_slope": 0.1}),
     ("leaky_relu", {"negative_slope": 2.0}), ("rational", {"above": (1.0, 2.0), "below": (1.0,)})],
)  # fmt: skip
def test_activations_write_where_they_are_told_to(name: str, options: dict[str, Any], dtype: str) -> None:
    """The array given as ``out=`` is the answer, and holds the bits of a new one."""
    kernel = XPBackend(np).kernels[name]
    x = np.linspace(-3, 3, 7).astype(dtype)
    out = np.zeros_like(x)
    assert kernel(x, out=out, **options) is out
    assert out.tobytes() == kernel(x, **options).tobytes()


def test_a_file_is_read_when_a_value_is_needed(tmp_path: Path) -> None:
    """Names, shapes and dtypes come from the header; the bytes of one tensor when it is used."""
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": tc.arange(6.0).view(2, 3), "b": tc.tensor([1, 2]), "c": tc.zeros(0, 4)}, path)
    held = tc.lazy.load(path)
    assert {name: (tuple(one.shape), one.dtype) for name, one in held.items()} == {
        "a": ((2, 3), tc.float32), "b": ((2,), tc.int64), "c": ((0, 4), tc.float32),
    }  # fmt: skip
    assert not any(one.is_initialized() for one in held.values())
    assert (held["a"] * 2).sum().item() == 30.0
    assert [held[name].is_initialized() for name in "ab"] == [True, False]
    assert held["c"].tolist() == []


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(4, dtype=">i4"), np.array(3.5), np.ones((0, 2), np.float32)]
)
def test_an_npy_file_gives_its_array(array: np.ndarray, tmp_path: Path) -> None:
    """Column order, big-endian numbers, no dims and no elements included."""
    np.save(tmp_path / "x.npy", array)
    x = tc.lazy.load(tmp_path / "x.npy")
    assert tuple(x.shape) == array.shape
    assert x.tolist() == array.tolist()


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    """What was written or deleted after the header was read is no longer what was loaded."""
    path = tmp_path / "x.npy"
    np.save(path, np.arange(4.0))
    x, y = tc.lazy.load(path), tc.lazy.load(path)
    np.save(path, np.arange(5.0))
    with pytest.raises(LoadError, match="has changed"):
        x.tolist()
    path.unlink()
    with pytest.raises(LoadError, match="has changed"):
        y.tolist()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"nonsense" * 4])
def test_a_broken_file_is_refused_at_once(content: bytes, tmp_path: Path) -> None:
    """A header that is none."""
    for name in ("x.npy", "x.safetensors"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(LoadError):
            tc.lazy.load(tmp_path / name)
    with pytest.raises(LoadError, match="expected a file in"):
        tc.lazy.load(tmp_path / "x.pt")
    np.save(tmp_path / "o.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(LoadError, match="Python objects"):
        tc.lazy.load(tmp_path / "o.npy")


# Drawings


def test_a_drawing_shows_what_is_written_down() -> None:
    """The calls as a tree, without making any; a function is called for its result."""
    x = tc.lazy.tensor([1.0, 2.0])

    def program(x: tc.Tensor) -> tc.Tensor:
        return (x * 2).relu().sum()

    expected = (
        "result  float32 []\n"
        "└─ sum  float32 []\n"
        "   └─ relu  float32 [2]\n"
        "      └─ mul 2  float32 [2]\n"
        "         └─ not read yet  float32 [2]"
    )
    assert tc.lazy.draw(program(x)).text() == expected
    assert tc.lazy.draw(program, x).text() == expected
    assert tc.lazy.realisations() == []


def test_a_drawing_goes_to_a_file(tmp_path: Path) -> None:
    """By the ending of its name."""
    pytest.importorskip("matplotlib")
    x = tc.lazy.tensor([1.0, 2.0]) + 1
    tc.lazy.draw(x, path=tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(TypeError, match=r"arguments only with a function to call, got .*say path="):
        tc.lazy.draw(x, "x.png")
    tc.lazy.draw([x, x * 2], path=tmp_path / "x.dot")
    assert "digraph" in (tmp_path / "x.dot").read_text()


@pytest.mark.parametrize("what", [tc.ones(2), 3, lambda: 4])
def test_only_lazy_tensors_are_drawn(what: Any) -> None:
    """Anything else has nothing written down."""
    with pytest.raises(TypeError, match="draw: expected lazy tensors"):
        tc.lazy.draw(what)


def test_a_batch_that_fails_leaves_the_parameters() -> None:
    """A loop that catches the error of one batch goes on as it does eagerly, with the same bits."""
    ends = []
    for device in ("cpu", "lazy"):
        tc.manual_seed(0)
        model = tc.nn.Embedding(4, 3).to(device)
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        failed = []
        for i in range(12):
            index = tc.tensor([0, 9 if i % 5 == 4 else i % 4], device=device) + 0
            try:
                loss = model(index).square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            except IndexError:
                failed.append(i)
        ends.append((failed, model.weight.tolist()))
    assert ends[0] == ends[1]
    assert ends[0][0] == [4, 9]


def test_replays_after_an_error_start_from_what_there_was() -> None:
    """A plan writes over nothing before the last call that values may stop."""
    table = tc.ones(3, 2, device="lazy")
    for i in range(6):
        table.add_(1)
        rows = table[tc.lazy.tensor([i % 4])]
        if i == 3:
            with pytest.raises(IndexError, match="written down"):
                rows.sum().item()
        else:
            assert rows.sum().item() == 2.0 * (i + 2)
    assert table.tolist() == [[7.0, 7.0]] * 3


def test_a_sparse_tensor_is_there_when_its_parts_are() -> None:
    """Made lazily, it has no values until one of them is read."""
    with tc.lazy():
        x = tc.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert not x.is_initialized()
    assert x.to_dense().tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert x.is_initialized()


def test_nothing_written_down_is_lost_to_another_thread() -> None:
    """While one thread looks through what is pending, another one goes on writing down, and reads every value."""
    device, stop = tc.device("lazy"), threading.Event()

    def look() -> None:
        while not stop.is_set():
            relieve(device)

    other = threading.Thread(target=look)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        for i in range(20):
            made = [tc.full((2,), float(i), device="lazy") + j for j in range(30)]
            del made[::2]
            assert [one.tolist()[0] for one in made] == [i + j for j in range(1, 30, 2)]
    finally:
        stop.set()
        other.join()
        sys.setswitchinterval(before)
