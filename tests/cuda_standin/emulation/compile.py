"""``emulate``: CUDA C++ source in, callable kernels out; compiled once for each source and kept on disk."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["EmulationError", "Function", "Module", "emulate", "prepare", "thread_order"]

HERE = Path(__file__).parent
CACHE = Path(
    os.environ.get("TENSORCORE_EMULATION_CACHE", Path(tempfile.gettempdir()) / f"tensorcore-emulation-{os.getuid()}")
)
FLAGS = ["-std=c++17", "-O0", "-fPIC", "-shared", "-fno-gnu-unique", "-fvisibility=hidden", "-ffp-contract=off", "-w"]
# To look through the standard libraries takes a third of the time; the scheduler has loaded them.
ALONE = ["-nostdlib", "-lgcc"]
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
SHARED_WITHOUT_ASKING, SHARED_AT_MOST = 48 << 10, 227 << 10

_order = [0]
_running = threading.Lock()  # the scheduler has one kernel at a time


class EmulationError(RuntimeError):
    """A kernel does not compile, was launched wrongly, or did something that CUDA leaves undefined."""


@contextlib.contextmanager
def thread_order(order: int) -> Iterator[None]:
    """Within it blocks and threads run as numbered (0), backwards (-1), or shuffled from a seed (above 0)."""
    before, _order[0] = _order[0], order
    try:
        yield
    finally:
        _order[0] = before


def emulate(source: str, name_expressions: Iterable[str] | None = None, options: Sequence[str] = ()) -> Module:
    """Compile kernels for the emulation.

    Args:
        source: CUDA C++, as for NVRTC.
        name_expressions: the kernels wanted, e.g. ``"softmax<float>"``; all that are no templates where None.
        options: of these, definitions (``-D``) and folders of headers (``-I``) are used.
    """
    request = _request(source, name_expressions, options)
    if request not in _modules:
        from tests.cuda_standin.emulation import listing

        try:
            prepare(listing.beside(request))
        except EmulationError:  # a statement that was listed when the headers had other functions
            prepare([request])
    return _modules[request]


Request = tuple[str, tuple[str, ...], tuple[str, ...]]
_modules: dict[Request, Module] = {}


def _request(source: str, names: Iterable[str] | None, options: Sequence[str]) -> Request:
    flags = tuple(option for option in options if option.startswith(("-D", "-I")))
    return source, tuple(_kernels_of(source) if names is None else names), flags


def prepare(wanted: Iterable[tuple[str, Iterable[str] | None, Sequence[str]]]) -> None:
    """Compile what ``emulate`` will be asked for in one go, which takes a fraction of the time; the options must be equal."""
    requests = [one for one in dict.fromkeys(_request(*one) for one in wanted) if one not in _modules]
    if not requests:
        return
    (flags,) = {one[2] for one in requests}
    kernels: dict[tuple[str, str], int] = {}
    for source, names, _ in requests:
        for name in names:
            kernels.setdefault((source, name), len(kernels))
    _scheduler()
    library = ctypes.CDLL(str(_built(_translated(kernels), (*flags, f"-I{_headers()}"), ALONE)))
    for source, names, _ in requests:
        functions = {name: Function(library, kernels[source, name], name) for name in names}
        _modules[source, names, flags] = Module(functions)


class Module:
    """Compiled kernels by name, as CuPy's RawModule has them."""

    def __init__(self, functions: dict[str, Function]) -> None:
        self.functions = functions

    def get_function(self, name: str) -> Function:
        """The kernel of that name or name expression."""
        try:
            return self.functions[name]
        except KeyError:
            known = ", ".join(self.functions) or "none"
            raise EmulationError(f"get_function: expected one of {known}, got {name!r}") from None


class Function:
    """One kernel.

    Attributes:
        name: its name expression.
        max_dynamic_shared_size_bytes: how much dynamic shared memory a launch may ask for.
    """

    def __init__(self, library: ctypes.CDLL, number: int, name: str) -> None:
        self.name = name
        self.max_dynamic_shared_size_bytes = SHARED_WITHOUT_ASKING
        self.run = getattr(library, f"emulated_run_{number}")
        self.run.restype = ctypes.c_char_p
        sizes, alignments, end = (ctypes.c_size_t * 64)(), (ctypes.c_size_t * 64)(), ctypes.c_size_t()
        count = getattr(library, f"emulated_describe_{number}")(sizes, alignments, ctypes.byref(end))
        self.parameters = list(zip(sizes[:count], alignments[:count], strict=True))
        self.parameter_bytes = end.value

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0) -> None:
        """Run it; arguments are NumPy arrays (their addresses), NumPy scalars and structs, and numbers as CuPy takes them."""
        if len(args) != len(self.parameters):
            raise EmulationError(f"{self.name}: expected {len(self.parameters)} arguments, got {len(args)}")
        packed = bytearray()
        for i, (one, (size, alignment)) in enumerate(zip(args, self.parameters, strict=True)):
            data = _bytes_of(one)
            if len(data) != size:
                raise EmulationError(
                    f"{self.name}: expected {size} bytes for parameter {i}, got {len(data)} of {type(one).__name__}"
                )
            packed += bytes(-len(packed) % alignment) + data
        self.launch(grid, block, bytes(packed), shared_mem)

    def launch(self, grid: Sequence[int], block: Sequence[int], parameters: bytes, shared_mem: int = 0) -> None:
        """Run it on a parameter buffer: each parameter at a multiple of its alignment, as the driver takes them."""
        shape = [*_three(self.name, "grid", grid, MAX_GRID), *_three(self.name, "block", block, MAX_BLOCK)]
        if shape[3] * shape[4] * shape[5] > 1024:
            raise EmulationError(f"{self.name}: expected at most 1024 threads in a block, got {tuple(shape[3:])}")
        if shared_mem > min(self.max_dynamic_shared_size_bytes, SHARED_AT_MOST):
            raise EmulationError(
                f"{self.name}: expected at most {self.max_dynamic_shared_size_bytes} bytes of shared memory, got "
                f"{shared_mem}; set max_dynamic_shared_size_bytes first"
            )
        if len(parameters) < self.parameter_bytes:
            raise EmulationError(
                f"{self.name}: expected {self.parameter_bytes} bytes of parameters, got {len(parameters)}"
            )
        with _running:
            wrong = self.run((ctypes.c_uint * 7)(*shape, shared_mem), parameters, ctypes.c_int(_order[0]))
        if wrong is not None:
            raise EmulationError(f"{self.name}: {wrong.decode()}")


def _three(name: str, what: str, given: Sequence[int], most: tuple[int, int, int]) -> list[int]:
    sizes = [*map(int, given), 1, 1][:3]
    if any(size < 1 or size > limit for size, limit in zip(sizes, most, strict=True)):
        raise EmulationError(f"{name}: expected a {what} from (1, 1, 1) to {most}, got {tuple(sizes)}")
    return sizes


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return value.ctypes.data.to_bytes(8, "little")
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, bytes):
        return value
    if value is None:
        return bytes(8)
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int):
        return value.to_bytes(8, "little", signed=value < 0)
    if isinstance(value, float):
        return np.float64(value).tobytes()
    if hasattr(value, "data") and hasattr(value.data, "ptr"):
        return int(value.data.ptr).to_bytes(8, "little")
    raise EmulationError(f"launch: expected arrays and numbers, got {type(value).__name__}")


# Translation and compiling

_BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
_KERNEL = re.compile(rf"(template\s*<[^{{}};]*>\s*)?__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(")
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\d+\s*\)\s*)?([\w: ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)


# Where in a generated source that begins which is its own; what stands before it is the same in all of them.
_OWN = "struct where {"


@functools.cache
def _kernels_of(source: str) -> list[str]:
    return [name for template, name in _KERNEL.findall(source) if not template]


def _translated(kernels: dict[tuple[str, str], int]) -> str:
    """Sources as C++, each in a namespace of its own, in one with what it begins with; ``kernels`` are numbered."""
    text, units = ['#include "device.h"'], {}
    heads: dict[str, list[str]] = {}
    for source in dict.fromkeys(source for source, _ in kernels):
        head, _, rest = source.partition(_OWN)
        heads.setdefault(head if rest else "", []).append(source)
    for head, sources in heads.items():
        # Within an unnamed namespace nothing is shared between the instances of a template, which sections cannot be.
        text += [f"namespace {{ namespace head_{len(units)} {{", '#line 1 "kernel.cu"', _spelled(head)]
        outer = f"head_{len(units)}"
        for source in sources:
            unit = units[source] = f"unit_{len(units)}"
            text += [
                f"namespace {unit} {{",
                f'#line {head.count(chr(10)) + 1} "kernel.cu"',
                _spelled(source[len(head) :]),
            ]
            text.append('#line 1 "name_expressions"')
            own = {name: number for (other, name), number in kernels.items() if other == source}
            text += [f"constexpr auto *entry_{number} = &{name};" for name, number in own.items()]
            text.append("}")
            units[source] = f"{outer}::{unit}"
        text.append("}}")
    for (source, _), number in kernels.items():
        entry = f"{units[source]}::entry_{number}"
        text.append(
            f'extern "C" __attribute__((visibility("default"))) int emulated_describe_{number}(size_t *sizes, size_t '
            f"*alignments, size_t *end) {{ return emulation::describe({entry}, sizes, alignments, end); }}\n"
            f'extern "C" __attribute__((visibility("default"))) const char *emulated_run_{number}(const unsigned *shape, '
            f"const char *parameters, int order) {{ return emulation::run({entry}, shape, parameters, order); }}"
        )
    return "\n".join([*text, ""])


def _spelled(source: str) -> str:
    """Dynamic shared memory, extern "C" kernels, and casts of addresses, which must be aligned, as C++ has them."""
    source = _DYNAMIC.sub(r"\1 *const \2 = (\1 *)emulation::shared;", source)
    source = source.replace("reinterpret_cast<", "emulation::aligned_cast<")
    return re.sub(r'extern\s+"C"\s+__global__', "__global__", source)


def compiler() -> str | None:
    """The C++ compiler, None where there is none."""
    return shutil.which(os.environ.get("CXX", "g++"))


def _compiler() -> str:
    found = compiler()
    if found is None:
        raise EmulationError("emulate: expected a C++ compiler, got none; install g++ or name one in CXX")
    return found


@functools.cache
def _version() -> bytes:
    headers = b"".join((HERE / name).read_bytes() for name in ("device.h", "threads.h"))
    return subprocess.run([_compiler(), "--version"], capture_output=True, check=True).stdout + headers


@functools.cache
def _headers() -> Path:
    """A folder with device.h precompiled, which halves the time; a compiler that cannot use it takes the header itself."""
    folder = CACHE / f"headers-{hashlib.sha256(_version()).hexdigest()[:16]}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            inside = Path(temporary) / "headers"
            inside.mkdir()
            flags = [one for one in FLAGS if one != "-shared"]
            subprocess.run(
                [_compiler(), *flags, "-x", "c++-header", str(HERE / "device.h"), "-o", str(inside / "device.h.gch")],
                capture_output=True,
            )
            with contextlib.suppress(OSError):  # another process was first
                inside.rename(folder)
    return folder


@functools.cache
def _scheduler() -> ctypes.CDLL:
    """What all kernels share, where they find it: among the symbols of the process, with the standard libraries."""
    return ctypes.CDLL(str(_built((HERE / "threads.cc").read_text("utf-8"), ("-O1",), ["-lm"])), ctypes.RTLD_GLOBAL)


def _built(text: str, flags: tuple[str, ...], libraries: list[str]) -> Path:
    # What was precompiled is looked for first.
    options = [*FLAGS, *flags, f"-I{HERE}"]
    key = hashlib.sha256(b"\0".join([_version(), text.encode(), " ".join([*options, *libraries]).encode()])).hexdigest()
    made = CACHE / f"{key[:32]}.so"
    if made.exists():
        return made
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        unit, library = Path(folder) / "kernel.cc", Path(folder) / "kernel.so"
        unit.write_text(text)
        command = [_compiler(), *options, str(unit), "-o", str(library), *libraries]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise EmulationError(f"emulate: the source does not compile\n{_first_errors(done.stderr)}")
        library.replace(made)  # two processes that build the same one do not meet
    return made


def _first_errors(text: str, most: int = 12) -> str:
    lines = [line for line in text.splitlines() if "error" in line or line.lstrip().startswith(("|", "required"))]
    return "\n".join((lines or text.splitlines())[:most])
