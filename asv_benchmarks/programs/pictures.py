"""Nets over pictures, signals and volumes, and what is done to pictures beside them."""

from __future__ import annotations

import itertools
from typing import Any

from .common import Step, trained

__all__ = [
    "adversarial",
    "augmented_pictures",
    "boxes",
    "denoiser",
    "heartbeats",
    "mixed_pictures",
    "mobile_inference",
    "mobile_training",
    "volumes",
]


def adversarial(torch: Any) -> Step:
    """A convolutional generator and its judge (DCGAN), a step of each, 16 pictures of 32x32."""
    nn, F = torch.nn, torch.nn.functional
    judge, generator, channels = [], [], [3, 32, 64, 128]
    for inside, outside in itertools.pairwise(channels):
        judge += [nn.Conv2d(inside, outside, 4, 2, 1), nn.BatchNorm2d(outside), nn.LeakyReLU(0.2)]
        generator = [nn.ConvTranspose2d(outside, inside, 4, 2, 1), nn.BatchNorm2d(inside), nn.ReLU(), *generator]
    judge = nn.Sequential(*judge, nn.Conv2d(128, 1, 4))
    start = [nn.ConvTranspose2d(64, 128, 4), nn.BatchNorm2d(128), nn.ReLU()]
    generator = nn.Sequential(*start, *generator[:-2], nn.Tanh())
    updates = [torch.optim.Adam(net.parameters(), 2e-4, betas=(0.5, 0.999)) for net in (judge, generator)]
    pictures, yes, no = torch.randn(16, 3, 32, 32), torch.ones(16), torch.zeros(16)

    def judged(x: Any, truth: Any) -> Any:
        return F.binary_cross_entropy_with_logits(judge(x).view(-1), truth)

    def step() -> float:
        made = generator(torch.randn(16, 64, 1, 1))
        losses = judged(pictures, yes) + judged(made.detach(), no), lambda: judged(made, yes)
        updates[0].zero_grad()
        losses[0].backward()
        updates[0].step()
        updates[1].zero_grad()
        losses[1]().backward()
        updates[1].step()
        return losses[0].item()

    return step


def denoiser(torch: Any) -> Step:
    """A U-Net of two levels that is to find the noise in 8 pictures of 32x32, told how much there is."""
    nn, F = torch.nn, torch.nn.functional

    def block(inside: int, outside: int) -> Any:
        return nn.Sequential(nn.GroupNorm(8, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1))

    first, last, amount = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1), nn.Linear(32, 64)
    down, lower, middle = block(32, 64), block(64, 64), block(64, 64)
    upper, up = block(128, 32), block(64, 32)
    net = nn.ModuleList([first, last, amount, down, lower, middle, upper, up])
    pictures, frequencies = torch.randn(8, 3, 32, 32), torch.exp(-0.5 * torch.arange(16))

    def loss() -> Any:
        waves = torch.randint(0, 1000, (8,))[:, None] * frequencies
        noise = torch.randn_like(pictures)
        high = first(pictures + noise)
        half = down(F.avg_pool2d(high, 2))
        quarter = lower(F.avg_pool2d(half, 2)) + amount(torch.cat([waves.sin(), waves.cos()], 1))[:, :, None, None]
        half = upper(torch.cat([F.interpolate(middle(quarter), scale_factor=2), half], 1))
        return F.mse_loss(last(up(torch.cat([F.interpolate(half, scale_factor=2), high], 1))), noise)

    return trained(torch, loss, torch.optim.AdamW(net.parameters()))


def _mobile(torch: Any) -> Step:
    """Depthwise convolutions between convolutions of one pixel, as in MobileNet."""
    nn = torch.nn
    made = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()]
    for inside, outside, stride in ((16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2)):
        made += [nn.Conv2d(inside, inside, 3, stride, 1, groups=inside, bias=False), nn.BatchNorm2d(inside), nn.ReLU6()]
        made += [nn.Conv2d(inside, outside, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU6()]
    return nn.Sequential(*made, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def mobile_inference(torch: Any) -> Step:
    """One picture of 96x96 through a small MobileNet."""
    net, picture = _mobile(torch).eval(), torch.randn(1, 3, 96, 96)

    def step() -> float:
        with torch.no_grad():
            return net(picture).sum().item()

    return step


def mobile_training(torch: Any) -> Step:
    """A small MobileNet, 8 pictures of 64x64."""
    net, pictures, labels = _mobile(torch), torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))

    def loss() -> Any:
        return torch.nn.functional.cross_entropy(net(pictures), labels)

    return trained(torch, loss, torch.optim.SGD(net.parameters(), 0.01, momentum=0.9))


def mixed_pictures(torch: Any) -> Step:
    """A small convolutional net that learns mixtures of pairs of 64 pictures (mixup), with a schedule."""
    nn = torch.nn
    body = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    body += [nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    net = nn.Sequential(*body, nn.Flatten(), nn.Linear(32, 10))
    pictures, labels = torch.randn(64, 3, 32, 32), nn.functional.one_hot(torch.randint(0, 10, (64,)), 10).float()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1_000_000)

    def loss() -> Any:
        order = torch.randperm(64)
        x, y = (0.7 * whole + 0.3 * whole[order] for whole in (pictures, labels))
        return nn.functional.cross_entropy(net(x), y)

    update = trained(torch, loss, optimizer)

    def step() -> float:
        found = update()
        schedule.step()
        return found

    return step


def augmented_pictures(torch: Any) -> Step:
    """16 pictures of 64x64 turned, mirrored and normalized."""
    pictures = torch.rand(16, 3, 64, 64)

    def step() -> float:
        turn = torch.tensor([[0.9, 0.1, 0.0], [-0.1, 0.9, 0.0]]).expand(16, 2, 3)
        grid = torch.nn.functional.affine_grid(turn, pictures.shape, align_corners=False)
        x = torch.nn.functional.grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)
        x = (x - x.mean((2, 3), keepdim=True)) / x.std((2, 3), keepdim=True)
        return x.flip(3).abs().mean().item()

    return step


def heartbeats(torch: Any) -> Step:
    """Convolutions along 32 signals of 500 numbers."""
    nn = torch.nn
    body = [nn.Conv1d(1, 32, 7, 2, 3), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(3, 2, 1)]
    body += [nn.Conv1d(32, 64, 3, padding=1), nn.ReLU(), nn.Conv1d(64, 64, 3, padding=2, dilation=2), nn.ReLU()]
    net = nn.Sequential(*body, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 5))
    signals, labels = torch.randn(32, 1, 500), torch.randint(0, 5, (32,))

    def loss() -> Any:
        return nn.functional.cross_entropy(net(signals), labels)

    return trained(torch, loss, torch.optim.Adam(net.parameters()))


def volumes(torch: Any) -> Step:
    """Convolutions through four volumes of 16x32x32."""
    nn = torch.nn
    body = [nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1), nn.ReLU()]
    net = nn.Sequential(*body, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 2))
    scans, labels = torch.randn(4, 1, 16, 32, 32), torch.randint(0, 2, (4,))

    def loss() -> Any:
        return nn.functional.cross_entropy(net(scans), labels)

    return trained(torch, loss, torch.optim.Adam(net.parameters()))


def boxes(torch: Any) -> Step:
    """How much each two of 1,000 boxes have in common, and which have a better one above them."""
    corners, scores = torch.rand(1000, 4) * 100, torch.rand(1000)
    corners[:, 2:] += corners[:, :2]

    def step() -> float:
        x = corners[scores.argsort(descending=True)]
        areas = (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
        upper, lower = torch.max(x[:, None, :2], x[:, :2]), torch.min(x[:, None, 2:], x[:, 2:])
        common = (lower - upper).clamp(min=0).prod(-1)
        alike = common / (areas[:, None] + areas - common) > 0.5
        return float(alike.triu(1).any(0).sum().item())

    return step
