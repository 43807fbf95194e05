"""Whole training steps, compiled: forward, backward, optimizer and schedule give the trajectories of eager."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.nn import functional as F


def perceptron() -> tuple[nn.Module, Any]:
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))
    return model, lambda: (tc.randn(8, 12), tc.randint(0, 4, (8,)))


def lenet() -> tuple[nn.Module, Any]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(6 * 4, 4),
    )  # fmt: skip
    return model, lambda: (tc.randn(4, 1, 16, 16), tc.randint(0, 4, (4,)))


class GPT(nn.Module):
    """Two blocks of causal attention and a perceptron, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.norm, self.scores = nn.LayerNorm(8), nn.Linear(8, 11)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(tc.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x)).transpose(1, 2)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(8), nn.LayerNorm(8)
        self.inner, self.outer = nn.Linear(8, 24), nn.Linear(8, 8)
        self.wide = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = self.inner(self.one(x)).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outer(a.transpose(1, 2).reshape(x.shape))
        return x + self.wide(self.two(x))


def gpt() -> tuple[nn.Module, Any]:
    return GPT(), lambda: (tc.randint(0, 11, (3, 6)), tc.randint(0, 11, (3, 6)))


MODELS = {"perceptron": perceptron, "lenet": lenet, "gpt": gpt}
OPTIMIZERS = {
    "sgd": lambda p: tc.optim.SGD(p, lr=0.1),
    "momentum": lambda p: tc.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: tc.optim.Adam(p, lr=0.01),
    "adamw": lambda p: tc.optim.AdamW(p, lr=0.01, amsgrad=True),
    "rmsprop": lambda p: tc.optim.RMSprop(p, lr=0.01),
}


def trajectory(model: str, optimizer: str, compiled: bool, count: int = 20, **options: Any) -> tuple[list[Any], Any]:
    """The losses of some steps and everything that is left in the end."""
    tc.manual_seed(5)
    net, batch = MODELS[model]()
    opt = OPTIMIZERS[optimizer](net.parameters())
    schedule = tc.optim.lr_scheduler.StepLR(opt, 7, 0.5)

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        schedule.step()
        return loss

    run = tc.compile(step, backend=lambda program: None) if compiled else step
    found: list[Any] = [run(*batch()).item() for _ in range(count)]
    found += [one.tolist() for one in net.state_dict().values()]
    found += [one.grad.tolist() for one in net.parameters()]
    found += [schedule.get_last_lr(), tc.rand(1).item()]
    state = opt.state_dict()["state"]
    found += [one.tolist() for held in state.values() for one in held.values() if isinstance(one, tc.Tensor)]
    return found, run


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_twenty_steps_are_the_same(model, optimizer) -> None:
    """Losses, parameters, buffers, gradients, optimizer state, rates and random state are equal bit for bit."""
    expected, _ = trajectory(model, optimizer, False)
    found, run = trajectory(model, optimizer, True)
    assert found == expected
    assert (run.explain().traces, run.explain().replays, run.explain().reasons) == (1, 19, [])


@pytest.mark.parametrize("model", MODELS)
def test_fused_steps_agree(model) -> None:
    """With the device's fused kernels the trajectory is the same to rounding."""
    expected, _ = trajectory(model, "sgd", False, 5)
    tc.manual_seed(5)
    net, batch = MODELS[model]()
    opt = OPTIMIZERS["sgd"](net.parameters())

    @tc.compile(fullgraph=True)
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        return loss

    found = [step(*batch()).item() for _ in range(5)]
    assert found == pytest.approx(expected[:5], rel=1e-4)
    assert step.explain().replays == 4


def test_gradients_are_new_with_each_step() -> None:
    """A gradient that somebody kept is not written by later steps, and grad is the newest."""
    net = nn.Linear(2, 1)
    opt = tc.optim.SGD(net.parameters(), lr=0.1)

    @tc.compile
    def step(x):
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    kept = []
    for n in range(4):
        step(tc.full((1, 2), float(n)))
        kept.append(net.weight.grad)
    assert [one.tolist() for one in kept] == [[[n, n]] for n in range(4)]


def test_gradients_accumulate_across_calls() -> None:
    """Without zero_grad inside, what is there is added to, in place where eager does so."""
    net = nn.Linear(2, 1, bias=False)

    @tc.compile
    def accumulate(x):
        net(x).sum().backward()

    accumulate(tc.ones(1, 2))
    held = net.weight.grad
    for _ in range(3):
        accumulate(tc.ones(1, 2))
    assert net.weight.grad is held
    assert held.tolist() == [[4, 4]]
    net.zero_grad()
    accumulate(tc.ones(1, 2))
    assert net.weight.grad.tolist() == [[1, 1]]
    assert accumulate.explain().traces == 2


def test_zero_grad_at_the_end_works_too() -> None:
    """The order backward, step, zero_grad leaves no gradient behind."""
    net = nn.Linear(2, 1)
    opt = tc.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)

    @tc.compile(fullgraph=True)
    def step(x):
        loss = net(x).square().sum()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.detach()

    losses = [step(tc.ones(1, 2)).item() for _ in range(4)]
    assert net.weight.grad is None
    assert step.explain().replays == 3
    assert len(set(losses)) == 4


def test_a_rate_that_changes_costs_no_trace() -> None:
    """The optimizer is asked in each step: a rate set by hand counts at once."""
    net = nn.Linear(1, 1, bias=False)
    opt = tc.optim.SGD(net.parameters(), lr=1.0)

    @tc.compile
    def step(x):
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()

    with tc.no_grad():
        net.weight.fill_(10)
    for lr in (1.0, 2.0, 3.0):
        opt.param_groups[0]["lr"] = lr
        step(tc.ones(1, 1))
    assert net.weight.item() == 4
    assert step.explain().traces == 1


def test_a_second_backward_is_refused_as_ever() -> None:
    """The loss of a compiled step requires grad, and its graph is freed."""
    net = nn.Linear(1, 1)

    @tc.compile
    def step(x):
        loss = net(x).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        net.zero_grad()
        loss = step(tc.ones(1, 1))
        assert loss.requires_grad
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_an_optimizer_of_the_call_itself_is_made_anew_each_time() -> None:
    """A function that fits a weight of its own is no graph: it runs as it is, and says which object was in the way."""

    def fit(x: tc.Tensor) -> tc.Tensor:
        w = tc.full((2,), 0.5, requires_grad=True)
        optimizer = tc.optim.Adam([w], lr=0.1)
        (w * x).sum().backward()
        optimizer.step()
        return w.detach()

    compiled = tc.compile(fit)
    for x in (tc.ones(2), -tc.ones(2), tc.ones(2)):
        assert compiled(x).tolist() == fit(x).tolist()
    assert "makes its own Adam" in str(compiled.explain())


def test_a_step_that_lets_a_gradient_go_after_adding_to_it() -> None:
    """The last of some micro-steps steps and clears; its replays give the losses of eager."""

    def losses(compiled: bool) -> list[float]:
        tc.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1)

        def micro(x: tc.Tensor, last: bool) -> tc.Tensor:
            loss = model(x).square().mean()
            loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
            return loss.detach()

        step = tc.compile(micro) if compiled else micro
        return [step(tc.randn(3, 4), i % 3 == 2).item() for i in range(9)]

    assert losses(True) == losses(False)


def test_clipping_between_two_optimizers() -> None:
    """Gradients that are scaled after another optimizer's step are scaled in each replay too."""

    def losses(compiled: bool) -> list[float]:
        tc.manual_seed(8)
        first, second = nn.Linear(3, 3), nn.Linear(3, 3)
        one, other = (tc.optim.SGD(model.parameters(), lr=0.1) for model in (first, second))

        def step(x):
            one.zero_grad()
            other.zero_grad()
            loss = second(first(x)).square().sum()
            loss.backward()
            one.step()
            nn.utils.clip_grad_norm_(second.parameters(), 0.01)
            other.step()
            return loss

        run = tc.compile(step, backend=lambda program: None) if compiled else step
        return [run(tc.ones(2, 3)).item() for _ in range(4)]

    assert losses(True) == losses(False)


@pytest.mark.parametrize("clips", [False, True])
def test_steps_with_a_grad_scaler_are_replayed(clips) -> None:
    """Scaling, unscaling, a skipped step and the factor that grows: losses and factors of eager, traced twice at most."""

    def course(compiled: bool) -> tuple[list[str], Any]:
        tc.manual_seed(8)
        model = nn.Linear(3, 3)
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler = tc.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

        def step(x):
            optimizer.zero_grad()
            with tc.autocast("cpu", dtype=tc.bfloat16):
                loss = model(x).square().sum()
            scaler.scale(loss).backward()
            if clips:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            return loss

        run = tc.compile(step, backend=lambda program: None) if compiled else step
        seen = []
        for factor in (1.0, 1.0, 1.0, math.inf, 1.0, 1.0):
            seen.append(f"{run(tc.full((2, 3), factor)).item()} {scaler.get_scale()}")
        return seen, run

    seen, run = course(True)
    assert seen == course(False)[0]
    assert (run.explain().traces, run.explain().replays, run.explain().eager) == (2, 4, 0)


def _turned(model: nn.Module) -> Any:
    grad = model.weight.grad
    grad[0] *= 2
    grad.view(-1)[1] = 7.0
    return grad.view(-1)


def _replaced(model: nn.Module) -> Any:
    model.weight.grad = model.weight.grad.sign()
    model.bias.grad = model.weight.grad.sum(1)
    return model.weight.grad.clone()


@pytest.mark.parametrize("change", [_turned, _replaced])
def test_gradients_that_are_changed_between_steps(change) -> None:
    """Written to through views, or replaced, after one optimizer's step: the next one takes what eager's takes."""

    def course(compiled: bool) -> list[Any]:
        tc.manual_seed(8)
        model = nn.Linear(3, 3)
        one, other = (tc.optim.SGD([each], lr=0.1) for each in model.parameters())

        def step(x):
            one.zero_grad()
            other.zero_grad()
            model(x).square().sum().backward()
            other.step()
            answer = change(model)
            one.step()
            other.step()
            model.bias.grad.zero_()
            return answer

        run = tc.compile(step, backend=lambda program: None) if compiled else step
        seen = [run(tc.full((2, 3), 1.0 + i)).tolist() for i in range(4)]
        return [*seen, model.weight.tolist(), model.bias.tolist(), model.bias.grad.tolist()]

    assert course(True) == course(False)


def test_a_gradient_made_of_numbers_is_made_in_each_call() -> None:
    """What an optimizer writes into it in place, zeros for instance, is not what the next call begins with."""

    def course(compiled: bool) -> list[Any]:
        weight = nn.Parameter(tc.ones(3))
        optimizer = tc.optim.SGD([weight], lr=0.5)

        def step(x):
            weight.grad = tc.tensor([1.0, 2.0, 3.0])
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            return x * 2

        run = tc.compile(step, backend=lambda program: None) if compiled else step
        for _ in range(4):
            run(tc.ones(2))
        return weight.tolist()

    assert course(True) == course(False) == [-1, -3, -5]


@pytest.mark.parametrize("before", [False, True])
def test_a_gradient_that_is_given_before_any_kernel(before: bool) -> None:
    """A step with gradients that were computed elsewhere runs as it is, or is replayed where kernels come first."""
    weight, gradients = tc.ones(2, requires_grad=True), [tc.full((2,), 1.0 + i) for i in range(3)]
    optimizer = tc.optim.SGD([weight], lr=0.25)

    @tc.compile
    def step(gradient):
        weight.grad = gradient * 2 if before else gradient
        optimizer.step()
        return weight.detach() + 1

    assert [step(one).tolist() for one in gradients] == (
        [[1.5] * 2, [0.5] * 2, [-1] * 2] if before else [[1.75] * 2, [1.25] * 2, [0.5] * 2]
    )


def test_a_network_that_is_frozen_for_a_part_of_the_step() -> None:
    """As that of a critic is while the other one learns: steps are replayed, with the parameters and gradients of eager."""

    def trained(compiled: bool) -> tuple[list[Any], Any]:
        tc.manual_seed(3)
        maker, critic = nn.Linear(2, 3), nn.Linear(3, 1)
        one, other = (tc.optim.Adam(model.parameters(), lr=0.1) for model in (maker, critic))

        def step(x):
            other.zero_grad()
            made = maker(x)
            (critic(made.detach()).mean() - critic(made.detach() + 1).square().mean()).backward()
            other.step()
            critic.requires_grad_(False)
            one.zero_grad()
            loss = -critic(made).mean()
            loss.backward()
            one.step()
            critic.requires_grad_(True)
            return loss

        run = tc.compile(step, backend=lambda program: None) if compiled else step
        losses = [run(tc.randn(4, 2)).item() for _ in range(6)]
        held = [one for model in (maker, critic) for one in model.parameters()]
        return [losses, *[one.tolist() for one in held], *[one.grad.tolist() for one in held]], run

    expected, _ = trained(False)
    found, step = trained(True)
    assert found == expected
    assert (step.explain().traces, step.explain().replays) == (1, 5)
