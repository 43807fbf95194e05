"""Nets that learn to act, to draw and to rank."""

from __future__ import annotations

from typing import Any

from .common import Step, layers, trained

__all__ = [
    "acting",
    "autoencoder",
    "averaged_weights",
    "contrastive",
    "gradient_penalty",
    "policy_gradient",
    "q_learning",
    "recommender",
    "soft_actor_critic",
]


def q_learning(torch: Any) -> Step:
    """Deep Q-learning: Huber's loss beside a target net, 64 transitions."""
    net, target = layers(torch, 4, 64, 64, 2), layers(torch, 4, 64, 64, 2)
    states, following, rewards = torch.randn(64, 4), torch.randn(64, 4), torch.randn(64, 1)
    actions = torch.randint(0, 2, (64, 1))

    def loss() -> Any:
        with torch.no_grad():
            wanted = rewards + 0.99 * target(following).max(1, keepdim=True)[0]
        return torch.nn.functional.smooth_l1_loss(net(states).gather(1, actions), wanted)

    return trained(torch, loss, torch.optim.Adam(net.parameters()), clip=list(net.parameters()))


def acting(torch: Any) -> Step:
    """One action of a policy for one observation."""
    net, observation = layers(torch, 4, 64, 2, between="Tanh"), torch.randn(4)

    def step() -> float:
        with torch.no_grad():
            policy = torch.distributions.Categorical(logits=net(observation))
            return policy.log_prob(policy.sample()).item()

    return step


def policy_gradient(torch: Any) -> Step:
    """Proximal policy optimisation: normal actions, a clipped ratio, a value net and the entropy, 64 actions."""
    net, values = layers(torch, 8, 64, 64, 2, between="Tanh"), layers(torch, 8, 64, 1, between="Tanh")
    deviation = torch.nn.Parameter(torch.zeros(2))
    seen, actions, before, advantage, returns = (torch.randn(64, *more) for more in ((8,), (2,), (), (), ()))

    def loss() -> Any:
        policy = torch.distributions.Normal(net(seen), deviation.exp())
        ratio = (policy.log_prob(actions).sum(-1) - before).exp()
        surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        missed = torch.nn.functional.mse_loss(values(seen)[:, 0], returns)
        return 0.5 * missed - surrogate - 0.01 * policy.entropy().sum(-1).mean()

    parameters = [*net.parameters(), *values.parameters(), deviation]
    return trained(torch, loss, torch.optim.Adam(parameters, 3e-4), clip=list(net.parameters()))


def autoencoder(torch: Any) -> Step:
    """A variational autoencoder of 784 pixels, 128 pictures."""
    nn, F = torch.nn, torch.nn.functional
    encode, mean, spread = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
    decode = layers(torch, 20, 400, 784)
    pictures = torch.rand(128, 784)

    def loss() -> Any:
        hidden = F.relu(encode(pictures))
        mu, logarithm = mean(hidden), spread(hidden)
        drawn = decode(mu + torch.randn_like(mu) * torch.exp(0.5 * logarithm))
        missed = F.binary_cross_entropy(torch.sigmoid(drawn), pictures, reduction="sum")
        return missed - 0.5 * torch.sum(1 + logarithm - mu.pow(2) - logarithm.exp())

    parameters = nn.ModuleList([encode, mean, spread, decode]).parameters()
    return trained(torch, loss, torch.optim.Adam(parameters))


def gradient_penalty(torch: Any) -> Step:
    """A Wasserstein critic with a penalty on the norm of its gradient, 256 points."""
    critic = layers(torch, 2, 128, 128, 1, between="LeakyReLU")
    real, made = torch.randn(256, 2), torch.randn(256, 2)

    def loss() -> Any:
        share = torch.rand(256, 1)
        between = (share * real + (1 - share) * made).requires_grad_()
        slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
        return critic(made).mean() - critic(real).mean() + 10 * ((slope.norm(2, 1) - 1) ** 2).mean()

    return trained(torch, loss, torch.optim.Adam(critic.parameters(), 1e-4))


def soft_actor_critic(torch: Any) -> Step:
    """Soft actor and critic: squashed normal actions, a target net that follows slowly, 256 transitions."""
    net, critic, target = (
        layers(torch, 17, 256, 256, 12),
        layers(torch, 23, 256, 256, 1),
        layers(torch, 23, 256, 256, 1),
    )
    updates = [torch.optim.Adam(one.parameters(), 3e-4) for one in (net, critic)]
    seen, actions, rewards = torch.randn(256, 17), torch.rand(256, 6), torch.randn(256, 1)

    def act() -> tuple[Any, Any]:
        mean, spread = net(seen).chunk(2, -1)
        policy = torch.distributions.Normal(mean, spread.clamp(-5, 2).exp())
        drawn = policy.rsample()
        likelihood = policy.log_prob(drawn) - torch.log(1 - drawn.tanh() ** 2 + 1e-6)
        return drawn.tanh(), likelihood.sum(-1, keepdim=True)

    def step() -> float:
        with torch.no_grad():
            chosen, likelihood = act()
            wanted = rewards + 0.99 * (target(torch.cat([seen, chosen], 1)) - 0.2 * likelihood)
        missed = torch.nn.functional.mse_loss(critic(torch.cat([seen, actions], 1)), wanted)
        updates[1].zero_grad()
        missed.backward()
        updates[1].step()
        chosen, likelihood = act()
        updates[0].zero_grad()
        (0.2 * likelihood - critic(torch.cat([seen, chosen], 1))).mean().backward()
        updates[0].step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), critic.parameters(), strict=True):
                slow.lerp_(fast, 0.005)
        return missed.item()

    return step


def contrastive(torch: Any) -> Step:
    """Two views of each of 128 examples are to be alike, and unlike all others."""
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Linear(128, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 64))
    views = torch.randn(256, 128)
    partners = torch.arange(256).roll(128)

    def loss() -> Any:
        places = F.normalize(net(views), dim=1)
        return F.cross_entropy((places @ places.T / 0.5).fill_diagonal_(-1e9), partners)

    return trained(torch, loss, torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=1e-4))


def recommender(torch: Any) -> Step:
    """Eight features of 10,000 values each, embedded, and 13 numbers, batch 256."""
    nn = torch.nn
    tables = nn.ModuleList([nn.Embedding(10000, 16) for _ in range(8)])
    net = layers(torch, 8 * 16 + 13, 64, 1)
    values, numbers, truth = (
        torch.randint(0, 10000, (256, 8)),
        torch.randn(256, 13),
        torch.randint(0, 2, (256,)).float(),
    )

    def loss() -> Any:
        features = torch.cat([*(table(values[:, i]) for i, table in enumerate(tables)), numbers], 1)
        return nn.functional.binary_cross_entropy_with_logits(net(features)[:, 0], truth)

    return trained(torch, loss, torch.optim.Adagrad([*tables.parameters(), *net.parameters()], 0.01))


def averaged_weights(torch: Any) -> Step:
    """A moving average of the weights of ten layers of 128, one by one."""
    weights = list(layers(torch, *[128] * 11).parameters())
    average = [weight.detach().clone() for weight in weights]

    def step() -> float:
        with torch.no_grad():
            for slow, weight in zip(average, weights, strict=True):
                slow.mul_(0.999).add_(weight, alpha=0.001)
        return average[0][0, 0].item()

    return step
