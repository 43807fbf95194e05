"""Trains a net to balance a pole on a cart: proximal policy optimisation in gymnasium's CartPole.

    python examples/cart_pole.py                    balances for all of the 500 steps that an episode has
    python examples/cart_pole.py --smoke            a few updates, to see that everything works
    python examples/cart_pole.py --compare-torch    the first losses beside PyTorch's

Eight carts play 64 steps, and the net learns from what it saw: that is one update. The environments and the draws of
actions come from the seed, so the whole game is the same in both libraries as long as the numbers are.

After 300 updates the pole stays up for 500 of 500 steps in each of ten new episodes (10 s on one thread); with the
seeds 1 to 5 between 496 and 500. Another processor rounds otherwise, and plays another game.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
from stage import BLUE, ORANGE, Example, Way, curve, perform

CARTS, LENGTH, PASSES, PARTS = 8, 64, 4, 4
DISCOUNT, TRACE, CLIP = 0.99, 0.95, 0.2


def make_model(torch: Any) -> tuple[Any, Any]:
    """Two nets: states (N, 4) to scores of left and right (N, 2), and to what is still to be had (N, 1)."""
    nn: Any = torch.nn

    def layer(inputs: int, outputs: int, gain: float) -> Any:
        made = nn.Linear(inputs, outputs)
        nn.init.orthogonal_(made.weight, gain)
        nn.init.zeros_(made.bias)
        return made

    def net(outputs: int, gain: float) -> Any:
        return nn.Sequential(
            layer(4, 64, 2**0.5), nn.Tanh(), layer(64, 64, 2**0.5), nn.Tanh(), layer(64, outputs, gain)
        )

    return net(2, 0.01), net(1, 1.0)


def policy_of(torch: Any, actor: Any, states: Any) -> Any:
    """How likely each action is; unchecked, for a check would need the values at every call."""
    return torch.distributions.Categorical(logits=actor(states), validate_args=False)


def loss_of(torch: Any, actor: Any, critic: Any, x: Any, action: Any, chance: Any, advantage: Any, target: Any) -> Any:
    """The clipped surrogate, the critic's error, and a little for keeping an open mind."""
    policy = policy_of(torch, actor, x)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = torch.exp(policy.log_prob(action) - chance)
    gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
    error = torch.nn.functional.mse_loss(critic(x).squeeze(-1), target)
    return 0.5 * error - gain - 0.01 * policy.entropy().mean()


class CartPole(Example):
    """The game, and how long the pole stays up."""

    name = "cart_pole"
    steps, smoke_steps = 300, 22
    unit = "update"

    def __init__(self, torch: Any, given: Namespace, way: Way) -> None:
        import gymnasium

        super().__init__(torch, given, way)
        self.make = lambda: gymnasium.make("CartPole-v1")
        self.actor, self.critic = (one.to(self.device) for one in make_model(torch))
        self.lengths: list[tuple[int, float]] = []

    def tensor(self, values: Any) -> Any:
        """Numbers as a float32 tensor on the device."""
        return self.torch.as_tensor(np.asarray(values, np.float32)).to(self.device)

    def run(self, steps: int) -> Iterator[float]:
        """Play and learn by turns; the loss is that of the update's last part."""
        torch, actor, critic = self.torch, self.actor, self.critic
        parameters = [*actor.parameters(), *critic.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=5e-4, eps=1e-5)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)

        @self.way.compile
        def step(*part: Any) -> Any:
            loss = loss_of(torch, actor, critic, *part)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
            return loss

        carts = [self.make() for _ in range(CARTS)]
        states = np.stack([cart.reset(seed=self.given.seed % 2**31 + i)[0] for i, cart in enumerate(carts)])
        played = np.zeros(CARTS)
        for update in range(steps):
            seen, acts, chances, rewards, ends, ahead = [], [], [], [], [], []
            for _ in range(LENGTH):
                with torch.no_grad():
                    policy = policy_of(torch, actor, self.tensor(states))
                    action = policy.sample()
                seen.append(states)
                acts.append(action)
                chances.append(policy.log_prob(action))
                states, reward, end, lost = self.play(carts, action.tolist())
                played += 1
                self.lengths += [(update + 1, length) for length in played[end]]
                played[end] = 0
                rewards.append(reward)
                ends.append(end)
                ahead.append(lost)
            x, action, chance = self.tensor(np.stack(seen)), torch.stack(acts), torch.stack(chances)
            advantage, target = self.judge(x, self.tensor(states), rewards, ends, ahead)
            flat = [one.flatten(0, 1) for one in (x, action, chance, advantage, target)]
            for _ in range(PASSES):
                for chosen in torch.randperm(CARTS * LENGTH).to(self.device).chunk(PARTS):
                    loss = step(*(one[chosen] for one in flat))
            schedule.step()
            yield loss.item()

    @staticmethod
    def play(carts: list[Any], actions: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """One step of each: the states after it, rewards, where an episode ended, and where the pole had fallen."""
        states, rewards, ends, fallen = [], [], [], []
        for cart, action in zip(carts, actions, strict=True):
            state, reward, fell, out_of_time, _ = cart.step(action)
            if fell or out_of_time:
                state, _ = cart.reset()
            states.append(state)
            rewards.append(reward)
            ends.append(fell or out_of_time)
            fallen.append(fell)
        return np.stack(states), np.array(rewards), np.array(ends), np.array(fallen)

    def judge(self, x: Any, last: Any, rewards: list[Any], ends: list[Any], fallen: list[Any]) -> tuple[Any, Any]:
        """How much better each step went than was expected (generalised advantage), and what is to be expected."""
        with self.torch.no_grad():
            values = self.critic(self.torch.cat([x, last[None]])).squeeze(-1).cpu().numpy()
        advantage, trace = np.zeros((LENGTH, CARTS)), np.zeros(CARTS)
        for i in reversed(range(LENGTH)):
            # an episode that ran out of time would have gone on: its own value stands for what was to come
            coming = np.where(ends[i], np.where(fallen[i], 0.0, values[i]), values[i + 1])
            trace = rewards[i] + DISCOUNT * coming - values[i] + DISCOUNT * TRACE * np.where(ends[i], 0.0, trace)
            advantage[i] = trace
        return self.tensor(advantage), self.tensor(advantage + values[:-1])

    def report(self) -> str:
        """How long it balances in ten new episodes, taking the likelier action."""
        cart, lengths = self.make(), []
        for episode in range(10):
            state, ended, length = cart.reset(seed=1000 + episode)[0], False, 0
            while not ended:
                with self.torch.no_grad():
                    action = self.actor(self.tensor(state)).argmax().item()
                state, _, fell, out_of_time, _ = cart.step(action)
                ended, length = fell or out_of_time, length + 1
            lengths.append(length)
        return f"balances for {np.mean(lengths):.0f} of 500 steps on average in ten new episodes"

    def draw(self, figure: Any, losses: list[float]) -> None:
        """How long each episode lasted, and the loss."""
        left, right = figure.subplots(1, 2)
        if self.lengths:
            left.plot(*zip(*self.lengths, strict=True), ".", color=ORANGE, markersize=4, alpha=0.6)
        left.set(xlabel="update", ylabel="steps until the pole fell", ylim=(0, 510), title="Episodes")
        left.grid(alpha=0.25)
        curve(right, losses, BLUE)
        right.set(xlabel="update", ylabel="loss", title="Loss")


if __name__ == "__main__":
    sys.exit(perform(CartPole, __doc__))
