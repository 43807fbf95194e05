"""Checks of values behind draws and behind steps: replayed where they can be made first, and eager's in all that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.distributions import Categorical, Normal, kl_divergence

CALLS = 8
NAN = float("nan")


def bits(value: Any) -> str:
    """A tensor's values to the last digit; NaN is NaN, of either sign."""
    return repr(value.detach().tolist())


def ran(make: Callable[[], Any], compiled: bool, scales: list[tuple[float, float]]) -> tuple[list[Any], Any]:
    """What a step answers with or raises, and the state that all calls leave behind; and the step."""
    tc.manual_seed(0)
    step, tensors, generators = make()
    step = tc.compile(step) if compiled else step
    tc.manual_seed(1)
    found: list[Any] = []
    for first, second in scales:
        try:
            found.append(bits(step(tc.rand(5, 6), tc.tensor(first), tc.tensor(second))))
        except (ValueError, RuntimeError, IndexError) as error:
            found.append((type(error), str(error)))
    left = [[bits(one), None if one.grad is None else bits(one.grad)] for one in tensors]
    return [found, left, [one.get_state().tolist() for one in (tc.default_generator, *generators)]], step


def check(make: Callable[[], Any], replays: int = CALLS - 1) -> None:
    """A step is that of eager, also where a check fails in the third or the sixth call, and is replayed."""
    good = [(1.0, 1.0)] * CALLS
    found, step = ran(make, True, good)
    assert found == ran(make, False, good)[0]
    assert step.explain().replays == replays, step.explain()
    bad = [(NAN if i == 3 else 1.0, NAN if i == 6 else 1.0) for i in range(CALLS)]
    expected = ran(make, False, bad)[0]
    assert sum(type(one) is tuple for one in expected[0]) >= 1
    assert ran(make, True, bad)[0] == expected


def autoencoder() -> Any:
    """A variational autoencoder whose decoder gives a distribution too, with a generator of its own for some noise."""
    encoder, decoder, generator = nn.Linear(6, 6), nn.Linear(3, 6), tc.Generator().manual_seed(5)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = tc.optim.Adam(parameters, lr=1e-2)

    def step(x: Any, first: Any, second: Any) -> Any:
        optimizer.zero_grad()
        mean, log_variance = (encoder(x) * first).chunk(2, -1)
        code = Normal(mean, (log_variance / 2).exp())
        z = code.rsample() + 0.1 * tc.randn(5, 3, generator=generator)
        loss = kl_divergence(code, Normal(0.0, 1.0)).sum() - Normal(decoder(z) * second, 1.0).log_prob(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    return step, parameters, [generator]


def actor_critic() -> Any:
    """An actor's step behind a critic's, with numbers drawn before, between and behind, and a slow copy of the critic."""
    actor, critic, slow = nn.Linear(6, 6), nn.Linear(9, 1), nn.Linear(9, 1)
    slow.load_state_dict(critic.state_dict())
    ours, theirs = tc.optim.Adam(actor.parameters(), lr=1e-2), tc.optim.Adam(critic.parameters(), lr=1e-2)

    def act(x: Any, scale: Any) -> Any:
        mean, deviation = actor(x).chunk(2, -1)
        policy = Normal(mean * scale, deviation.clamp(-5, 2).exp())
        action = policy.rsample()
        return tc.cat([x, action.tanh()], -1), policy.log_prob(action).sum(-1, keepdim=True)

    def step(x: Any, first: Any, second: Any) -> Any:
        with tc.no_grad():
            taken, chance = act(x, first)
            wanted = x.sum(-1, keepdim=True) + 0.99 * (slow(taken) - 0.2 * chance)
        theirs.zero_grad()
        loss = (critic(taken) - wanted).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        theirs.step()
        taken, chance = act(x, second)
        ours.zero_grad()
        (0.2 * chance - critic(taken)).mean().backward()
        ours.step()
        with tc.no_grad():
            for one, other in zip(critic.parameters(), slow.parameters(), strict=True):
                other.lerp_(one, 0.01)
        return loss + tc.rand(())

    return step, [*actor.parameters(), *critic.parameters(), *slow.parameters()], []


@pytest.mark.parametrize("make", [autoencoder, actor_critic])
def test_checks_of_drawn_numbers_are_replayed(make) -> None:
    """A failing one raises what eager raises, and parameters, gradients and generators are those of eager."""
    check(make)


def test_draws_that_a_check_is_behind_are_taken_back() -> None:
    """Numbers drawn before a check of an argument that fails are drawn again by the call that is traced then."""

    def make() -> Any:
        def step(x: Any, first: Any, second: Any) -> Any:
            noise = tc.randn(5, 6) + tc.randperm(6) + tc.multinomial(x, 6)
            return noise + Normal(x, 1.0).log_prob(x * first) * second

        return step, [], []

    check(make)


def test_seeds_that_a_call_sets_are_taken_back() -> None:
    """A check behind ``manual_seed`` is replayed, and where it fails the generator goes on as in eager."""

    def make() -> Any:
        generator = tc.Generator().manual_seed(4)

        def step(x: Any, first: Any, second: Any) -> Any:
            noise = tc.randn(5, 6, generator=generator)
            generator.manual_seed(9)
            return Normal(x + noise, 1.0).log_prob(x * first) * second + tc.rand(6, generator=generator)

        return step, [], [generator]

    check(make)


def test_what_a_step_changes_is_not_checked_before_it() -> None:
    """A check of what an optimizer's step changed cannot be made before it, so that the call runs as it is."""

    def make() -> Any:
        weight = tc.ones(6, requires_grad=True)
        optimizer = tc.optim.SGD([weight], lr=0.5)

        def step(x: Any, first: Any, second: Any) -> Any:
            optimizer.zero_grad()
            (weight * x * first).sum().backward()
            optimizer.step()
            return Normal(weight, 1.0).sample() * second

        return step, [weight], []

    check(make, 0)
    tc.manual_seed(0)
    step = tc.compile(make()[0])
    step(tc.rand(5, 6), tc.tensor(1.0), tc.tensor(1.0))
    assert "after a step that cannot be taken back" in str(step.explain())


@pytest.mark.parametrize("hooked", [False, True])
def test_what_an_optimizer_of_another_kind_writes_is_not_known(hooked) -> None:
    """Behind a step that may write anywhere, a program's own or one with hooks, nothing is checked before it."""

    def make() -> Any:
        weight, slow = tc.ones(6, requires_grad=True), tc.ones(6)

        class Slow(tc.optim.SGD):
            def step(self, closure: Any = None) -> Any:
                super().step(closure)
                slow.lerp_(weight.detach(), 0.5)

        optimizer = tc.optim.SGD([weight], lr=0.5) if hooked else Slow([weight], lr=0.5)
        if hooked:
            optimizer.register_step_post_hook(lambda *_: slow.lerp_(weight.detach(), 0.5) and None)

        def step(x: Any, first: Any, second: Any) -> Any:
            optimizer.zero_grad()
            (weight * x * first).sum().backward()
            optimizer.step()
            return Normal(slow, 1.0).sample() * second

        return step, [weight, slow], []

    check(make, 0)


def test_memory_that_a_step_changes_under_another_name() -> None:
    """A tensor that lies where a parameter does, and a trunk that both steps train, are not looked at before the first step."""

    def shared() -> Any:
        memory = tc.rand(6)
        weight = nn.Parameter(memory.view(1, 6))
        optimizer = tc.optim.SGD([weight], lr=0.1)

        def step(x: Any, first: Any, second: Any) -> Any:
            optimizer.zero_grad()
            (x @ weight.T * first).square().mean().backward()
            optimizer.step()
            return Normal(memory, 1.0).log_prob(memory).sum() * second

        return step, [weight, memory], []

    def trunk() -> Any:
        base, actor, critic = nn.Linear(6, 3), nn.Linear(3, 4), nn.Linear(3, 1)
        every = [*base.parameters(), *actor.parameters(), *critic.parameters()]
        theirs = tc.optim.SGD([*base.parameters(), *critic.parameters()], lr=0.1)
        ours = tc.optim.SGD([*base.parameters(), *actor.parameters()], lr=0.1)

        def step(x: Any, first: Any, second: Any) -> Any:
            theirs.zero_grad()
            (critic(base(x)) * first).square().mean().backward()
            theirs.step()
            mean, deviation = (actor(base(x)) * second).chunk(2, -1)
            policy = Normal(mean, deviation.exp())
            loss = policy.log_prob(policy.rsample()).mean()
            ours.zero_grad()
            loss.backward()
            ours.step()
            return loss

        return step, every, []

    check(shared, 0)
    check(trunk, 0)


def test_gradients_that_were_read_before_they_are_forgotten() -> None:
    """A call that fails behind ``zero_grad`` reads the gradients that the call before left, as in eager."""

    def make() -> Any:
        weight = tc.ones(6, requires_grad=True)
        weight.grad = tc.full((6,), 2.0)
        optimizer = tc.optim.SGD([weight], lr=0.5)

        def step(x: Any, first: Any, second: Any) -> Any:
            before = 0.0 if weight.grad is None else weight.grad.sum()
            optimizer.zero_grad()
            loss = -Normal(weight.sum(), 1.0).log_prob(x * first).sum() + before
            loss.backward()
            return loss * second

        return step, [weight], []

    check(make)


def test_indices_out_of_range_behind_a_step() -> None:
    """Indices that do not depend on a step are checked before it, and others make the call run as it is: eager's IndexError."""

    def make(depends: bool) -> Any:
        table = tc.ones(8, 3).requires_grad_()
        optimizer = tc.optim.SGD([table], lr=0.1)

        def step(x: Any, first: Any, second: Any) -> Any:
            places = tc.nan_to_num(x.argmax(-1) * first, nan=50.0).long()
            optimizer.zero_grad()
            table[places].sum().backward()
            optimizer.step()
            more = (table[:, 0] * 0).long() if depends else tc.randint(0, 8, (2,))
            return nn.functional.embedding(tc.nan_to_num(more * second, nan=50.0).long(), table).sum()

        return step, [table], []

    check(lambda: make(False))
    check(lambda: make(True), 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda t, i: t[i],
        lambda t, i: t.gather(0, i[:, None]),
        lambda t, i: t.take(i),
        lambda t, i: t.scatter(0, i[:, None], 2.0),
        lambda t, i: t.index_add(0, i, tc.ones(2, 3)),
        lambda t, i: t.index_put((i,), tc.tensor(1.0)),
        lambda t, i: t + tc.zeros(8, 3).index_fill_(0, i, 2.0),
    ],
)
def test_kernels_that_refuse_an_index(function) -> None:
    """An index outside that a kernel finds is eager's error, with the generator where eager leaves it."""
    found = []
    for compiled in (False, True):
        tc.manual_seed(0)
        f = lambda t, i: function(t + tc.rand(8, 3), i)  # noqa: E731
        f = tc.compile(f) if compiled else f
        for i in (1, 2):
            f(tc.ones(8, 3), tc.tensor([i, 2]))
        with pytest.raises((IndexError, RuntimeError)) as error:
            f(tc.ones(8, 3), tc.tensor([1, 40]))
        found.append([type(error.value), str(error.value), tc.get_rng_state().tolist()])
    assert found[1] == found[0]


def test_samples_of_a_policy() -> None:
    """Categories drawn by weights, checked as a sample and used as an index."""

    def make() -> Any:
        policy = nn.Linear(6, 4)
        optimizer = tc.optim.SGD(policy.parameters(), lr=0.1)

        def step(x: Any, first: Any, second: Any) -> Any:
            optimizer.zero_grad()
            chances = Categorical(logits=policy(x) * first)
            taken = chances.sample()
            reward = tc.arange(4.0)[taken]
            loss = -(chances.log_prob(taken) * reward * second).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, [*policy.parameters()], []

    check(make)


def test_marks_of_generators() -> None:
    """A generator goes back to a mark: its words, the normals that it keeps, and its seed."""
    generator = tc.Generator().manual_seed(3)
    for draws in (0, 1, 5, 700):
        tc.randn(draws, generator=generator)
        mark, state = generator.host.mark(), generator.get_state()
        first = tc.randn(3, generator=generator)
        tc.randn(2000, generator=generator.manual_seed(draws))
        generator.host.go_back(mark)
        assert generator.initial_seed() == 3
        assert generator.get_state().tolist() == state.tolist()
        assert tc.randn(3, generator=generator).tolist() == first.tolist()
        generator.host.go_back(mark)
