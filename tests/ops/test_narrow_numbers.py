"""Numbers beside half types: which keep single precision, which are rounded first, in every form of a call."""

import pytest

import tensorcore as torch

HALVES = [torch.float16, torch.bfloat16]
OF_FLOATS = {"mul": lambda x, y: x * y, "div": lambda x, y: x / y}
OF_ROUNDED = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "remainder": lambda x, y: x % y, "pow": lambda x, y: x**y,
    "clamp_min": lambda x, y: x.clamp_min(y), "lt": lambda x, y: x < y, "eq": lambda x, y: x == y,
}  # fmt: skip


def operand(dtype, *shape):
    """Many values of the dtype, the rounded 0.3 among them."""
    values = torch.linspace(0.01, 3, 997).to(dtype)
    values[5] = 0.3
    return values if not shape else values[: torch.ones(shape).numel()].reshape(shape)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", [*OF_FLOATS, *OF_ROUNDED])
def test_a_number_is_a_float_or_rounded_first(name, dtype):
    """Products and quotients take 0.3 as it is in single precision, others as it is in the dtype; the result is rounded once."""
    call = OF_FLOATS.get(name) or OF_ROUNDED[name]
    number = 0.3 if name in OF_FLOATS else torch.tensor(0.3, dtype=dtype).item()
    x = operand(dtype)
    expected = call(x.float(), number)
    made = call(x, 0.3)
    assert made.dtype is (expected.dtype if expected.dtype is torch.bool else dtype)
    assert torch.equal(made, expected.to(made.dtype))
    written = x.clone()
    getattr(written, name + "_")(0.3)
    assert torch.equal(written, made.to(dtype))
    if made.dtype is dtype:
        out = torch.empty_like(x)
        assert getattr(torch, name)(x, 0.3, out=out) is out
        assert torch.equal(out, made)
        assert torch.equal(call(x[::3], 0.3), made[::3])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["mul", "add", "pow", "clamp_min", "lt"])
def test_what_a_fast_kernel_leaves_is_the_same(name, dtype):
    """Nine dims, which no kernel in C takes."""
    call = (OF_FLOATS | OF_ROUNDED)[name]
    deep = operand(dtype, 2, 1, 2, 1, 2, 1, 2, 1, 2)
    made = call(deep, 0.3)
    assert made.dtype is (torch.bool if name == "lt" else dtype)
    assert made.native.itemsize == (1 if name == "lt" else 2)
    assert torch.equal(made.flatten(), call(deep.flatten(), 0.3))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_numbers_first(dtype):
    """number - tensor and number / tensor."""
    x = operand(dtype)
    rounded = torch.tensor(0.3, dtype=dtype).item()
    assert torch.equal(0.3 - x, (rounded - x.float()).to(dtype))
    assert torch.equal(0.3 / x, (0.3 / x.float()).to(dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_pass_numbers(dtype):
    """A recorded product with a number has it as its gradient, of the dtype."""
    x = operand(dtype).requires_grad_()
    (x * 0.3).sum().backward()
    assert x.grad.dtype is dtype
    assert torch.equal(x.grad, torch.full_like(x, 0.3))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_bounds_that_are_numbers(dtype):
    """clamp between two of them, as they are in the dtype."""
    x = operand(dtype)
    low, high = (torch.tensor(one, dtype=dtype) for one in (0.3, 1.7))
    assert torch.equal(x.clamp(0.3, 1.7), x.clamp(low, high))
    assert x.clone().clamp_(0.3, 1.7).max() == high


@pytest.mark.parametrize("where", ["cpu", "lazy"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_tensor_of_one_number(dtype, where):
    """Second in a product or a quotient it keeps its digits, as a number does; first it is rounded, as PyTorch has it; so are gradients."""
    x, third = operand(dtype).to(where), torch.tensor(1 / 3, device=where)
    for call in (lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x.clone().mul_(y)):
        assert torch.equal(call(x, third), call(x, 1 / 3))
        assert torch.equal(call(x[::3], third.double()), call(x[::3], 1 / 3))
    assert torch.equal(third * x, third.to(dtype) * x)
    leaf = x.clone().requires_grad_()
    (leaf * third).sum().backward()
    assert torch.equal(leaf.grad, torch.ones_like(x) * (1 / 3))
    product = torch.compile(lambda x, y: x * y)
    for number in (1 / 3, 0.1):
        assert torch.equal(product(x, torch.tensor(number, device=where)), x * number)
