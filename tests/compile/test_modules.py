"""Compiled modules: values, gradients, buffers, modes and state are those of the module."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.nn import functional as F


class Net(nn.Module):
    """Convolution, normalisation with running statistics, dropout, two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout(0.25)
        self.left, self.right = nn.Linear(4 * 16, 3), nn.Linear(4 * 16, 2)
        self.scale = 1.0

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = self.drop(x.flatten(1)) * self.scale
        return self.left(x), self.right(x).softmax(-1)


def made() -> Net:
    tc.manual_seed(0)
    return Net()


def counted(module: nn.Module) -> Any:
    return tc.compile(module, backend=lambda program: None)


def steps(model: Any, count: int = 4) -> list[Any]:
    """Losses, gradients and buffers of some forward and backward passes."""
    tc.manual_seed(1)
    found = []
    for _ in range(count):
        x = tc.randn(5, 1, 8, 8, requires_grad=True)
        left, right = model(x)
        loss = left.square().sum() + right[:, 0].sum()
        loss.backward()
        found.append([loss.item(), x.grad.tolist(), *[one.grad.tolist() for one in model.parameters()]])
        found[-1] += [one.tolist() for one in model.buffers()]
        model.zero_grad()
    return found


def test_a_module_trains_as_ever() -> None:
    """Outputs, gradients of parameters and inputs, and running statistics are equal bit for bit."""
    compiled = counted(made())
    assert steps(compiled) == steps(made())
    found = compiled.explain()
    assert (found.traces, found.replays, found.reasons) == (1, 3, [])


def test_a_module_compiles_in_place() -> None:
    """``module.compile()`` keeps the module, whose calls are replayed."""
    model = made()
    model.compile(backend=lambda program: None)
    assert steps(model) == steps(made())
    assert tc.compile.explain(model).replays == 3
    assert type(model) is Net


def test_the_tape_has_one_node() -> None:
    """Behind the results of a replay stands one node, whose edges are the leaves."""
    compiled = counted(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))
    x = tc.randn(4, 2)
    compiled(x)
    out = compiled(x)
    assert out.grad_fn.name() == "CompiledFunctionBackward"
    leaves = {fn.variable for fn, _ in out.grad_fn.next_functions}
    assert leaves == set(compiled.parameters())


def test_modes_of_a_module_are_guarded() -> None:
    """train(), eval() and a changed attribute are noticed and named."""
    model = made()
    compiled = counted(model)
    x = tc.randn(2, 1, 8, 8)
    compiled(x)
    model.eval()
    assert tc.equal(compiled(x)[0], model(x)[0])
    assert tc.equal(compiled(x)[0], model(x)[0])
    model.scale = 2.0
    assert tc.equal(compiled(x)[0], model(x)[0])
    assert "training is False now" in compiled.explain().reasons[0]
    assert "scale is 2.0 now" in compiled.explain().reasons[1]


def test_parameters_may_change_in_any_way() -> None:
    """In-place writes, loaded states, other data and other parameters are all seen."""
    model = nn.Linear(2, 2)
    compiled = counted(model)
    x = tc.randn(3, 2)

    def agree() -> None:
        assert tc.equal(compiled(x), model(x))

    agree()
    with tc.no_grad():
        model.weight.mul_(2)
    agree()
    model.load_state_dict({"weight": tc.ones(2, 2), "bias": tc.zeros(2)})
    agree()
    model.weight.data = tc.full((2, 2), 3.0)
    agree()
    model.weight = nn.Parameter(tc.full((2, 2), 4.0))
    agree()
    model.bias.requires_grad_(False)
    agree()
    compiled(x).sum().backward()
    assert model.bias.grad is None
    assert model.weight.grad is not None


def test_gradients_add_up() -> None:
    """Two backward passes of replays add to what was there, as ever."""
    model = nn.Linear(2, 1)
    compiled = counted(model)
    for _ in range(3):
        compiled(tc.ones(1, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[3, 3]]


def test_a_second_backward_is_refused() -> None:
    """A graph is freed by its backward, kept by retain_graph, and not differentiated twice."""
    compiled = counted(nn.Linear(2, 1))
    compiled(tc.ones(1, 2))
    out = compiled(tc.ones(1, 2)).sum()
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()
    out = compiled(tc.ones(1, 2)).sum()
    with pytest.raises(RuntimeError, match="double backward"):
        out.backward(create_graph=True)


def test_a_write_between_the_passes_is_noticed() -> None:
    """A parameter or a result that the backward needs and that was written is an error, as ever."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    compiled = counted(model)
    compiled(tc.ones(1, 2))
    out = compiled(tc.ones(1, 2)).sum()
    with tc.no_grad():
        model[1].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
    f = counted(lambda x: x.exp())
    x = tc.ones(2, requires_grad=True)
    f(x)
    out = f(x)
    loss = out.sum()
    out.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_inputs_on_the_tape_get_their_gradient() -> None:
    """A compiled module in the middle of a graph passes gradients on to what came before it."""
    compiled = counted(nn.Linear(2, 2, bias=False))
    with tc.no_grad():
        compiled.weight.copy_(tc.eye(2) * 2)
    for _ in range(3):
        x = tc.ones(1, 2, requires_grad=True)
        (compiled(x * 3) * 5).sum().backward()
        assert x.grad.tolist() == [[30, 30]]
    assert compiled.explain().replays == 2


def test_unused_outputs_have_gradients_of_zero() -> None:
    """A backward from one of two results leaves the other's part out."""
    one, two = nn.Linear(2, 1), nn.Linear(2, 1)
    f = counted(lambda x: (one(x), two(x)))
    for _ in range(2):
        one.zero_grad()
        f(tc.ones(1, 2))[0].sum().backward()
        assert one.weight.grad.tolist() == [[1, 1]]
    assert two.weight.grad is None or not two.weight.grad.any()


def test_hooks_run_in_python() -> None:
    """Forward hooks are part of the call; hooks of parameters run in the backward pass behind it, with the gradients they give."""
    model = nn.Linear(2, 1, bias=False)
    model.register_forward_hook(lambda module, args, out: out * 2)
    compiled = counted(model)
    for _ in range(3):
        model.zero_grad()
        compiled(tc.ones(1, 2)).sum().backward()
        assert model.weight.grad.tolist() == [[2, 2]]
    assert compiled.explain().replays == 2
    seen = []
    model.weight.register_hook(lambda g: seen.append(1))
    compiled = counted(model)
    for _ in range(3):
        compiled(tc.ones(1, 2)).sum().backward()
    assert len(seen) == 3
    assert compiled.explain().replays == 2


def test_a_compiled_module_looks_like_its_module() -> None:
    """Attributes, parameters, modes and states are the module's own; the state has PyTorch's prefix."""
    model = made()
    compiled = counted(model)
    assert compiled.conv is model.conv
    compiled.scale = 3.0
    assert model.scale == 3.0
    assert next(iter(compiled.parameters())) is model.conv.weight
    assert "_orig_mod.conv.weight" in compiled.state_dict()
    compiled.eval()
    assert not model.norm.training


def test_copies_are_apart() -> None:
    """A deep copy or an unpickled one of a compiled module computes with its own parameters."""
    x = tc.ones(1, 2)
    model = nn.Linear(2, 1)
    model.compile()
    model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(tc.compile(nn.Linear(2, 1)))):
        with tc.no_grad():
            other.weight.fill_(1)
            other.bias.fill_(0)
        assert other(x).item() == 2
        assert other(x).item() == 2
