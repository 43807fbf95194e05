"""The generators that devices have of their own, seeded with the process's."""

from __future__ import annotations

from tensorcore.backend.registry import made_devices

__all__ = ["seed_devices"]


def seed_devices(seed: int) -> int:
    """Start the generator of each device in use over, where it has one of its own; returns the seed."""
    for device in made_devices():
        if device.own_generator is not None:
            device.own_generator.manual_seed(seed)
    return seed
