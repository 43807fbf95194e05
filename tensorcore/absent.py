"""Names of what is not here, so that a program may name it before it asks: ``torch.device("cuda")``, ``torch.float8_e5m2``."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from tensorcore.backend.registry import device as find_device
from tensorcore.backend.registry import why_not

__all__ = [
    "AbsentDevice", "AbsentDtype", "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "qint8", "quint8",
]  # fmt: skip

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


class AbsentDtype:
    """The name of a kind of numbers that no tensor has: it prints and compares, and whatever takes a dtype refuses it.

    Attributes:
        numpy: NumPy's dtype of such numbers, or of their parts.
        kind, itemsize, is_floating_point, is_complex: as those of a dtype.
    """

    def __init__(self, name: str, kind: str, numpy: Any) -> None:
        self.name, self.kind, self.numpy = name, kind, np.dtype(numpy)
        self.is_floating_point, self.is_complex = kind == "floating", kind == "complex"
        self.itemsize = self.numpy.itemsize * (2 if self.is_complex else 1)

    def to_real(self) -> AbsentDtype:
        """Itself, for ``finfo``, which tells the limits of these numbers too."""
        return self

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


complex32 = AbsentDtype("complex32", "complex", np.float16)
# Quantised layers hold int8 with a scale beside it; libraries list the floats of 8 bits in their tables of dtypes.
qint8, quint8 = AbsentDtype("qint8", "quantised", np.int8), AbsentDtype("quint8", "quantised", np.uint8)
float8_e4m3fn = AbsentDtype("float8_e4m3fn", "floating", ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = AbsentDtype("float8_e4m3fnuz", "floating", ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = AbsentDtype("float8_e5m2", "floating", ml_dtypes.float8_e5m2)
float8_e5m2fnuz = AbsentDtype("float8_e5m2fnuz", "floating", ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = AbsentDtype("float8_e8m0fnu", "floating", ml_dtypes.float8_e8m0fnu)
