"""AbsentDevice: what ``torch.device("cuda")`` gives where there is none, so that a program may name it before it asks."""

from __future__ import annotations

import re
from typing import Any

from tensorcore.backend.registry import device as find_device
from tensorcore.backend.registry import why_not

__all__ = ["AbsentDevice"]

# The kinds that programs name without asking whether they are there, as in a default argument.
_KINDS = ("cuda", "hpu", "ipu", "mps", "mtia", "vulkan", "xla", "xpu")


class AbsentDevice(str):
    """The name of a device that cannot be used: it prints and compares, and whatever works on it says why it cannot.

    Being a string, it is looked up anew wherever a device is needed, which raises the reason.
    """

    __slots__ = ()

    @staticmethod
    def named(device: Any, index: Any = None) -> AbsentDevice | None:
        """The device of that name; None where PyTorch would not know the name either, or others of its kind are there."""
        if not isinstance(device, str) or not (index is None or type(index) is int):
            return None
        text = device if index is None else f"{device}:{index}"
        found = re.fullmatch(r"([a-z]+)(?::(?:0|[1-9][0-9]*))?", text)
        return AbsentDevice(text) if found and found[1] in _KINDS and why_not(found[1]) is not None else None

    @property
    def type(self) -> str:
        """The device's name without its index."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """Its number, None where the name has none."""
        number = self.partition(":")[2]
        return int(number) if number else None

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"

    def __enter__(self) -> Any:
        return find_device(str(self)).__enter__()

    def __exit__(self, *error: object) -> None:
        """Never reached: entering raises."""
