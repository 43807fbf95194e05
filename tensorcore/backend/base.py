"""The backend interface: a device, its table of kernels, and what it can do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tensorcore.backend.decompose import decomposed, viewed
from tensorcore.dtypes import ALL
from tensorcore.errors import ArgumentError, KernelMissing

if TYPE_CHECKING:
    from tensorcore.backend.program import Program
    from tensorcore.dtypes import dtype

__all__ = ["INTERFACE_VERSION", "Backend", "Capabilities", "KernelTable", "MissingKernel", "required"]

# (major, minor). The host takes plugins of the same major and of its own minor or an older one.
INTERFACE_VERSION = (1, 1)

_DTYPES = frozenset([one.name for one in ALL])
Native = Any  # an array as the backend's kernels understand it
Kernel = Callable[..., Any]


class Capabilities:
    """What a backend can do, as data that tests and the frontend gate on.

    ``dtypes`` names the dtypes it stores: tensors of others are refused where they are made or moved there. ``bool`` and
    ``int64`` have to be among them: comparisons give the one, and indices are the other.
    ``host`` says that its native arrays are NumPy's, in the host's memory; ``values`` that there are values at all
    (``meta`` has shapes only); ``views`` that ``as_strided`` shares memory; ``pinned``, ``streams``, ``graphs`` and
    ``collectives`` name the optional protocols it implements.
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
        if unknown := [name for name in dtypes if name not in _DTYPES]:
            raise ArgumentError(
                f"Capabilities: expected names of dtypes, got {unknown[0]!r}; pass some of {', '.join(sorted(_DTYPES))}"
            )
        if missing := [name for name in ("bool", "int64") if name not in dtypes]:
            raise ArgumentError(
                f"Capabilities: expected {missing[0]!r} among the dtypes, since comparisons give bools and indices are int64, "
                f"got {tuple(dtypes)}; add it, and store it in whatever the device has"
            )
        self.dtypes = frozenset(dtypes)
        self.host = host
        self.values = values
        self.views = views
        self.pinned = pinned
        self.streams = streams
        self.graphs = graphs
        self.collectives = collectives

    def __repr__(self) -> str:
        said = [f"{name}={getattr(self, name)}" for name in self.__slots__ if name != "dtypes"]
        return f"Capabilities({tuple(sorted(self.dtypes))}, {', '.join(said)})"


class MissingKernel:
    """Stands in the table for a kernel that the backend does not have: false, and when called, what policy says.

    It raises KernelMissing, or runs on the device that ``fallback`` names.
    """

    __slots__ = ("backend", "name")

    def __init__(self, backend: Backend, name: str) -> None:
        self.backend = backend
        self.name = name

    def __bool__(self) -> bool:
        return False

    def __call__(self, *natives: Native, **options: Any) -> Native:
        from tensorcore.backend.fallback import run_elsewhere

        return run_elsewhere(self.backend, self.name, natives, options)


class KernelTable(dict[str, Kernel]):
    """The kernels of one backend by name; each is looked for once, a miss is remembered too."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.backend = backend

    def __missing__(self, name: str) -> Kernel:
        kernel = self[name] = (
            self.backend.find_kernel(name)
            or viewed(name, self.backend)
            or decomposed(name, self.backend)
            or MissingKernel(self.backend, name)
        )
        return kernel


def required(backend: Backend, method: str) -> NotImplementedError:
    """What is raised for a method that every backend has to write."""
    return NotImplementedError(
        f"{method}: expected {type(backend).__name__} to have a method of this name, got none; write it, or derive the "
        "class from XPBackend, which has it for libraries that look like NumPy"
    )


class Backend:
    """One device: it allocates storage, moves it, and runs kernels on it.

    A *native array* is whatever the kernels understand. The frontend reads its ``shape`` and asks
    the backend for everything else. Strides and offsets count elements, never bytes.
    Kernels take natives (or Python numbers) by position and options by keyword only, and accept
    ``out=`` where the result has a place to go.
    """

    capabilities: Capabilities
    wraps: Backend | None = None  # the backend that this one hands its work on to, if there is one
    many = False  # whether one array stands for several examples, which may have values of their own
    array: type = object  # the exact type of natives; a kernel's answer of any other goes through as_native
    # Kernels whose results may differ from run to run, and what takes their place where programs ask for deterministic ones, or None.
    nondeterministic: Mapping[str, str | None] = MappingProxyType({})
    # Whether its kernels find indices that lie outside, and say so at the next look at values at the latest: then nobody looks before.
    checks_indices = False
    # Kernels that take a number beside an array of a half type (add_scaled: that array), compute in single precision and round once,
    # as PyTorch does: the number too, but that of mul, div and floor_divide. What others make of float32 is rounded behind them.
    narrow_numbers: frozenset[str] = frozenset()
    adds_into: frozenset[str] = frozenset()  # those that take ``into`` backward: see ops/fused.py
    # Whether every kernel of one result takes ``out=``, of the result's dtype: of another shape it is left, and a new array given.
    takes_out = False
    numbered = False  # whether the index is part of the device's name: "cuda:0", but "cpu"

    if TYPE_CHECKING:  # ``with device:`` is the frontend's, which puts it here

        def __enter__(self) -> Self: ...
        def __exit__(self, *raised: object) -> None: ...

    def __init__(self, name: str, index: int = 0) -> None:
        self.name = name
        self.index = index
        self.kernels = KernelTable(self)

    # Required

    def allocate(self, shape: tuple[int, ...], dtype: dtype) -> Native:
        """A new contiguous native array of undefined values."""
        raise required(self, "allocate")

    def from_host(self, array: np.ndarray) -> Native:
        """A new native array with the values of a NumPy array."""
        raise required(self, "from_host")

    def to_host(self, native: Native) -> np.ndarray:
        """The values as a NumPy array, which may share the memory where the device is the host."""
        raise required(self, "to_host")

    def all_values(self, native: Native) -> np.ndarray:
        """What a decision for a whole call looks at: the values, and where there are several examples those of all."""
        return self.to_host(native)

    def as_strided(self, native: Native, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Native:
        """A view of the storage under ``native``; ``offset`` counts from the storage's start."""
        raise required(self, "as_strided")

    def layout(self, native: Native) -> tuple[tuple[int, ...], int]:
        """Strides, and the offset from the storage's start."""
        raise required(self, "layout")

    def storage(self, native: Native) -> Native:
        """All of the storage under ``native`` as one flat native array of its dtype."""
        raise required(self, "storage")

    def data_pointer(self, native: Native) -> int:
        """The address of the first element."""
        raise required(self, "data_pointer")

    # Yours if you can do better

    def dtype_of(self, native: Native) -> dtype:
        """The dtype of a native array."""
        from tensorcore.dtypes import from_numpy_dtype

        nothing = self.as_strided(native, (0,), (1,), 0) if self.capabilities.views else native
        return from_numpy_dtype(self.to_host(nothing).dtype)

    def strides(self, native: Native) -> tuple[int, ...]:
        """The strides alone, which are asked for at every in-place write."""
        return self.layout(native)[0]

    def as_native(self, value: Any) -> Native:
        """A native array from what a kernel answered where that is not of type ``array``, e.g. NumPy's scalars."""
        return value

    def meet(self, other: Backend) -> Backend | None:
        """The backend whose kernels take arrays of this one and of ``other``, None where these are two devices.

        Only backends that wrap another one have something to answer.
        """
        return None

    def lift(self, tensor: Any) -> Any:
        """A tensor of a backend that this one meets, as one of this."""
        return tensor

    @property
    def acts_as(self) -> str:
        """The type of device that regions of autocast know it by: its name, or that of the device it wraps."""
        return self.name if self.wraps is None else self.wraps.acts_as

    def is_made(self, native: Native) -> bool:
        """Whether the values are there; where kernels run later they may not be."""
        return True

    def describe(self, tensor: Any) -> str:
        """What a tensor of a backend that wraps another one prints as."""
        return object.__repr__(tensor)

    def copy_from(self, other: Backend, native: Native) -> Native:
        """A copy of another backend's native array on this one."""
        return self.from_host(other.to_host(native))

    def begin_copy(self, other: Backend, native: Native) -> Native:
        """``copy_from`` that may return before the values have arrived; kernels of this device wait for them by themselves.

        Until they have arrived, a host array that they come from must stay as it is.
        """
        return self.copy_from(other, native)

    def begin_to_host(self, native: Native) -> np.ndarray:
        """``to_host`` that may return before the values have arrived: they are there after ``synchronize``."""
        return self.to_host(native)

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

    def reset_peak_memory_stats(self) -> None:
        """Let every peak among the counts be the current value."""
        raise KernelMissing(
            f"reset_peak_memory_stats: expected a device that counts its memory, got '{self}', which does not"
        )

    def empty_cache(self) -> int:
        """Give memory that no tensor uses back to the system; how many bytes that were."""
        raise KernelMissing(f"empty_cache: expected a device that caches memory, got '{self}', which keeps none")

    def free_memory(self) -> tuple[int, int]:
        """Bytes of the device that nobody has, and all of its bytes."""
        raise KernelMissing(f"mem_get_info: expected a device with memory of its own, got '{self}'; ask the system")

    def limit_memory(self, fraction: float) -> None:
        """Take at most this share of the device's memory."""
        raise KernelMissing(f"set_per_process_memory_fraction: expected a device that counts its memory, got '{self}'")

    def reads_from(self, other: Backend) -> bool:
        """Whether kernels here read the memory of another device of this kind directly, without a copy of it."""
        return False

    # Streams and graphs, of a backend whose capabilities say that it has them

    def new_stream(self, priority: int = 0) -> Any:
        """A line of work beside the others: ``record(event)``, ``wait(event)``, ``query()``, ``synchronize()``, ``pointer``."""
        raise self._lacks("Stream", "streams")

    def stream_at(self, pointer: int) -> Any:
        """A stream of another library, by its address."""
        raise self._lacks("ExternalStream", "streams")

    def default_stream(self) -> Any:
        """The stream that work runs on where none was chosen."""
        raise self._lacks("default_stream", "streams")

    def current_stream(self) -> Any:
        """The stream that this thread's work runs on."""
        raise self._lacks("current_stream", "streams")

    def use_stream(self, stream: Any) -> None:
        """Let this thread's work run on a stream from now on."""
        raise self._lacks("set_stream", "streams")

    def new_event(self, timing: bool = False, blocking: bool = False) -> Any:
        """A mark to put into a stream: ``query()``, ``synchronize()``, ``elapsed(other)`` in milliseconds."""
        raise self._lacks("Event", "streams")

    def record_stream(self, native: Native, stream: Any) -> None:
        """Keep the memory, once it is freed, from new arrays until what ``stream`` was given by then is done."""

    def new_graph(self) -> Any:
        """Work to be written down and run again: ``begin(pool)``, ``end()``, ``replay()``, ``reset()``, ``pool``."""
        raise self._lacks("CUDAGraph", "graphs")

    def capturing(self) -> bool:
        """Whether work of this thread is written down instead of run."""
        return False

    def _lacks(self, name: str, what: str) -> KernelMissing:
        return KernelMissing(f"{name}: expected a device that has {what}, got '{self}', which has none")

    def properties(self) -> dict[str, Any]:
        """What the device is, by the names of PyTorch's ``get_device_properties``; ``name`` at least."""
        return {"name": str(self)}

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

    def array_interface(self, native: Native) -> dict[str, Any] | None:
        """``__cuda_array_interface__`` of the native, None where the device's memory is not of that kind."""
        return None

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

    # The device's own source of random numbers where programs give none; None where the process's own draws for it.
    own_generator: Any = None

    def process_seed(self) -> int:
        """The seed that the process's own source of random numbers started from."""
        from tensorcore.backend.default_generator import default_generator

        return int(default_generator().initial_seed())

    def new_generator(self) -> Any:
        """A source of random numbers for this device: what ``random`` is given, with ``manual_seed``, ``seed``,
        ``initial_seed``, ``get_state`` and ``set_state`` (bytes as a NumPy array) and ``clone``.
        """
        from tensorcore.backend.random import Generator

        return Generator()

    def random(self, kind: str, shape: tuple[int, ...], dtype: dtype, generator: Any = None, **options: Any) -> Native:
        """A new native array of random numbers.

        ``kind`` names a method of ``tensorcore.backend.random.Generator``, whose parameters ``options`` are
        (``uniform`` with ``low`` and ``high``, ``normal`` with ``mean`` and ``std``, ...); ``generator`` is one of
        those, None for the process's own. As it stands, numbers are made on the host and sent over, so that a
        seed gives the same ones on every device. A backend that makes its own overrides this.
        """
        from tensorcore.backend.default_generator import default_generator

        source = default_generator() if generator is None else generator
        return self.share_host(getattr(source, kind)(shape=shape, dtype=dtype, **options))

    # ``draw_over(native, kind, generator, **options)``, where the backend has it: draws what ``random`` makes over an array in
    # row-major order, and answers True; or draws nothing and answers False, where ``random`` has to make them.
    draw_over: Any = None

    def threads(self, count: int | None = None) -> int:
        """Set, if given, how many of the host's threads one kernel may use; how many it may."""
        return 1

    def benchmark(self, wanted: bool | None = None) -> bool:
        """Set, if given, whether kernels measure the ways in which they can run; whether they do. False where each has one way."""
        return False

    def codegen(self, wanted: bool | None = None) -> bool:
        """Set, if given, whether ``compile`` asks a C compiler, which takes its time; whether it does. False where it never would."""
        return False

    def draw(self, op: str, function: Callable[..., np.ndarray], *natives: Native) -> Native:
        """A new native array of what ``function`` draws on the host, given the values of some natives."""
        return self.share_host(function(*map(self.to_host, natives)))

    def synchronize(self) -> None:
        """Return when every kernel that was started has ended."""

    def compile(self, program: Program) -> Kernel | None:
        """One kernel that does what all steps of ``program`` do, or None where they run one by one.

        It takes the program's inputs by position (of any strides) and answers a tuple of its outputs; ``out=`` is a
        tuple that holds, for each output, a contiguous native array to write it to, or None.
        """
        return None

    def find_kernel(self, name: str) -> Kernel | None:
        """The kernel of that name, or None. Asked once per name."""
        return getattr(self, f"kernel_{name}", None)

    def report(self) -> dict[str, str | int | float | bool | None]:
        """What the device is made of, for people and bug reports: names, sizes, versions, and what is missing and why.

        Keys are short and lower case ("memory", "threads", "compiler", "library"); ``tensorcore doctor`` prints them.
        """
        return {}

    def without(self, name: str) -> Kernel:
        """What runs a kernel that this backend lacks, for its own kernels to call on dtypes or sizes they do not take.

        It decomposes where that is possible; else ``fallback`` decides.
        """
        return decomposed(name, self) or MissingKernel(self, name)

    @classmethod
    def device_count(cls) -> int:
        """How many devices of this kind the machine has."""
        return 1

    # The device as programs see it

    type = property(attrgetter("name"), doc="The device's name without its index.")

    def __repr__(self) -> str:
        return f"device(type={self.name!r}, index={self.index})" if self.numbered else f"device(type={self.name!r})"

    def __str__(self) -> str:
        return f"{self.name}:{self.index}" if self.numbered else self.name

    def __reduce__(self) -> Any:
        from tensorcore.backend.registry import device

        return device, (self.name, self.index)
