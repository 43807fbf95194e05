"""Differential equations, graphs, geometry, statistics and sounds."""

from __future__ import annotations

from typing import Any

from .common import Step, layers, trained

__all__ = [
    "clusters",
    "differential_equation",
    "flow",
    "gaussian_process",
    "graph_attention",
    "graph_convolution",
    "laplacian",
    "radiance_field",
    "registration",
    "rotations",
    "spectrogram",
]


def laplacian(torch: Any) -> Step:
    """A net of sines whose Laplacian is to be zero: second derivatives in a loss, 1,000 points."""
    layers = torch.nn.ModuleList([torch.nn.Linear(2, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)])
    points = torch.rand(1000, 2)

    def loss() -> Any:
        x = points.clone().requires_grad_()
        y = layers[2](torch.sin(layers[1](torch.sin(layers[0](x)))))
        slope = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
        bends = [torch.autograd.grad(slope[:, i].sum(), x, create_graph=True)[0][:, i] for i in (0, 1)]
        return (bends[0] + bends[1]).pow(2).mean() + (y - 1).pow(2).mean()

    return trained(torch, loss, torch.optim.Adam(layers.parameters(), 1e-4))


def differential_equation(torch: Any) -> Step:
    """Gradients through ten steps of Runge and Kutta's fourth order, the slope a small net."""
    slope, start = layers(torch, 2, 50, 2, between="Tanh"), torch.randn(20, 2)

    def loss() -> Any:
        y, h = start, 0.1
        for _ in range(10):
            a = slope(y)
            b = slope(y + h / 2 * a)
            c = slope(y + h / 2 * b)
            y = y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c))
        return y.pow(2).mean()

    return trained(torch, loss, torch.optim.Adam(slope.parameters()))


def flow(torch: Any) -> Step:
    """A normalizing flow of four couplings, 512 points."""
    couplings = torch.nn.ModuleList([layers(torch, 1, 32, 2, between="Tanh") for _ in range(4)])
    points, base = torch.randn(512, 2), torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))

    def loss() -> Any:
        x, volume = points, 0.0
        for one in couplings:
            kept, moved = x[:, :1], x[:, 1:]
            scale, shift = one(kept).chunk(2, 1)
            x = torch.cat([moved * scale.tanh().exp() + shift, kept], 1)
            volume = volume + scale.tanh()[:, 0]
        return -(base.log_prob(x) + volume).mean()

    return trained(torch, loss, torch.optim.Adam(couplings.parameters()))


def graph_convolution(torch: Any) -> Step:
    """Two layers of graph convolution over 2,708 nodes and 10,556 edges (the size of Cora)."""
    nn, F = torch.nn, torch.nn.functional
    first, second = nn.Linear(128, 16), nn.Linear(16, 7)
    nodes, labels = torch.randn(2708, 128), torch.randint(0, 7, (2708,))
    (sources, targets), weights = torch.randint(0, 2708, (2, 10556)), torch.rand(10556, 1)

    def gathered(x: Any) -> Any:
        return torch.zeros_like(x).index_add(0, targets, x[sources] * weights)

    def loss() -> Any:
        hidden = F.dropout(F.relu(gathered(first(nodes))), 0.5)
        return F.nll_loss(F.log_softmax(gathered(second(hidden)), 1), labels)

    parameters = [*first.parameters(), *second.parameters()]
    return trained(torch, loss, torch.optim.Adam(parameters, 0.01, weight_decay=5e-4))


def graph_attention(torch: Any) -> Step:
    """Attention of eight heads along the 10,000 edges of 2,000 nodes: a softmax over the edges of each node."""
    turn, score = torch.nn.Linear(64, 64, bias=False), torch.nn.Parameter(torch.randn(8, 16) * 0.1)
    nodes, (sources, targets) = torch.randn(2000, 64), torch.randint(0, 2000, (2, 10000))
    everywhere = targets[:, None].expand(-1, 8)

    def loss() -> Any:
        x = turn(nodes).view(2000, 8, 8)
        raw = torch.nn.functional.leaky_relu((torch.cat([x[sources], x[targets]], -1) * score).sum(-1), 0.2)
        most = torch.full((2000, 8), -1e9).scatter_reduce(0, everywhere, raw.detach(), "amax")
        share = (raw - most[targets]).exp()
        whole = torch.zeros(2000, 8).index_add(0, targets, share)
        share = share / (whole[targets] + 1e-9)
        return torch.zeros(2000, 8, 8).index_add(0, targets, x[sources] * share[..., None]).pow(2).mean()

    return trained(torch, loss, torch.optim.Adam([*turn.parameters(), score], 0.01))


def radiance_field(torch: Any) -> Step:
    """A neural radiance field: 64 rays of 64 places, ten frequencies, and what a ray sees of them."""
    F, net = torch.nn.functional, layers(torch, 63, 128, 128, 4)
    origins, ways, depths = torch.randn(64, 3), torch.randn(64, 3), torch.linspace(2, 6, 64)
    frequencies = 2.0 ** torch.arange(10)
    between = torch.cat([depths[1:] - depths[:-1], torch.tensor([1e10])])

    def loss() -> Any:
        places = (origins[:, None] + ways[:, None] * depths[:, None]).reshape(-1, 3)
        waves = (places[:, None] * frequencies[:, None]).flatten(1)
        found = net(torch.cat([places, waves.sin(), waves.cos()], -1)).view(64, 64, 4)
        opaque = 1 - torch.exp(-F.relu(found[..., 3]) * between)
        left = torch.cumprod(torch.cat([torch.ones(64, 1), 1 - opaque + 1e-10], 1), 1)[:, :-1]
        seen = ((opaque * left)[..., None] * torch.sigmoid(found[..., :3])).sum(1)
        return (seen - 0.5).pow(2).mean()

    return trained(torch, loss, torch.optim.Adam(net.parameters(), 5e-4))


def clusters(torch: Any) -> Step:
    """Three rounds of k-means: 20,000 points of 16 numbers, 32 means."""
    points = torch.randn(20_000, 16)

    def step() -> float:
        means = points[:32].clone()
        for _ in range(3):
            nearest = torch.cdist(points, means).argmin(1)
            counts = torch.bincount(nearest, minlength=32).clamp(min=1)
            means = torch.zeros_like(means).index_add_(0, nearest, points) / counts[:, None]
        return means.sum().item()

    return step


def gaussian_process(torch: Any) -> Step:
    """The likelihood of 200 places under a Gaussian process, and its gradient."""
    places = torch.linspace(0, 1, 200)[:, None]
    heights = torch.sin(6 * places)
    length, noise = torch.nn.Parameter(torch.tensor(0.3)), torch.nn.Parameter(torch.tensor(0.1))

    def loss() -> Any:
        near = torch.exp(-0.5 * torch.cdist(places, places).pow(2) / length**2)
        factor = torch.linalg.cholesky(near + (noise**2 + 1e-3) * torch.eye(200))
        fitted = (heights * torch.cholesky_solve(heights, factor)).sum()
        return 0.5 * fitted + factor.diagonal().log().sum()

    return trained(torch, loss, torch.optim.Adam([length, noise], 0.01))


def registration(torch: Any) -> Step:
    """The rotation that brings 5,000 points onto 5,000 others."""
    points, others = torch.randn(5000, 3), torch.randn(5000, 3)

    def step() -> float:
        centred, around = points - points.mean(0), others - others.mean(0)
        left, _, right = torch.linalg.svd(centred.T @ around)
        turned = points @ (left @ right) + others.mean(0)
        return (turned - others).norm(dim=1).mean().item()

    return step


def rotations(torch: Any) -> Step:
    """20,000 vectors turned by as many quaternions."""
    quaternions, vectors = torch.randn(20_000, 4), torch.randn(20_000, 3)

    def step() -> float:
        units = torch.nn.functional.normalize(quaternions, dim=-1)
        share, axis = units[:, :1], units[:, 1:]
        twice = 2 * torch.cross(axis, vectors, dim=-1)
        turned = vectors + share * twice + torch.cross(axis, twice, dim=-1)
        return turned.norm(dim=-1).mean().item()

    return step


def spectrogram(torch: Any) -> Step:
    """The logarithms of 40 bands of four sounds of a second."""
    sounds, window, bands = torch.randn(4, 16_000), torch.hann_window(400), torch.rand(201, 40)

    def step() -> float:
        power = torch.stft(sounds, 400, 160, window=window, return_complex=True).abs() ** 2
        return (power.transpose(1, 2) @ bands).clamp(min=1e-10).log10().mean().item()

    return step
