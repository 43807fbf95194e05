"""What programs ask of all devices of one kind: the functions behind ``torch.cuda``, ``torch.mps`` and ``torch.xpu``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tensorcore.backend.registry import device as find_device
from tensorcore.backend.registry import make_current
from tensorcore.errors import ArgumentError, DeviceUnavailable, UnknownDevice, UsageError
from tensorcore.ops.creation.create import from_numpy

__all__ = ["DeviceContext", "Devices", "Properties"]


class Devices:
    """The devices of one kind; each method is a function of that kind's room.

    Without such a device, what asks about it says that there is none, what would give memory back has nothing to do, and
    only what needs one raises, as in PyTorch.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._fractions: dict[int, float] = {}

    def is_available(self) -> bool:
        """Whether a plugin offers such devices and there is one."""
        return self.device_count() > 0

    def device_count(self) -> int:
        """How many there are; 0 where no plugin offers them."""
        try:
            return type(find_device(self.kind)).device_count()
        except (DeviceUnavailable, UnknownDevice):
            return 0

    def is_initialized(self) -> bool:
        """Whether there is one to be used."""
        return self.is_available()

    def init(self) -> None:
        """Make the first device, or say why it cannot be used."""
        self._device(None)

    def current_device(self) -> int:
        """The index of the device that the kind's bare name means."""
        return self._device(None).index  # type: ignore[no-any-return]

    def set_device(self, device: Any) -> None:
        """Let the kind's bare name mean this device, in this thread; nothing for a negative index."""
        if not isinstance(device, int) or device >= 0:
            make_current(self._device(device))

    def device(self, device: Any) -> DeviceContext:
        """``set_device`` for the length of a ``with`` block; None and negative indices change nothing."""
        return DeviceContext(self, device)

    def device_of(self, obj: Any) -> DeviceContext:
        """``device`` of the one that a tensor is on, if it is of this kind."""
        place = getattr(obj, "device", None)
        return DeviceContext(self, place if place is not None and place.type == self.kind else None)

    def get_device_name(self, device: Any = None) -> str:
        """The device's name."""
        return str(self._device(device).properties()["name"])

    def get_device_properties(self, device: Any = None) -> Properties:
        """What the device is, as attributes."""
        return Properties(**self._device(device).properties())

    def report(self) -> dict[str, Any]:
        """What the current device's backend is made of."""
        return dict(self._device(None).report())

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """The major and the minor number of what its kernels may use."""
        found = self._device(device).properties()
        return found["major"], found["minor"]

    def synchronize(self, device: Any = None) -> None:
        """Return when all work that the device was given is done."""
        self._device(device).synchronize()

    # Seeds: of the generators that devices have of their own; the others' numbers come from the default one

    def manual_seed(self, seed: int) -> None:
        """Start the current device's generator over; nothing where there is none."""
        seed = int(seed)
        if self.is_available() and (own := self._device(None).own_generator) is not None:
            own.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Start the generators of all devices over."""
        seed = int(seed)
        for own in self._generators():
            own.manual_seed(seed)

    def seed(self) -> None:
        """Start the current device's generator over from a seed that nobody can foretell."""
        if self.is_available() and (own := self._device(None).own_generator) is not None:
            own.seed()

    def seed_all(self) -> None:
        """Start the generators of all devices over from one such seed."""
        found = None
        for own in self._generators():
            found = own.seed() if found is None else own.manual_seed(found).initial_seed()

    def initial_seed(self) -> int:
        """The seed that the current device's generator started from."""
        return int(self._own("initial_seed", None).initial_seed())

    def get_rng_state(self, device: Any = None) -> Any:
        """The state of the device's own generator, as a uint8 tensor on the host."""
        return from_numpy(self._own("get_rng_state", device).get_state())

    def set_rng_state(self, new_state: Any, device: Any = None) -> None:
        """Let the device's own generator go on from a state."""
        self._own("set_rng_state", device).set_state(new_state.detach().cpu().numpy())

    def get_rng_state_all(self) -> list[Any]:
        """The states of the generators that the devices have beside the default one."""
        return [from_numpy(own.get_state()) for own in self._generators()]

    def set_rng_state_all(self, new_states: Any) -> None:
        """Put back what ``get_rng_state_all`` gave."""
        states, found = list(new_states), self._generators()
        if len(states) != len(found):
            raise UsageError(
                f"set_rng_state_all: expected {len(found)} states, as that many devices have generators of their own, got "
                f"{len(states)}; use torch.set_rng_state for the default one"
            )
        for own, state in zip(found, states, strict=True):
            own.set_state(state.detach().cpu().numpy())

    def _generators(self) -> list[Any]:
        places = [find_device(self.kind, index) for index in range(self.device_count())]
        return [own for place in places if (own := place.own_generator) is not None]

    def _own(self, name: str, device: Any) -> Any:
        own = self._device(device).own_generator
        if own is None:
            raise UsageError(
                f"{name}: expected a device with a generator of its own, got {self.kind!r}; use torch.{name}"
            )
        return own

    # Memory

    def empty_cache(self) -> None:
        """Give memory that the devices keep for later tensors back to the system."""
        for index in range(self.device_count()):
            find_device(self.kind, index).empty_cache()

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Counts of the device's allocator in bytes and blocks; none without a device."""
        return self._device(device).memory_stats() if self.is_available() else {}  # type: ignore[no-any-return]

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Let every peak be the current value."""
        self._device(device).reset_peak_memory_stats()

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """The counts as a table, and who holds the memory."""
        from tensorcore.memory import memory_summary

        return memory_summary(self._device(device), abbreviated)

    def memory_snapshot(self, device: Any = None) -> list[dict[str, Any]]:
        """One dict for each storage that tensors hold, the largest first: its bytes, dtype, shape, holders and line."""
        from tensorcore.memory import holders

        return [one._asdict() for one in holders(self._device(device), None)]

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Bytes of the device that nobody has, and all of its bytes."""
        return self._device(device).free_memory()  # type: ignore[no-any-return]

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Take at most this share of the device's memory; more raises OutOfMemoryError."""
        if not 0 <= float(fraction) <= 1:
            raise ArgumentError(
                f"set_per_process_memory_fraction: Invalid fraction value: {fraction}. Allowed range: 0~1"
            )
        found = self._device(device)
        found.limit_memory(float(fraction))
        self._fractions[found.index] = float(fraction)

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        """The share of the device's memory that is taken at most: 1.0 until somebody sets another."""
        return self._fractions.get(self._device(device).index, 1.0)

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Whether the one device reads the other one's memory directly; never its own, as PyTorch answers."""
        found, peer = self._device(device), self._device(peer_device)
        return found is not peer and found.reads_from(peer)  # type: ignore[no-any-return]

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes of live tensors."""
        return self.memory_stats(device).get("allocated_bytes.current", 0)

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most bytes of live tensors that there were."""
        return self.memory_stats(device).get("allocated_bytes.peak", 0)

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes that the system gave for tensors and for the cache."""
        return self.memory_stats(device).get("reserved_bytes.current", 0)

    def max_memory_reserved(self, device: Any = None) -> int:
        """The most bytes that the system had given."""
        return self.memory_stats(device).get("reserved_bytes.peak", 0)

    memory_cached, max_memory_cached = memory_reserved, max_memory_reserved

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether the devices store bfloat16."""
        return self.is_available() and "bfloat16" in find_device(self.kind).capabilities.dtypes

    def _device(self, device: Any) -> Any:
        if device is None or isinstance(device, int):
            return find_device(self.kind, device)
        found = find_device(device)
        if found.type != self.kind:
            raise ArgumentError(
                f"device: Expected a {self.kind} device, got {found}; pass an index or a device of that kind"
            )
        return found


class Properties(SimpleNamespace):
    """What a device is; its attributes are those of PyTorch's device properties."""


class DeviceContext:
    """A ``with`` block in which a kind's bare name means another device."""

    def __init__(self, devices: Devices, device: Any) -> None:
        self.devices = devices
        self.idx = -1 if device is None else device if isinstance(device, int) else devices._device(device).index
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = self.devices.current_device()
            self.devices.set_device(self.idx)

    def __exit__(self, *error: object) -> None:
        if self.idx >= 0:
            self.devices.set_device(self.prev_idx)
