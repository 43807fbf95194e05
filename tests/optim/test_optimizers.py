"""Optimizers: literal steps, PyTorch's trajectories, parameter groups, state, hooks, and errors."""

import copy
import pickle

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn, optim


def parameter(*values):
    return nn.Parameter(tc.tensor(values))


def step(make, *gradients, start=1.0):
    """The value of one parameter after steps along the given gradients."""
    one = parameter(start)
    optimizer = make([one])
    for g in gradients:
        one.grad = tc.tensor([g])
        optimizer.step()
    return one.item()


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda p: optim.SGD(p, lr=0.1), 1 - 0.1 - 0.2),
        (lambda p: optim.SGD(p, lr=0.1, maximize=True), 1 + 0.1 + 0.2),
        (lambda p: optim.SGD(p, lr=0.1, momentum=0.5), 1 - 0.1 - 0.1 * 2.5),
        (lambda p: optim.SGD(p, lr=0.1, momentum=0.5, dampening=0.5), 1 - 0.1 - 0.1 * 1.5),
        (lambda p: optim.SGD(p, lr=0.1, momentum=0.5, nesterov=True), 1 - 0.15 - 0.1 * 3.25),
        (lambda p: optim.SGD(p, lr=0.1, weight_decay=1.0), (1 - 0.1 * 2) - 0.1 * 2.8),
    ],
)
def test_sgd_steps(make, expected):
    """Two steps along the gradients 1 and 2 go where pencil and paper say."""
    assert step(make, 1.0, 2.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("make", [lambda p: optim.Adam(p, lr=0.1), lambda p: optim.AdamW(p, lr=0.1, weight_decay=0)])
def test_adams_first_step_has_the_length_lr(make):
    """Whatever the gradient's size, Adam's first step is one learning rate long."""
    assert step(make, 1e-3) == pytest.approx(0.9, rel=1e-4)
    assert step(make, 1e3) == pytest.approx(0.9, rel=1e-4)


def test_decoupled_decay_shrinks_the_parameter():
    """AdamW takes lr * weight_decay of the parameter away before the step."""
    assert step(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.5), 0.0) == pytest.approx(0.95)


TRAJECTORIES = {
    "SGD": lambda o, p: o.SGD(p, lr=0.05),
    "SGD momentum": lambda o, p: o.SGD(p, lr=0.01, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "SGD nesterov": lambda o, p: o.SGD(p, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD maximize": lambda o, p: o.SGD(p, lr=0.001, momentum=0.5, maximize=True),
    "Adam": lambda o, p: o.Adam(p, lr=0.01, weight_decay=0.1),
    "Adam amsgrad": lambda o, p: o.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6, amsgrad=True),
    "Adam maximize": lambda o, p: o.Adam(p, lr=0.001, maximize=True),
    "Adam decoupled": lambda o, p: o.Adam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "AdamW": lambda o, p: o.AdamW(p, lr=0.01, weight_decay=0.1),
    "AdamW amsgrad maximize": lambda o, p: o.AdamW(p, lr=0.001, amsgrad=True, maximize=True),
    "lr as a tensor": lambda o, p: o.SGD(p, lr=(tc if o is optim else __import__("torch")).tensor(0.05)),
    "groups": lambda o, p: o.SGD([{"params": p[:1], "lr": 0.1}, {"params": p[1:], "momentum": 0.9}], lr=0.01),
}


def problem(library, dtype):
    """A small regression with a parameter of many pieces, a matrix and a 0-d one."""
    rng = np.random.default_rng(8)

    def make(array):
        return library.tensor(array, dtype=getattr(library, dtype))

    x, y = make(rng.standard_normal((16, 5))), make(rng.standard_normal((16, 3)))
    params = [library.nn.Parameter(make(rng.standard_normal(shape))) for shape in ((5, 3), (3,), (), (70000,))]

    def loss():
        out = (x @ params[0] + params[1]) * params[2]
        return ((out - y) ** 2).mean() + (params[3] ** 2).mean()

    return params, loss


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRAJECTORIES)
def test_trajectory_equals_pytorchs(name, dtype, torch):
    """After 100 steps the parameters and the state agree to rounding."""
    found = []
    for library in (tc, torch):
        params, loss = problem(library, dtype)
        optimizer = TRAJECTORIES[name](library.optim, params)
        for _ in range(100):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        found.append((params, optimizer))
    (ours, mine), (theirs, other) = found
    tolerance = {"rtol": 2e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **tolerance)
    assert repr(mine) == repr(other)
    state, expected = mine.state_dict(), other.state_dict()
    assert repr(state["param_groups"]) == repr(expected["param_groups"])
    # PyTorch notes the momentum of a parameter without one as None.
    named = {i: [key for key in one if one[key] is not None] for i, one in expected["state"].items()}
    assert {i: list(one) for i, one in state["state"].items()} == {i: keys for i, keys in named.items() if keys}
    for i, one in state["state"].items():
        for key, value in one.items():
            np.testing.assert_allclose(value.numpy(), expected["state"][i][key].numpy(), **tolerance)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["SGD momentum", "Adam amsgrad", "AdamW"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bit_parameters_move_as_pytorchs(name, dtype, torch):
    """Ten steps of 16-bit parameters stay within their coarse rounding of PyTorch's."""
    found = []
    for library in (tc, torch):
        one = library.nn.Parameter(library.ones(4, dtype=getattr(library, dtype)))
        optimizer = TRAJECTORIES[name](library.optim, [one])
        for i in range(10):
            one.grad = library.tensor([0.5, -1.0, 2.0, 0.1 + 0.1 * i], dtype=getattr(library, dtype))
            optimizer.step()
        found.append(one.detach().float().tolist())
    np.testing.assert_allclose(*found, atol=0.03)


@pytest.mark.parametrize("name", ["SGD momentum", "SGD nesterov", "Adam", "Adam amsgrad", "AdamW", "SGD maximize"])
def test_the_plain_path_equals_the_kernel(name):
    """Where a backend has no kernel the step is computed in tensor operations, with the same result."""
    device = tc.device("cpu")
    found = []
    kernels = {key: device.kernels[key] for key in ("sgd_step", "adam_step")}
    for table in (kernels, dict.fromkeys(kernels)):
        device.kernels.update(table)
        try:
            params, loss = problem(tc, "float64")
            optimizer = TRAJECTORIES[name](optim, params)
            for _ in range(5):
                optimizer.zero_grad()
                loss().backward()
                optimizer.step()
        finally:
            device.kernels.update(kernels)
        found.append([one.detach().numpy() for one in params])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_strided_and_complex_parameters_step():
    """A transposed parameter and a complex one move like contiguous real ones."""
    one = nn.Parameter(tc.ones(2, 3).t())
    one.grad = tc.ones(3, 2)
    two = nn.Parameter(tc.tensor([1 + 1j]))
    two.grad = tc.tensor([1 + 2j])
    optim.SGD([one, two], lr=0.5).step()
    assert one.tolist() == [[0.5, 0.5]] * 3
    assert two.tolist() == [0.5 + 0j]


def test_a_step_tells_the_tape():
    """A backward through values from before the step is refused."""
    one, other = parameter(1.0), parameter(2.0)
    result = one * other
    one.grad = tc.ones(1)
    optim.SGD([one], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_parameters_without_gradient_stay():
    """A step passes over parameters that have none, and keeps no state for them."""
    one, two = parameter(1.0), parameter(1.0)
    one.grad = tc.ones(1)
    optimizer = optim.Adam([one, two], lr=0.1)
    optimizer.step()
    assert two.item() == 1
    assert list(optimizer.state_dict()["state"]) == [0]


def test_a_closure_gives_the_loss():
    """The closure is called with recording on, and its value returned."""
    one = parameter(3.0)
    optimizer = optim.SGD([one], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (one * one).sum()
        loss.backward()
        return loss

    with tc.no_grad():
        assert optimizer.step(closure).item() == 9
    assert one.item() == 0


def test_a_state_continues_exactly():
    """An optimizer with a loaded state takes the same steps as the one that it came from."""
    params, loss = problem(tc, "float32")
    optimizer = optim.AdamW(params, lr=0.01, amsgrad=True)

    def run(optimizer, params, loss):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        return [one.tolist() for one in params]

    for _ in range(3):
        run(optimizer, params, loss)
    others, their_loss = problem(tc, "float32")
    with tc.no_grad():
        for one, two in zip(params, others, strict=True):
            two.copy_(one)
    twin = optim.AdamW(others, lr=1.0)
    twin.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert twin.param_groups[0]["lr"] == 0.01
    assert run(optimizer, params, loss) == run(twin, others, their_loss)


@pytest.mark.oracle
def test_pytorchs_state_can_be_loaded(torch):
    """The dict that PyTorch's optimizer gives, its tensors converted, loads here."""
    theirs = torch.nn.Parameter(torch.ones(2))
    other = torch.optim.Adam([theirs], lr=0.1)
    theirs.grad = torch.ones(2)
    other.step()
    given = other.state_dict()
    given["state"] = {i: {k: tc.tensor(v.numpy()) for k, v in one.items()} for i, one in given["state"].items()}
    one = nn.Parameter(tc.tensor(theirs.detach().numpy()))
    optimizer = optim.Adam([one])
    optimizer.load_state_dict(given)
    theirs.grad, one.grad = torch.ones(2) * 2, tc.ones(2) * 2
    other.step()
    optimizer.step()
    np.testing.assert_allclose(one.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)


def test_an_optimizer_is_pickled():
    """Groups and state survive; the parameters come along as copies."""
    one = parameter(1.0)
    one.grad = tc.ones(1)
    optimizer = optim.SGD([one], lr=0.5, momentum=0.5)
    optimizer.step()
    twin = pickle.loads(pickle.dumps(optimizer))
    assert twin.state_dict()["state"][0]["momentum_buffer"].tolist() == [1.0]
    assert twin.param_groups[0]["lr"] == 0.5


def test_hooks_run_around_a_step():
    """Step hooks run before and after; state hooks may replace the dict."""
    optimizer, seen = optim.SGD([parameter(1.0)], lr=0.5), []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    optimizer.register_state_dict_post_hook(lambda _, state: {"wrapped": state})
    optimizer.step()
    assert seen == ["before", "after"]
    assert list(optimizer.state_dict()) == ["wrapped"]


def test_zero_grad_fills_on_request():
    """Gradients become None, or zeros with ``set_to_none=False``."""
    one = parameter(1.0)
    one.grad = tc.ones(1)
    optimizer = optim.SGD([one])
    optimizer.zero_grad(set_to_none=False)
    assert one.grad.tolist() == [0]
    optimizer.zero_grad()
    assert one.grad is None


def test_a_step_may_be_differentiated():
    """With ``differentiable`` the derivative of what comes after the step reaches the gradient that it used."""
    rate = tc.tensor(2.0, requires_grad=True)
    one = tc.tensor([1.0], requires_grad=True).clone()
    one.retain_grad()
    optimizer = optim.SGD([one], lr=0.5, differentiable=True)
    one.grad = rate * tc.ones(1)
    optimizer.step()
    one.sum().backward()
    assert rate.grad.item() == -0.5


def one():
    return [parameter(1.0)]


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (
            lambda: optim.SGD(tc.ones(1)),
            TypeError,
            "should be an iterable of Tensors or dicts, but got torch.FloatTensor",
        ),
        (lambda: optim.SGD([3]), TypeError, "one of the params is int"),
        (lambda: optim.SGD([{"params": {tc.ones(1)}}]), TypeError, "ordered collections"),
        (lambda: optim.SGD(one(), lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD(one(), momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD(one(), weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.SGD(one(), nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam(one(), betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam(one(), eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam(one(), lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: optim.SGD([parameter(1.0) * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD(one()).add_param_group(3), TypeError, "param_group must be a dict"),
        (lambda: optim.SGD([("a", parameter(1.0)), parameter(2.0)]), ValueError, "with/without names"),
    ],
)
def test_bad_arguments_are_refused(make, error, text):
    """Each raises PyTorch's exception with PyTorch's words."""
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


def test_a_parameter_belongs_to_one_group():
    """The same parameter in two groups is refused; twice in one group is warned about."""
    one = parameter(1.0)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": [one]}, {"params": [one]}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([one, one])


def test_a_state_of_another_model_is_refused():
    """A dict with other groups, or groups of other sizes, is refused and changes nothing."""
    optimizer = optim.SGD([parameter(1.0)], lr=0.5)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1], "lr": 1.0}]})
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_named_parameters_keep_their_names():
    """Pairs of name and tensor put the names into the group and its state."""
    optimizer = optim.SGD(nn.Linear(1, 1).named_parameters(), lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
