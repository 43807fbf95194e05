"""Optimizers: literal steps, parameter groups, state, hooks, and errors."""

import copy
import pickle

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn, optim
from tests.optim.trajectories import problem


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
        (lambda: optim.Adam(one(), betas=(0, 0.9)), ValueError, "betas must be either both floats or both Tensors"),
        (lambda: optim.Adam(one(), lr=tc.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.Adam(one(), lr=tc.tensor(0.1), foreach=True), ValueError, "lr as a Tensor is not supported"),
        (lambda: optim.Adam(one(), fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: optim.SGD(one(), fused=True, differentiable=True), RuntimeError, "does not support `differentiable`"),
        (lambda: optim.Adamax(one(), eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.NAdam(one(), momentum_decay=-1), ValueError, "Invalid momentum_decay value: -1"),
        (lambda: optim.RAdam(one(), weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.RMSprop(one(), alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda: optim.Adagrad(one(), lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda: optim.Adadelta(one(), rho=2), ValueError, "Invalid rho value: 2"),
        (lambda: optim.ASGD(one(), lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.Rprop(one(), etas=(1.0, 1.2)), ValueError, "Invalid eta values: 1.0, 1.2"),
        (lambda: optim.Adafactor(one(), beta2_decay=1), ValueError, "beta2_decay should be <= 0 but is: 1"),
        (lambda: optim.Adafactor(one(), d=0.5), ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
        (lambda: optim.Muon(one()), ValueError, "Muon only supports 2D parameters"),
        (lambda: optim.Muon([nn.Parameter(tc.ones(2, 2))], adjust_lr_fn="x"), ValueError, "x is not supported"),
        (
            lambda: optim.LBFGS([{"params": one()}, {"params": one()}]),
            ValueError,
            "LBFGS doesn't support per-parameter options",
        ),
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


def test_an_optimizer_works_on_other_tensors_for_a_while():
    """Within the context a step moves the tensors that were swapped in and their state; after it all is as before."""
    one, other = parameter(1.0), tc.tensor([5.0])
    optimizer = optim.SGD([one], lr=0.5, momentum=0.5)
    one.grad = tc.ones(1)
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 1.0
    with optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        other.grad = tc.ones(1)
        optimizer.step()
    assert other.tolist() == [3.5]
    assert state["state"][0]["momentum_buffer"].tolist() == [1.5]
    assert one.tolist() == [0.5]
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.state[one]["momentum_buffer"].tolist() == [1.0]
    del state["param_groups"][0]["lr"]
    with (
        pytest.raises(RuntimeError, match="exactly match"),
        optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, state),
    ):
        pass


def test_hooks_of_all_optimizers():
    """A hook for every optimizer runs around each step, once even where a subclass calls its base's step."""
    from tensorcore.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    seen = []
    handles = [
        register_optimizer_step_pre_hook(lambda *_: seen.append("before")),
        register_optimizer_step_post_hook(lambda *_: seen.append("after")),
    ]
    one = parameter(1.0)
    one.grad = tc.ones(1)
    Twice([one], lr=0.25).step()
    for handle in handles:
        handle.remove()
    optim.SGD([one]).step()
    assert seen == ["before", "after"]


def test_a_pre_hook_may_change_the_arguments():
    """What a pre-hook returns is what the step gets; anything but a pair is refused."""
    optimizer = optim.SGD([parameter(1.0)])
    handle = optimizer.register_step_pre_hook(lambda *_: ((lambda: 7,), {}))
    assert optimizer.step() == 7
    handle.remove()
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "NAdam", "ASGD"])
def test_counts_are_where_capturable_says(name):
    """With ``capturable`` the numbers of the state are on the parameter's device."""
    one = nn.Parameter(tc.ones(2, device="cpu"))
    one.grad = tc.ones(2)
    optimizer = getattr(optim, name)([one], capturable=True)
    optimizer.step()
    assert optimizer.state[one]["step"].device is one.device
    assert optimizer.state[one]["step"].item() == 1


def quadratic(library, name, calls=None, **options):
    """Where an optimizer with a closure ends on Rosenbrock's valley, and its losses."""
    one = library.nn.Parameter(library.tensor([-1.2, 1.0], dtype=library.float64))
    two = library.nn.Parameter(library.tensor(0.5, dtype=library.float64))
    optimizer = getattr(library.optim, name)([one, two], **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = 100 * (one[1] - one[0] ** 2) ** 2 + (1 - one[0]) ** 2 + (two - one[1]) ** 2
        loss.backward()
        if calls is not None:
            calls.append(loss.item())
        return loss

    for _ in range(6):
        losses.append(optimizer.step(closure).item())
    return losses, [*one.tolist(), two.item()], optimizer


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 7},
        {"line_search_fn": "strong_wolfe", "lr": 0.3, "max_eval": 9},
        {"lr": 0.001},
        {"lr": 0.002, "history_size": 3, "max_iter": 5, "tolerance_change": 1e-3},
    ],
    ids=str,
)
def test_lbfgs_moves_as_pytorchs(options, torch):
    """The closure is called at the same points, and the same end is reached."""
    ours, theirs = [], []
    (_, found, mine), (_, expected, other) = quadratic(tc, "LBFGS", ours, **options), quadratic(
        torch, "LBFGS", theirs, **options
    )  # fmt: skip
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert repr(mine) == repr(other)
    (state,), (known,) = mine.state_dict()["state"].values(), other.state_dict()["state"].values()
    assert {key for key in known if key != "al"} == set(state)
    assert [state[key] for key in ("n_iter", "func_evals")] == [known[key] for key in ("n_iter", "func_evals")]


def test_lbfgs_finds_the_valleys_end():
    """Quasi-Newton steps with a line search come to the minimum."""
    losses, end, _ = quadratic(tc, "LBFGS", line_search_fn="strong_wolfe")
    assert losses[0] > 1
    np.testing.assert_allclose(end, [1.0, 1.0, 1.0], atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RAdam", "Rprop"])
def test_steps_without_values(name):
    """On the device without values a step runs and leaves shapes."""
    one = nn.Parameter(tc.ones(3, device="meta"))
    one.grad = tc.ones(3, device="meta")
    optimizer = getattr(optim, name)([one])
    optimizer.step()
    optimizer.step()
    assert tuple(one.shape) == (3,)
