"""In-place forms that write where the tensor lies: one kernel, no new array, and the values of the plain form."""

from __future__ import annotations

import math

import pytest

import tensorcore as tc
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError

CALLS = {
    "frac_": ("frac", ()),
    "round_": ("round", ()),
    "sgn_": ("sign", ()),
    "deg2rad_": ("mul", ()),
    "nan_to_num_": ("nan_to_num", ()),
    "addcmul_": ("addcmul", (2.0, 3.0)),
    "lerp_": ("lerp", (2.0, 0.25)),
    "tril_": ("keep_triangle", ()),
    "lt_": ("compare_over", (1.0,)),
    "eq_": ("compare_over", (0.5,)),
    "logical_not_": ("compare_over", ()),
    "logical_and_": ("compare_over", (1.0,)),
    "xlogy_": ("xlogy", (2.0,)),
    "igamma_": ("igamma", (2.0,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_usual_call_is_one_kernel(name) -> None:
    """Operands of the tensor's own dtype go to the kernel as they are, and it writes over the tensor."""
    kernel, values = CALLS[name]
    traced = tc.wrappers.trace("cpu")
    x = tc.tensor([[1.5, -2.25], [0.5, 3.0]], device=traced)
    if name == "igamma_":
        x = x.abs()
    others = [tc.full((2, 2), value, device=traced) for value in values]
    expected = getattr(x, name.removesuffix("_"))(*others)
    traced.calls.clear()
    assert getattr(x, name)(*others) is x
    assert [call.kernel for call in traced.calls] == [kernel]
    assert x.tolist() == expected.tolist()


def test_a_number_in_the_last_place_and_a_factor_are_one_kernel() -> None:
    """A weight that is a number, and what is added times a number, need neither a tensor nor a product of their own."""
    traced = tc.wrappers.trace("cpu")
    x, y = tc.tensor([1.0, 2.0], device=traced), tc.tensor([3.0, 5.0], device=traced)
    traced.calls.clear()
    assert x.lerp_(y, 0.5) is x
    assert x.add_(y, alpha=2) is x
    assert x.sub_(y, alpha=0.5) is x
    assert x.tolist() == [6.5, 11.0]
    assert [call.kernel for call in traced.calls][:3] == ["lerp", "add_scaled", "add_scaled"]
    traced.calls.clear()
    assert tc.sub(tc.add(x, y, alpha=2), y, alpha=2).tolist() == [6.5, 11.0]
    assert [call.kernel for call in traced.calls][:2] == ["add_scaled", "add_scaled"]


def test_numbers_between_others_are_one_kernel_too() -> None:
    """Both ends of a clamp may be numbers; the end of a lerp may not."""
    traced = tc.wrappers.trace("cpu")
    x = tc.tensor([-3.0, 0.5, 3.0], device=traced)
    traced.calls.clear()
    assert x.clamp_(-1.0, 1) is x
    assert [call.kernel for call in traced.calls] == ["clamp"]
    assert x.tolist() == [-1.0, 0.5, 1.0]
    with pytest.raises(ArgumentTypeError, match="lerp"):
        x.lerp_(2.0, 0.5)


def test_other_forms_are_as_few_kernels_as_there_are() -> None:
    """Scans are copied over the tensor, a number becomes one of the device's, powers of two a factor; views are shown anew."""
    traced = tc.wrappers.trace("cpu")
    calls = {
        "cumsum_": ((0,), ["cumsum", "copy"]),
        "ldexp_": ((tc.ones(2, 2, device=traced),), ["exp2", "mul"]),
        "renorm_": ((2, 0, 1.0), ["renorm"]),
        "addmm_": ((tc.ones(2, 2, device=traced), tc.ones(2, 2, device=traced)), ["addmm", "copy"]),
        "addr_": ((tc.ones(2, device=traced), tc.ones(2, device=traced)), ["addr"]),
        "masked_fill_": ((tc.ones(2, 2, dtype=tc.bool, device=traced), 2.0), ["full", "masked_fill"]),
        "index_put_": (((tc.zeros(1, dtype=tc.int64, device=traced),), tc.ones(1, 2, device=traced)), ["index_put"]),
        "transpose_": ((0, 1), ["permute"]),
    }
    for name, (arguments, kernels) in calls.items():
        x = tc.tensor([[1.5, -2.25], [0.5, 3.0]], device=traced)
        traced.calls.clear()
        assert getattr(x, name)(*arguments) is x
        assert [call.kernel for call in traced.calls] == kernels


def test_comparisons_in_place_give_numbers_of_the_tensor(device) -> None:
    """1 and 0 in its own dtype, of NaN and beside a number, a row and the tensor itself; bools stay bools, as in PyTorch."""
    for dtype in (tc.float32, tc.int64, tc.float16):
        x = tc.tensor([[1, 2, 3], [3, 2, 1]], dtype=dtype, device=device)
        assert x.clone().gt_(2).tolist() == [[0, 0, 1], [1, 0, 0]]
        assert x.clone().le_(x[0]).tolist() == [[1, 1, 1], [0, 1, 1]]
        assert x.eq_(x).tolist() == [[1, 1, 1], [1, 1, 1]]
        assert x.dtype is dtype
    x = tc.tensor([math.nan, 0.0, -0.0, 5.0], device=device)
    assert x.clone().ne_(x).tolist() == [1, 0, 0, 0]
    assert x.logical_not_().tolist() == [0, 1, 1, 0]
    assert x._version == 1
    truths = tc.tensor([True, False], device=device)
    assert truths.logical_xor_(tc.tensor([True, True], device=device)).tolist() == [False, True]
    assert truths.logical_not_().tolist() == [True, False]


def test_a_factor_on_the_tape_and_beside_others(device) -> None:
    """The gradient of what is added is the factor; dtypes that differ, numbers and integers give what two ops give."""
    x = tc.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = tc.tensor([3.0, 5.0], device=device, requires_grad=True)
    made = tc.add(x, y, alpha=0.5)
    assert made.tolist() == [2.5, 4.5]
    assert made.grad_fn.name() == "AddBackward0"
    lesser = x.sub(y, alpha=2)
    assert lesser.tolist() == [-5.0, -8.0]
    assert lesser.grad_fn.name() == "SubBackward0"
    (made + lesser).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert y.grad.tolist() == [-1.5, -1.5]
    whole = tc.tensor([1, 2], device=device)
    assert whole.add_(whole.clone(), alpha=3).tolist() == [4, 8]
    assert tc.add(y.detach(), whole, alpha=2).tolist() == [11.0, 21.0]
    assert y.detach().clone().add_(1, alpha=2).tolist() == [5.0, 7.0]
    with pytest.raises(RuntimeError, match="alpha"):
        whole.add_(whole.clone(), alpha=0.5)
    with pytest.raises(RuntimeError, match="broadcast"):
        y.detach().add_(tc.ones(3, device=device), alpha=2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("xlogy_", [2 / 4, 3 / 8]), ("lerp_", [3.0, 4.0]), ("ldexp_", [32 * math.log(2), 768 * math.log(2)])],
)
def test_what_formulas_keep_is_what_was_there_before(name, expected) -> None:
    """Where another operand requires a gradient, the formula has the tensor's values from before the write, as PyTorch's has."""
    x, y = tc.tensor([2.0, 3.0]), tc.tensor([4.0, 8.0], requires_grad=True)
    getattr(x, name)(*((tc.tensor([5.0, 7.0]),) if name == "lerp_" else ()), y)
    x.sum().backward()
    tc.testing.assert_close(y.grad, tc.tensor(expected))


def test_factors_and_diagonals_reach_the_kernel(device) -> None:
    """By name and by place, on a device without the kernels too."""
    ones, row = tc.ones(2, 3, device=device), tc.tensor([1.0, 2.0, 3.0], device=device)
    assert ones.clone().addcmul_(ones, row, value=2).tolist() == [[3, 5, 7], [3, 5, 7]]
    assert ones.clone().addcdiv_(row.expand(2, 3), ones, value=-1.0).tolist() == [[0, -1, -2], [0, -1, -2]]
    assert tc.tensor([math.nan, math.inf], device=device).nan_to_num_(nan=7.0, posinf=9).tolist() == [7, 9]
    assert ones.clone().tril_().tolist() == [[1, 0, 0], [1, 1, 0]]
    assert ones.clone().tril_(diagonal=-1).tolist() == [[0, 0, 0], [1, 0, 0]]
    assert ones.clone().triu_(1).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert ones.clone().T.triu_().tolist() == [[1, 1], [0, 1], [0, 0]]
    assert tc.tensor([1.26, -0.04], device=device).round_(decimals=1).tolist() == tc.tensor([1.3, -0.0]).tolist()


def test_what_is_wrong_is_said_as_by_the_complete_call() -> None:
    """Names, numbers and numbers of arguments that no usual call has; the tensor stays as it was."""
    x = tc.ones(2, 2)
    with pytest.raises(TypeError, match="value"):
        x.frac_(value=2)
    with pytest.raises(TypeError):
        x.deg2rad_(2.0)
    with pytest.raises(ArgumentTypeError, match="diagonal"):
        tc.ones(2, 2).tril_(1.5)
    with pytest.raises(ArgumentTypeError, match="lerp"):
        x.lerp_(2.0, 0.5)
    assert x.tolist() == [[1, 1], [1, 1]]


def test_a_write_to_a_view_and_the_tape() -> None:
    """The version counts on, a view writes into its base, and a recorded tensor gets the gradient of the plain form."""
    base = tc.full((4, 4), 1.5)
    base[1:3].frac_()
    assert base[:, 0].tolist() == [1.5, 0.5, 0.5, 1.5]
    assert base._version == 1
    leaf = tc.ones(3, 3, requires_grad=True)
    (leaf * 2).tril_().sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[2, 0, 0], [2, 2, 0], [2, 2, 2]]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("name", ["floor_", "ceil_", "trunc_", "round_", "nan_to_num_", "conj_physical_"])
def test_what_leaves_integers_as_they_are_notes_the_write(device, name, dtype) -> None:
    """The tensor itself comes back with its elements, its version counts one write more; also of a view, whose base sees it."""
    x = tc.tensor([[3, 0, 7], [1, 2, 5]], dtype=getattr(tc, dtype), device=device)
    view = x[:, ::2]
    for one in (x, view, x.t()):
        version, held = x._version, one.tolist()
        assert getattr(one, name)() is one
        assert (x._version, one.tolist(), one.dtype) == (version + 1, held, x.dtype)
    with pytest.raises(UsageError):
        getattr(x[:1].expand(4, 3), name)()


def test_strides_given_in_place(device) -> None:
    """A tensor shows its storage anew, from its own first element or from the storage's, and as much of it as before."""
    x = tc.arange(6.0, device=device)
    assert x.as_strided_((2, 2), (2, 1), 1).tolist() == [[1, 2], [3, 4]]
    assert x.as_strided_((2,), (3,)).tolist() == [1, 4]
    assert x.as_strided_((2, 3), (3, 1), 0).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match=r"as_strided_: .*out of bounds"):
        x.as_strided_((7,), (1,), 0)


def test_elements_are_scattered_into_their_own_tensor_as_they_were(device) -> None:
    """A source that shares the memory that is written is read as it was before, and so is its gradient."""
    mask = tc.tensor([[False, True, True], [True, False, False], [False, False, True]], device=device)
    x = tc.arange(1.0, 10.0, device=device).reshape(3, 3)
    assert x.masked_scatter_(mask, x).tolist() == [[1, 1, 2], [3, 5, 6], [7, 8, 4]]
    leaf = tc.ones(3, 3, device=device, requires_grad=True)
    made = leaf * 2
    made.masked_scatter_(mask, made.T)
    made.sum().backward()
    assert leaf.grad.tolist() == [[4, 2, 0], [2, 2, 2], [4, 2, 0]]


@pytest.mark.parametrize(("dtype", "number", "expected"), [
    ("float32", 0.1, 0.10000000149011612), ("int8", 300, 44), ("int64", -2.5, -2), ("bool", 0.25, True), ("bool", 1j, True),
    ("float64", 2 + 3j, 2.0), ("bfloat16", -1.7, -1.703125), ("complex64", 1j, 1j), ("int16", True, 1),
])  # fmt: skip
def test_a_number_is_copied_as_a_tensor_of_it_would_be(device, dtype, number, expected) -> None:
    """copy_ takes a number, in the way of its own dtype into the tensor's; one that no tensor holds is refused, and nothing written."""
    x = tc.zeros((2, 3), dtype=getattr(tc, dtype), device=device)
    assert x.copy_(number) is x
    assert x.tolist() == [[expected] * 3] * 2
    assert (x.grad_fn, x.dtype) == (None, getattr(tc, dtype))
    with pytest.raises(ArgumentError, match="copy_: Overflow"):
        x.copy_(2**70)
    with pytest.raises(ArgumentTypeError, match="copy_: expected src to be a Tensor"):
        x.copy_([number])
    assert x.tolist() == [[expected] * 3] * 2


def test_complex_numbers_become_bools_by_what_is_not_zero(device) -> None:
    """Into bools an imaginary number is written as true, in copy_ and in an assignment, as a cast makes it."""
    source = tc.tensor([1j, 0j, 2 + 0j], device=device)
    made = [tc.zeros(3, dtype=tc.bool, device=device) for _ in range(2)]
    made[0].copy_(source)
    made[1][:] = source
    assert made[0].tolist() == made[1].tolist() == source.bool().tolist() == [True, False, True]
