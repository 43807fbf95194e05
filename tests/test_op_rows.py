"""The rows of the table of ops: each op's first sample, and how it grows to a hundred thousand elements."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore
from asv_benchmarks.benchmarks import ops


@pytest.mark.parametrize("name", [*ops.PUBLIC, *ops.WRITING])
def test_every_op_has_a_benchmark(name) -> None:
    """No op that programs call can be entered into the registry without a call that times it, nor a form of it that writes."""
    assert ops.ready(tensorcore, "cpu", name, "small")() is not NotImplemented


def test_an_op_without_a_benchmark_is_found(monkeypatch) -> None:
    """An op that is entered without samples has nothing that times it, and the error says what to give it."""
    monkeypatch.setattr(ops.OPS["relu"], "samples", None)
    with pytest.raises(LookupError, match="relu: expected an op with samples, got one without"):
        test_every_op_has_a_benchmark("relu")


def test_a_larger_sample_keeps_what_fits() -> None:
    """Sizes that were equal grow alike."""
    (a, b), _ = ops.sampled("mm", lambda size: size * 10)
    assert a.shape[1] == b.shape[0] >= 20
    (x, _), _ = ops.sampled("add", lambda size: size * 50)
    assert x.shape == (150, 200)


def sample_of(monkeypatch, *shapes: tuple[int, ...]) -> None:
    """Let ``add`` have one sample: arrays of these shapes."""
    monkeypatch.setattr(ops.OPS["add"], "samples", lambda array: iter([((*(array(*shape) for shape in shapes),), {})]))


@pytest.mark.parametrize(
    ("size", "shape"), [("small", (4, 5)), ("large", (283, 354)), ("thin", (20000, 5)), ("long", (4, 25000))]
)
def test_each_size_grows_its_own_dims(monkeypatch, size, shape) -> None:
    """Thin tensors are many short rows, long ones few rows that are long, and large ones both."""
    sample_of(monkeypatch, (4, 5), (4, 1))
    assert ops.ready(tensorcore, "cpu", "add", size)().shape == shape


def test_sizes_of_one_and_of_other_dims_stay(monkeypatch) -> None:
    """What broadcasts goes on broadcasting, and a dim as large as the one that grows grows with it."""
    sample_of(monkeypatch, (4, 1, 3, 4), (3, 4))
    assert ops.ready(tensorcore, "cpu", "add", "thin")().shape == (183, 1, 3, 183)


@pytest.mark.parametrize("shape", [(3,), (3, 3), (1, 3)])
@pytest.mark.parametrize("size", ["thin", "long"])
def test_what_cannot_be_thin_says_so(monkeypatch, shape, size) -> None:
    """Rows, squares and what has one size alone would be large ones once more, and the reason names the shape."""
    sample_of(monkeypatch, shape)
    with pytest.raises(NotImplementedError, match=r"add: its sample of shape \(.*3.*\) has no size that could grow"):
        ops.ready(tensorcore, "cpu", "add", size)


def test_results_too_large_to_be_made_are_left_out() -> None:
    """All pairs of many rows are counted before anything is computed."""
    with pytest.raises(NotImplementedError, match="pdist: its result would have 555,527,778 elements"):
        ops.ready(tensorcore, "cpu", "pdist", "thin")


def test_a_sample_of_one_size_says_why() -> None:
    """Where numbers of the sample say how large its arrays are, the reason is the op's own error."""
    with pytest.raises(NotImplementedError, match=r"view: its sample has one size only: view: expected .* elements"):
        ops.ready(tensorcore, "cpu", "view", "thin")


def test_each_op_has_a_row_of_each_size() -> None:
    """The table asks for all four of them, and of ops that programs call for every form."""
    names = {row.name for row in ops.ROWS}
    assert names >= {f"op relu_ {size}" for size in ("small", "large", "thin", "long")}
    assert names >= {f"op relu {form}" for form in ops.FORMS if form != "others"} | {"op pad 1 others"}
    assert len(names) == len(ops.ROWS)
    assert sum(name.rpartition(" ")[2] in ops.SIZES for name in names) == 4 * len({*ops.PUBLIC, *ops.WRITING})
    assert np.prod(ops.ready(tensorcore, "cpu", "relu_", "thin")().shape) == pytest.approx(ops.LARGE, rel=0.01)


def test_forms_are_what_they_say() -> None:
    """A dtype is that of what was single precision; ``out`` is written; another sample is another call."""
    assert ops.ready(tensorcore, "cpu", "add", "int64")().dtype is tensorcore.int64
    call = ops.ready(tensorcore, "cpu", "add", "out")
    assert call() is call()
    args, kwargs = ops.sampled("sum", sample=1)
    expected = tensorcore.tensor(args[0].astype(np.float32)).sum(*args[1:], **kwargs)
    assert ops.ready(tensorcore, "cpu", "sum", "others", 1)().shape == expected.shape


def test_what_a_library_does_not_take_is_left_out() -> None:
    """A form that is refused has no row, with the op's own reason."""
    with pytest.raises(NotImplementedError, match=r"floor: tensorcore does not take it: .*complex64"):
        ops.ready(tensorcore, "cpu", "floor", "complex64")
    with pytest.raises(NotImplementedError, match="bitwise_and: its sample has no floats"):
        ops.ready(tensorcore, "cpu", "bitwise_and", "complex64")
