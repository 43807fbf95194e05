"""The backend interface: a device, its table of kernels, and what it can do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcore.backend.decompose import decomposed
from tensorcore.errors import KernelMissing

if TYPE_CHECKING:
    from tensorcore.dtypes import dtype

__all__ = ["INTERFACE_VERSION", "Backend", "Capabilities", "KernelTable", "MissingKernel"]

# (major, minor). The host takes plugins of the same major and of its own minor or an older one.
INTERFACE_VERSION = (1, 0)

Native = Any  # an array as the backend's kernels understand it
Kernel = Callable[..., Any]


class Capabilities:
    """What a backend can do, as data that tests and the frontend gate on.

    ``dtypes`` names the dtypes it stores; ``host`` says that its memory is the host's; ``values`` that
    there are values at all (``meta`` has shapes only); ``views`` that ``as_strided`` shares memory;
    ``pinned``, ``streams``, ``graphs`` and ``collectives`` name the optional protocols it implements.
    """

    __slots__ = ("collectives", "dtypes", "graphs", "host", "pinned", "streams", "values", "views")

    def __init__(
        self,
        dtypes: tuple[str, ...],
        *,
        host: bool = False,
        values: bool = True,
        views: bool = True,
        pinned: bool = False,
        streams: bool = False,
        graphs: bool = False,
        collectives: bool = False,
    ) -> None:
        self.dtypes = frozenset(dtypes)
        self.host = host
        self.values = values
        self.views = views
        self.pinned = pinned
        self.streams = streams
        self.graphs = graphs
        self.collectives = collectives


class MissingKernel:
    """Stands in the table for a kernel that the backend does not have: false, and loud when called."""

    __slots__ = ("backend", "name")

    def __init__(self, backend: Backend, name: str) -> None:
        self.backend = backend
        self.name = name

    def __bool__(self) -> bool:
        return False

    def __call__(self, *natives: Native, **options: Any) -> Native:
        raise KernelMissing(
            f"{self.name}: expected a kernel on device '{self.backend}', got none; "
            f"write it in the plugin, or move the tensors to a device that has it"
        )


class KernelTable(dict[str, Kernel]):
    """The kernels of one backend by name; each is looked for once, a miss is remembered too."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.backend = backend

    def __missing__(self, name: str) -> Kernel:
        kernel = self[name] = (
            self.backend.find_kernel(name) or decomposed(name, self) or MissingKernel(self.backend, name)
        )
        return kernel


class Backend:
    """One device: it allocates storage, moves it, and runs kernels on it.

    A *native array* is whatever the kernels understand. The frontend reads its ``shape`` and asks
    the backend for everything else. Strides and offsets count elements, never bytes.
    Kernels take natives (or Python numbers) by position and options by keyword only, and accept
    ``out=`` where the result has a place to go.
    """

    capabilities: Capabilities
    array: type = object  # the exact type of natives; a kernel's answer of any other goes through as_native
    numbered = False  # whether the index is part of the device's name: "cuda:0", but "cpu"

    def __init__(self, name: str, index: int = 0) -> None:
        self.name = name
        self.index = index
        self.kernels = KernelTable(self)

    # Required

    def allocate(self, shape: tuple[int, ...], dtype: dtype) -> Native:
        """A new contiguous native array of undefined values."""
        raise NotImplementedError

    def from_host(self, array: np.ndarray) -> Native:
        """A new native array with the values of a NumPy array."""
        raise NotImplementedError

    def to_host(self, native: Native) -> np.ndarray:
        """The values as a NumPy array, which may share the memory where the device is the host."""
        raise NotImplementedError

    def as_strided(self, native: Native, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Native:
        """A view of the storage under ``native``; ``offset`` counts from the storage's start."""
        raise NotImplementedError

    def layout(self, native: Native) -> tuple[tuple[int, ...], int]:
        """Strides, and the offset from the storage's start."""
        raise NotImplementedError

    def storage(self, native: Native) -> Native:
        """All of the storage under ``native`` as one flat native array of its dtype."""
        raise NotImplementedError

    def data_pointer(self, native: Native) -> int:
        """The address of the first element."""
        raise NotImplementedError

    # Yours if you can do better

    def strides(self, native: Native) -> tuple[int, ...]:
        """The strides alone, which are asked for at every in-place write."""
        return self.layout(native)[0]

    def as_native(self, value: Any) -> Native:
        """A native array from what a kernel answered where that is not of type ``array``, e.g. NumPy's scalars."""
        return value

    def copy_from(self, other: Backend, native: Native) -> Native:
        """A copy of another backend's native array on this one."""
        return self.from_host(other.to_host(native))

    def share_host(self, array: np.ndarray) -> Native:
        """A native array over the memory of a host array, where this device's memory is the host's; else a copy."""
        return self.from_host(array)

    def storage_key(self, native: Native) -> Hashable:
        """What tells the storage under ``native`` from all others that are alive."""
        return self.data_pointer(self.storage(native))

    def pin(self, array: np.ndarray) -> np.ndarray:
        """The host array in memory that transfers to this device go fastest from."""
        return array

    def is_pinned(self, array: np.ndarray) -> bool:
        """Whether the host array lies in such memory."""
        return False

    def memory_stats(self) -> dict[str, int]:
        """Counts of the device's allocator, in bytes and blocks."""
        raise KernelMissing(f"memory_stats: expected a device that counts its memory, got '{self}', which does not")

    def empty_cache(self) -> int:
        """Give memory that no tensor uses back to the system; how many bytes that were."""
        raise KernelMissing(f"empty_cache: expected a device that caches memory, got '{self}', which keeps none")

    dlpack_type: int | None = None  # the device's number in DLPack's list, None where it cannot exchange memory

    def to_dlpack(self, native: Native, dtype: dtype, **options: Any) -> Any:
        """A DLPack capsule over the memory of ``native``; ``options`` are those of ``__dlpack__``."""
        raise BufferError(
            f"__dlpack__: expected a device that exchanges memory, got a tensor on '{self}'; move it to a host"
        )

    def from_dlpack(self, exporter: Any, **options: Any) -> tuple[Native, dtype]:
        """A native array over the memory of an object that has ``__dlpack__``, and its dtype."""
        raise BufferError(
            f"from_dlpack: expected a device that exchanges memory, got '{self}'; move it to a host first"
        )

    def is_contiguous(self, native: Native) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        wanted = 1
        for size, step in zip(reversed(native.shape), reversed(self.layout(native)[0]), strict=True):
            if size == 0:
                return True
            if size != 1 and step != wanted:
                return False
            wanted *= size
        return True

    def random(self, kind: str, shape: tuple[int, ...], dtype: dtype, generator: Any = None, **options: Any) -> Native:
        """A new native array of random numbers.

        ``kind`` names a method of ``tensorcore.backend.random.Generator``, whose parameters ``options`` are
        (``uniform`` with ``low`` and ``high``, ``normal`` with ``mean`` and ``std``, ...); ``generator`` is one of
        those, None for the process's own. As it stands, numbers are made on the host and sent over, so that a
        seed gives the same ones on every device. A backend that makes its own overrides this.
        """
        from tensorcore.backend.random import default_generator

        source = default_generator() if generator is None else generator
        return self.share_host(getattr(source, kind)(shape=shape, dtype=dtype, **options))

    def synchronize(self) -> None:
        """Return when every kernel that was started has ended."""

    def compile(self, group: Any) -> Kernel | None:
        """One kernel for a group of elementwise ops, or None where the ops run one by one."""
        return None

    def find_kernel(self, name: str) -> Kernel | None:
        """The kernel of that name, or None. Asked once per name."""
        return getattr(self, f"kernel_{name}", None)

    @classmethod
    def device_count(cls) -> int:
        """How many devices of this kind the machine has."""
        return 1

    # The device as programs see it

    @property
    def type(self) -> str:
        """The device's name without its index."""
        return self.name

    def __repr__(self) -> str:
        return f"device(type={self.name!r}, index={self.index})" if self.numbered else f"device(type={self.name!r})"

    def __str__(self) -> str:
        return f"{self.name}:{self.index}" if self.numbered else self.name

    def __reduce__(self) -> Any:
        from tensorcore.backend.registry import device

        return device, (self.name, self.index)
