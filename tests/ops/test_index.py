"""Reading and writing ``x[...]``, and the ops that gather and scatter."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorcore as tc


def grid(*shape: int) -> Any:
    """A tensor that counts up from 0."""
    return tc.arange(float(np.prod(shape)), dtype=tc.float64).reshape(shape)


def counting(lib: Any, shape: Any) -> Any:
    """A tensor of one library that counts up from 0; not by way of NumPy, whose empty arrays have strides of 0."""
    return lib.arange(float(np.prod(shape)), dtype=lib.float64).reshape(shape).clone()


@st.composite
def expressions(draw: Any) -> tuple[list[int], Any]:
    """A shape and an index for it, in plain Python and NumPy values; sometimes a wrong one."""
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    small = st.integers(-5, 5)
    one = st.one_of(
        small,
        st.builds(slice, st.none() | small, st.none() | small, st.none() | st.integers(1, 3)),
        st.none(),
        st.just(Ellipsis),
        st.booleans(),
        st.lists(st.integers(-3, 3), min_size=1, max_size=3),
        st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=2),
        st.integers(0, 2**8).map(lambda bits: ("mask", bits)),
    )
    return shape, tuple(draw(st.lists(one, min_size=1, max_size=4).filter(lambda items: items.count(Ellipsis) < 2)))


def key_of(lib: Any, shape: list[int], items: Any) -> Any:
    """The index with tensors of one library; a mask takes the size of the dim where it stands."""
    key, at = [], 0
    for one in items:
        if isinstance(one, tuple):
            size = shape[at] if at < len(shape) else 2
            key.append(lib.tensor([bool(one[1] >> i & 1) for i in range(size)], dtype=lib.bool))
        elif isinstance(one, list):
            key.append(lib.tensor(one))
        else:
            key.append(one)
        at += one is not None and one is not Ellipsis and not isinstance(one, bool)
    return tuple(key)


@pytest.mark.oracle
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expression=expressions())
def test_any_index_reads_what_pytorch_reads(torch: ModuleType, expression: Any) -> None:
    """Values, shape, strides, view or copy, gradient, and the type of the error."""
    shape, items = expression
    theirs, ours = counting(torch, shape).requires_grad_(), counting(tc, shape).requires_grad_()
    try:
        expected = theirs.clone()[key_of(torch, shape, items)]
    except Exception as error:
        with pytest.raises(Exception) as found:
            ours.clone()[key_of(tc, shape, items)]
        assert isinstance(found.value, type(error)), (error, found.value)
        return
    found = ours.clone()[key_of(tc, shape, items)]
    assert tuple(found.shape) == tuple(expected.shape)
    assert found._is_view() == expected._is_view()
    if expected._is_view():
        assert tuple(found.stride()) == expected.stride()
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy())


@pytest.mark.oracle
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expression=expressions(), value=st.sampled_from(["number", "scalar", "full", "row"]))
def test_any_index_writes_what_pytorch_writes(torch: ModuleType, expression: Any, value: str) -> None:
    """Values and the gradients of the tensor and of the value; distinct places only, where order could matter."""
    shape, items = expression

    def run(lib: Any) -> Any:
        x = counting(lib, shape).requires_grad_()
        y = x * 1
        key = key_of(lib, shape, items)
        wanted = y[key].shape
        size = {"number": None, "scalar": (), "full": wanted, "row": wanted[-1:]}[value]
        v = None if size is None else lib.full(tuple(size), 7.0, dtype=lib.float64).requires_grad_()
        y[key] = 7.0 if v is None else v * 1
        (y * y).sum().backward()
        spread = None if v is None or v.grad is None else v.grad.sum().item()
        return y.detach().numpy(), x.grad.numpy(), spread

    try:
        expected = run(torch)
    except Exception as error:
        with pytest.raises(Exception) as found:
            run(tc)
        assert isinstance(found.value, type(error)), (error, found.value)
        return
    found = run(tc)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[2] == expected[2]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (5, IndexError), (-3, IndexError), ((0, 0, 0), IndexError), (slice(None, None, -1), ValueError), (1.0, IndexError),
        ("a", TypeError), ([5], IndexError), ([1.0], IndexError), (np.array([1], np.int8), IndexError),
        ([True], IndexError), (([0, 1], [0, 1, 2]), IndexError), (slice(0, 1.5), TypeError), (slice(None, None, 0), ValueError),
    ],
)  # fmt: skip
def test_a_wrong_index_raises_what_pytorch_raises(key: Any, error: type[Exception]) -> None:
    """Out of range, too many, negative steps, dtypes that are no index, masks that do not fit."""
    with pytest.raises(error):
        grid(2, 3)[key]


def test_a_negative_step_is_refused_by_name() -> None:
    """The message is PyTorch's."""
    with pytest.raises(ValueError, match="step must be greater than zero"):
        grid(3)[::-1]


def test_ints_do_not_move_a_tensor_index_to_the_front() -> None:
    """NumPy counts the int as an index and transposes; PyTorch does not."""
    assert tuple(grid(2, 3, 4)[0, :, tc.tensor([0, 1])].shape) == (3, 2)
    assert tuple(grid(2, 3, 4)[tc.tensor([0, 1]), :, tc.tensor([0, 1])].shape) == (2, 3)


def test_a_0d_integer_tensor_is_an_int() -> None:
    """It selects, as a view."""
    x = grid(2, 3).clone()
    assert x[tc.tensor(1)]._base is x
    assert x[np.int64(1)].tolist() == [3.0, 4.0, 5.0]


LISTS = [
    [[0], [1]],
    [[-1]],
    [[0, 1], 0],
    [[[0, 1]]],
    [[True, False]],
    [[]],
    [range(2)],
    [(0, 1)],
    [[0], [1], [2]],
    [[0, 1], slice(1)],
]


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning")
@pytest.mark.parametrize("key", LISTS, ids=str)
def test_a_list_of_lists_is_taken_as_a_tuple(key: Any, torch: ModuleType) -> None:
    """Read and written, an index for each dim, with a warning, as in PyTorch 2.13; a list of numbers is one index."""
    x, theirs = counting(tc, (2, 3, 4)), counting(torch, (2, 3, 4))
    with pytest.warns(UserWarning, match="taken as a tuple"):
        assert x[key].tolist() == theirs[key].tolist()
    with pytest.warns(UserWarning, match="taken as a tuple"):
        x[key] = 7.0
    theirs[key] = 7.0
    assert x.tolist() == theirs.tolist()
    assert x[[0] * 40].shape == (40, 3, 4)


def test_a_byte_tensor_is_a_mask() -> None:
    """uint8 counts as bool."""
    assert grid(3)[tc.tensor([1, 0, 1], dtype=tc.uint8)].tolist() == [0.0, 2.0]


def test_int32_indices_count() -> None:
    """Any of int32 and int64, negative from the end."""
    assert grid(3)[tc.tensor([-1, 0], dtype=tc.int32)].tolist() == [2.0, 0.0]


@pytest.mark.parametrize("value", [[1, 2, 3], np.ones(3), "a", None])
def test_only_numbers_and_tensors_are_assigned(value: Any) -> None:
    """Lists and arrays are refused with TypeError, as in PyTorch, and change nothing."""
    x = grid(2, 3)
    with pytest.raises(TypeError):
        x[0] = value
    assert x.tolist() == grid(2, 3).tolist()


def test_a_number_too_large_for_the_dtype_is_refused() -> None:
    """300 does not fit into int8, and 1j into no real dtype."""
    x = tc.zeros(2, dtype=tc.int8)
    with pytest.raises(RuntimeError, match="without overflow"):
        x[0] = 300
    with pytest.raises(RuntimeError, match="without overflow"):
        x[0] = 1j
    x[0] = 1.9
    assert x.tolist() == [1, 0]


def test_basic_assignment_casts_and_drops_leading_ones() -> None:
    """A float64 value of shape (1, 1, 3) fits into a float32 row."""
    x = tc.zeros(2, 3)
    x[1] = grid(1, 1, 3)
    assert x.tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]]


def test_assignment_at_a_tensor_index_does_not_cast() -> None:
    """index_put needs one dtype; a mask with a single value is the exception."""
    x = tc.zeros(2, 3)
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[tc.tensor([0])] = grid(3)
    x[x == 0] = tc.tensor(2, dtype=tc.int64)
    assert x.tolist() == [[2.0] * 3] * 2


def test_an_index_outside_changes_nothing() -> None:
    """Of two indices the second is wrong; the first is not written either."""
    x = grid(3)
    with pytest.raises(IndexError):
        x[tc.tensor([0, 3])] = 9.0
    with pytest.raises(RuntimeError):
        x.scatter_(0, tc.tensor([0, 3]), 9.0)
    with pytest.raises(RuntimeError):
        x.index_add_(0, tc.tensor([0, -1]), tc.ones(2, dtype=tc.float64))
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert x._version == 0


def test_overlapping_parts_are_assigned_from_a_copy() -> None:
    """``x[1:] = x[:-1]`` is refused, as in PyTorch, and changes nothing; with a clone it shifts."""
    x = grid(4)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:] = x[:-1]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0]


def test_index_put_is_differentiable_in_tensor_and_value() -> None:
    """Written places belong to the value, the others to the tensor."""
    x = grid(3).requires_grad_()
    v = tc.tensor(5.0, dtype=tc.float64, requires_grad=True)
    y = x * 2
    y[tc.tensor([0, 2])] = v
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    assert v.grad.item() == 2.0


def test_equal_indices_all_accumulate() -> None:
    """Also in rows, and in half precision."""
    for dtype in (tc.float64, tc.float16, tc.bfloat16, tc.int64):
        x = tc.zeros(3, 2, dtype=dtype)
        x.index_put_((tc.tensor([0, 2, 0, -3]),), tc.ones(4, 2, dtype=dtype), accumulate=True)
        assert x.tolist() == [[3.0, 3.0], [0.0, 0.0], [1.0, 1.0]]
        x = tc.zeros(3, dtype=dtype).scatter_add(0, tc.tensor([0, 2, 0]), tc.ones(3, dtype=dtype))
        assert x.tolist() == [2.0, 0.0, 1.0]


def test_the_gradient_of_a_repeated_index_adds_up() -> None:
    """Row 0 is read three times."""
    x = grid(2, 2).requires_grad_()
    x[tc.tensor([0, 1, 0, 0])].sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]


def test_an_index_written_after_the_call_raises_at_backward() -> None:
    """The node keeps the index itself, and notices."""
    x = grid(3).requires_grad_()
    at = tc.tensor([0, 1])
    y = x[at]
    at.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


IN_PLACE = {
    "masked_fill": lambda lib, x, w: (lib.tensor([[True, False], [False, True]]), w.detach()),
    "masked_scatter": lambda lib, x, w: (
        lib.tensor([[True, False], [False, True]]),
        w * lib.ones(4, dtype=lib.float64),
    ),
    "index_fill": lambda lib, x, w: (0, lib.tensor([0]), 3.0),
    "index_add": lambda lib, x, w: (0, lib.tensor([0, 0]), w * lib.ones(2, 2, dtype=lib.float64)),
    "index_copy": lambda lib, x, w: (0, lib.tensor([1]), w * lib.ones(1, 2, dtype=lib.float64)),
    "scatter": lambda lib, x, w: (1, lib.tensor([[0], [1]]), w * lib.ones(2, 1, dtype=lib.float64)),
    "scatter_add": lambda lib, x, w: (1, lib.tensor([[0], [1]]), w * lib.ones(2, 1, dtype=lib.float64)),
    "scatter_reduce": lambda lib, x, w: (
        1,
        lib.tensor([[0, 0], [1, 1]]),
        w * lib.ones(2, 2, dtype=lib.float64),
        "prod",
    ),
    "put": lambda lib, x, w: (lib.tensor([3, 0]), w * lib.ones(2, dtype=lib.float64)),
    "index_put": lambda lib, x, w: ((lib.tensor([1]),), w * lib.ones(2, dtype=lib.float64)),
    "tril": lambda lib, x, w: (),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_in_place_forms_equal_pytorchs(torch: ModuleType, name: str) -> None:
    """On a tensor and through a transposed view of one: values, gradients of both, and the version."""

    def run(lib: Any, through_view: bool) -> Any:
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=lib.float64, requires_grad=True)
        w = lib.tensor(1.5, dtype=lib.float64, requires_grad=True)
        y = x * 2
        target = y.t() if through_view else y
        found = getattr(target, f"{name}_")(*IN_PLACE[name](lib, target, w))
        assert found is target
        (y * y).sum().backward()
        return y.detach().numpy(), x.grad.numpy(), None if w.grad is None else w.grad.item(), y._version

    for through_view in (False, True):
        found, expected = run(tc, through_view), run(torch, through_view)
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1])
        assert found[2:] == expected[2:]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: x.gather(0, lib.tensor([[9, 0]])), lambda lib, x: x.gather(0, lib.tensor([[-1, 0]])),
        lambda lib, x: x.gather(0, lib.tensor([0])), lambda lib, x: x.gather(0, lib.tensor([[0.0]])),
        lambda lib, x: x.gather(5, lib.tensor([[0]])), lambda lib, x: x.index_select(0, lib.tensor([9])),
        lambda lib, x: x.index_select(0, lib.tensor([[0]])), lambda lib, x: x.take(lib.tensor([9])),
        lambda lib, x: x.take(lib.tensor([-9])), lambda lib, x: x.index_add(0, lib.tensor([9]), x[:1]),
        lambda lib, x: x.index_add(0, lib.tensor([0]), x), lambda lib, x: x.index_copy(0, lib.tensor([9]), x[:1]),
        lambda lib, x: x.index_fill(0, lib.tensor([9]), 1), lambda lib, x: x.index_fill(0, lib.tensor([0], dtype=lib.int32), 1),
        lambda lib, x: x.index_fill(0, lib.tensor([-1]), 1),
        lambda lib, x: x.scatter(0, lib.tensor([[9]]), 1.0), lambda lib, x: x.scatter(0, lib.tensor([[0]]), x.float()),
        lambda lib, x: x.scatter(0, lib.tensor([[0, 0, 0]]), 1.0), lambda lib, x: x.scatter_reduce(0, lib.tensor([[0]]), x, "no"),
        lambda lib, x: x.masked_select(lib.tensor([1, 0])), lambda lib, x: x.masked_fill(x > 0, lib.ones(2)),
        lambda lib, x: x.masked_scatter(x > -1, lib.ones(1, dtype=lib.float64)), lambda lib, x: lib.cat([]),
        lambda lib, x: lib.cat([x, x[0]]), lambda lib, x: lib.cat([x, x], 2), lambda lib, x: lib.stack([x, x[:1]]),
        lambda lib, x: x.split(0), lambda lib, x: x.split([1, 3]), lambda lib, x: x.chunk(0), lambda lib, x: x.narrow(0, 1, 2),
        lambda lib, x: x.unfold(0, 3, 1), lambda lib, x: x.unflatten(1, (3, 1)), lambda lib, x: x.diagonal(0, 1, 1),
        lambda lib, x: x.flatten(1, 0), lambda lib, x: x.movedim((0, 0), (0, 1)), lambda lib, x: x.repeat(2),
        lambda lib, x: x.repeat_interleave(-1), lambda lib, x: x.tile(-1), lambda lib, x: x.roll(1, (0, 1)),
        lambda lib, x: x.expand(3, 2), lambda lib, x: lib.diag(x[None]), lambda lib, x: lib.tril(x[0]),
        lambda lib, x: lib.meshgrid(x, x), lambda lib, x: lib.bincount(lib.tensor([-1])),
        lambda lib, x: lib.bincount(lib.tensor([2**63 - 1])), lambda lib, x: lib.bincount(lib.tensor([1, 2**63 - 1]), minlength=3),
        lambda lib, x: lib.bincount(lib.tensor([2**63 - 1]), lib.tensor([1.0])),
        lambda lib, x: lib.cat([lib.ones(1, dtype=lib.uint8).expand(2**62)] * 2),
        lambda lib, x: lib.eye(-1), lambda lib, x: lib.linspace(0, 1, -1), lambda lib, x: x.take_along_dim(lib.tensor([0]), 0),
    ],
)  # fmt: skip
def test_a_wrong_call_raises_what_pytorch_raises(torch: ModuleType, call: Any) -> None:
    """The type of the error, or the same values where PyTorch accepts the call."""
    theirs, ours = (
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double(),
        tc.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tc.float64),
    )
    try:
        expected = call(torch, theirs)
    except Exception as error:
        with pytest.raises(Exception) as found:
            call(tc, ours)
        assert isinstance(found.value, type(error)), (error, found.value)
        return
    np.testing.assert_array_equal(call(tc, ours).numpy(), expected.numpy())


@pytest.mark.oracle
def test_filled_tensors_equal_pytorchs(torch: ModuleType) -> None:
    """Values and dtypes of what rules make."""
    for call in [
        lambda lib: lib.linspace(-1, 3, 7), lambda lib: lib.linspace(0, 10, 4, dtype=lib.int64), lambda lib: lib.linspace(1, 2, 1),
        lambda lib: lib.linspace(0, 1, 0), lambda lib: lib.logspace(0, 2, 5), lambda lib: lib.eye(3), lambda lib: lib.eye(2, 4),
        lambda lib: lib.tril_indices(3, 4, 1), lambda lib: lib.triu_indices(3, 4, -1), lambda lib: lib.tril_indices(0, 2),
        lambda lib: lib.cat([lib.zeros(0), lib.ones(2, 2)]), lambda lib: lib.cat([lib.ones(1).long(), lib.ones(1)]),
        lambda lib: lib.tensor([[0, 3], [4, 0]]).nonzero(), lambda lib: lib.tensor(3).nonzero(),
        lambda lib: lib.repeat_interleave(lib.tensor([2, 0, 1])),
    ]:  # fmt: skip
        found, expected = call(tc), call(torch)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-7)
        assert str(found.dtype) == str(expected.dtype)
        assert tuple(found.stride()) == expected.stride()


def test_second_derivatives_of_a_gather() -> None:
    """The gradient of a gradient through gather and its scatter."""
    x = grid(3).requires_grad_()
    (first,) = tc.autograd.grad((x.gather(0, tc.tensor([0, 0, 2])) ** 3).sum(), x, create_graph=True)
    (second,) = tc.autograd.grad(first.sum(), x)
    assert second.tolist() == [0.0, 0.0, 12.0]


def test_index_reduce_combines_rows() -> None:
    """Two rows meet row 0; the gradient of a maximum goes to the one that won."""
    source = tc.tensor([[5.0, 1.0], [2.0, 7.0]], requires_grad=True)
    found = tc.tensor([[3.0, 3.0], [0.0, 0.0]]).index_reduce(0, tc.tensor([0, 0]), source, "amax")
    assert found.tolist() == [[5.0, 7.0], [0.0, 0.0]]
    found.sum().backward()
    assert source.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_scatter_with_a_reduction_adds_or_multiplies() -> None:
    """``reduce="add"`` and ``"multiply"``; a number goes to every place."""
    x = tc.ones(3) * 2
    assert x.scatter(0, tc.tensor([0, 0]), 5.0, reduce="add").tolist() == [12.0, 2.0, 2.0]
    assert x.scatter(0, tc.tensor([0, 0]), 5.0, reduce="multiply").tolist() == [50.0, 2.0, 2.0]


@pytest.mark.parametrize("sizes", [(0,), (0, 2, 2), (2, 0), (2, 0, 1)])
@pytest.mark.parametrize("where", ["cpu", "lazy:cpu"])
def test_scatter_and_gather_at_no_index_of_any_rank(sizes: tuple[int, ...], where: str) -> None:
    """An index without elements may be of any rank, as in PyTorch; gradients go to the input as they come."""
    nowhere = tc.empty(*sizes, dtype=tc.int64, device=where)
    x = grid(2, 3).to(where).requires_grad_()
    source = tc.ones(2, 3, dtype=tc.float64, device=where, requires_grad=True)
    for made in (
        x.scatter(0, nowhere, 7.0),
        x.scatter(1, nowhere, source),
        x.scatter_add(1, nowhere, source),
        x.scatter_reduce(0, nowhere, source, "amax", include_self=False),
        x.detach().clone().scatter_add_(0, nowhere, source.detach()),
    ):
        assert (made.tolist(), x.gather(1, nowhere).shape) == (x.tolist(), sizes)
        if made.requires_grad:
            x.grad = None
            made.sum().backward()
            assert x.grad.tolist() == [[1.0] * 3] * 2
            assert source.grad is None or not source.grad.any()


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_a_number_in_a_tensor_of_short_integers_is_an_index(dtype: str) -> None:
    """A 0-d tensor of any integer dtype stands for its int; with dims, only those that PyTorch takes do."""
    x, place = tc.arange(6).reshape(2, 3), tc.tensor(1, dtype=getattr(tc, dtype))
    assert (x[place, 1:].tolist(), x[place, [0, 2]].tolist()) == ([4, 5], [3, 5])
    with pytest.raises(IndexError):
        x[place.reshape(1)]


def test_a_mask_takes_one_value_of_another_dtype() -> None:
    """One value, with dims or none, is cast where a mask says; more of them, and complex ones into real numbers, are refused."""
    x, mask = tc.zeros(3, dtype=tc.int8), tc.tensor([True, False, True])
    x[mask] = tc.tensor([2.75])
    assert x.tolist() == [2, 0, 2]
    for value in tc.tensor([1.0, 2.0]), tc.tensor(2j):
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            x[mask] = value
