"""Hooks of tensors and of modules' gradients in compiled training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn

CALLS = 6


def trained(compiled: bool, hook: Callable[[nn.Module, int], Any], inside: Any = None) -> tuple[list[Any], Any]:
    """The parameters of a model after some steps, before each of which ``hook(model, i)`` is called; and the step."""
    tc.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = tc.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        hidden = model[1](model[0](x))
        if inside is not None:
            hidden.register_hook(inside)
        loss = model[2](hidden).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step = tc.compile(step) if compiled else step
    losses = []
    for i in range(CALLS):
        hook(model, i)
        losses.append(step(tc.rand(5, 3)).item())
    return [losses, *[one.tolist() for one in model.parameters()]], step


def at(when: int, change: Callable[[nn.Module], Any]) -> Callable[[nn.Module, int], Any]:
    """What changes a model before one call."""
    return lambda model, i: change(model) if i == when else None


def register(model: nn.Module) -> Any:
    return model[0].weight.register_hook(lambda g: g * 0.5)


def halve(module: nn.Module, before: Any, behind: Any) -> Any:
    return tuple(g * 0.5 for g in before)


@pytest.mark.parametrize(
    "hook, traces",
    [
        (at(0, register), 1),
        (at(3, register), 2),
        (at(0, lambda m: register(m).remove()), 1),
        (lambda m, i: register(m).remove() if i == 0 else register(m) if i == 3 else None, 2),
        (at(0, lambda m: m[2].register_full_backward_hook(halve)), 1),
        (at(0, lambda m: m[2].register_full_backward_pre_hook(lambda module, g: (g[0] * 2,))), 1),
        (at(3, lambda m: m[2].register_full_backward_hook(halve)), 2),
        (at(0, lambda m: m[2].bias.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.1))), 1),
    ],
)
def test_hooks_around_a_step(hook, traces) -> None:
    """They are part of the replay, and one that comes later is a call of another kind."""
    found, step = trained(True, hook)
    assert found == trained(False, hook)[0]
    assert (step.explain().traces, step.explain().replays) == (traces, CALLS - traces), step.explain()


def test_hooks_inside_a_step() -> None:
    """A hook of what the call computes changes the gradients of each replay."""
    found, step = trained(True, lambda *_: None, lambda g: g.clamp(-0.01, 0.01))
    assert found == trained(False, lambda *_: None, lambda g: g.clamp(-0.01, 0.01))[0]
    assert step.explain().replays == CALLS - 1


def test_what_a_hook_reads_is_guarded() -> None:
    """A number that a hook of a parameter reads, and a list that it fills."""
    for fills in (False, True):
        found = []
        for compiled in (False, True):
            settings, seen = {"rate": 0.5}, []

            def hook(g: Any, settings: Any = settings, seen: Any = seen, fills: bool = fills) -> Any:
                if fills:
                    seen.append(1)
                return g * settings["rate"]

            def change(model: Any, i: int, hook: Any = hook, settings: Any = settings) -> None:
                settings["rate"] = 0.5 + (i >= 3)
                if i == 0:
                    model[0].weight.register_hook(hook)

            found.append([trained(compiled, change)[0], len(seen)])
        assert found[1] == found[0]


def test_a_mask_that_a_hook_reads() -> None:
    """Gradients that a hook masks; the mask may be written to between the calls."""
    found = []
    for compiled in (False, True):
        mask = tc.ones(4, 3)

        def change(model: Any, i: int, mask: Any = mask) -> None:
            if i == 0:
                model[0].weight.register_hook(lambda g: g * mask)
            mask[i % 4] = 0.0

        values, step = trained(compiled, change)
        found.append(values)
    assert found[1] == found[0]
    assert step.explain().replays == CALLS - 1


def test_hooks_behind_a_compiled_module() -> None:
    """Those of its parameters run in the backward pass behind it, as often as in eager."""
    model, seen = nn.Linear(3, 2), []
    model.weight.register_hook(lambda g: seen.append(1))
    compiled = tc.compile(model)
    for _ in range(4):
        compiled(tc.rand(2, 3)).sum().backward()
    assert len(seen) == 4


def test_hooks_of_packages_run_as_they_are() -> None:
    """What they do besides tensor operations is not known."""
    weight, compiled = tc.ones(3, requires_grad=True), None

    class Hook:
        __module__ = "numpy.testing"

        def __call__(self, g: Any) -> Any:
            return g * 2

    weight.register_hook(Hook())

    def step(x: Any) -> Any:
        (weight * x).sum().backward()

    compiled = tc.compile(step)
    for _ in range(3):
        compiled(tc.ones(3))
    assert weight.grad.tolist() == [6.0] * 3
    assert compiled.explain().replays == 0
    assert "hooks of a package" in str(compiled.explain())
