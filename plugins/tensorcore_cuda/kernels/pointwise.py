"""Kernels of single elements, generated: C statements, operands of any strides, one pass through memory.

A ``Body`` says what is computed; ``Pointwise`` makes a kernel of it for the layouts that it meets, and launches it.
Elements move in packs of 16 bytes where they lie next to each other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tensorcore_cuda.kernels.launch import C_TYPES, Driver, Kernel, merged, source_of

__all__ = ["Body", "Pointwise", "broadcast", "reach_of", "strides_of"]

Native = Any
THREADS = 256


class Body(NamedTuple):
    """What a kernel computes of one element of each operand.

    Attributes:
        arrays: the C types of the arrays; ``x0``, ``x1`` ... in the statements are their elements, widened.
        numbers: the C types of the numbers, ``n0``, ``n1`` ...: float, double or int64.
        outputs: the C types of the results, which the statements assign to ``y0``, ``y1`` ...
        statements: C.
    """

    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    outputs: tuple[str, ...]
    statements: str


_FORMATS = {"float": "f", "double": "d", "int64": "q"}
_SIZES = {name: dtype.itemsize for dtype, name in C_TYPES.items()}


class Pointwise:
    """Generated kernels of one device."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.kernels: dict[tuple[Any, ...], Kernel] = {}

    def run(
        self, body: Body, shape: tuple[int, ...], arrays: Sequence[Native], numbers: Sequence[float],
        outputs: Sequence[Native],
    ) -> None:  # fmt: skip
        """Compute ``outputs``, arrays of ``shape``, from arrays that broadcast to it."""
        everyone = [*arrays, *outputs]
        if all([one.shape == shape and one.flags.c_contiguous for one in everyone]):
            count = outputs[0].size
            sizes, strides = [count], [[1]] * len(everyone)
        else:
            sizes, strides = merged(shape, *[broadcast(one, shape) for one in everyone])
            count = 1
            for size in sizes:
                count *= size
        if count:
            self._launch(body, count, sizes or [1], strides if sizes else [[1]] * len(everyone),
                         [one.data.ptr for one in everyone], numbers)  # fmt: skip

    def flat(self, body: Body) -> Callable[..., bool]:
        """What runs a body over dense arrays of one shape, without a look at their layouts: for the smallest of calls.

        It takes the count, the addresses of arrays and outputs, and the numbers; False where an address is not aligned.
        """
        types = (*body.arrays, *body.outputs)
        pack = 16 // max([_SIZES[type] for type in types])
        bits = pack * max([_SIZES[type] for type in types]) - 1
        where = _where(1, len(types), False).pack(0, *[1] * len(types))
        per_block, limit, one = THREADS * pack, self.driver.limit, (THREADS, 1, 1)
        kernels: list[Kernel] = []

        def run(count: int, addresses: tuple[int, ...], numbers: Sequence[float]) -> bool:
            for address in addresses:
                if address & bits:
                    return False
            if not kernels:
                kernels.append(self.kernel(body, "1" * len(types), 1, pack, False))
            blocks = -(-count // per_block)
            kernels[0]((blocks if blocks < limit else limit, 1, 1), one, 0, count, *addresses, *numbers, where)
            return True

        return run

    def kernel(self, body: Body, modes: str, dims: int, pack: int, large: bool) -> Kernel:
        """The kernel for one kind of layout, made the first time."""
        key = (body, modes, dims, pack, large)
        found = self.kernels.get(key)
        if found is None:
            operands = len(modes)
            source = _source(body, modes, dims, pack, "int64" if large else "unsigned")
            formats = ["q" if large else "I", *["P"] * operands, *[_FORMATS[one] for one in body.numbers],
                       f"{_where(dims, operands, large).size}s"]  # fmt: skip
            found = self.kernels[key] = self.driver.kernel(source, "pointwise", "".join(formats))
        return found

    def _launch(
        self, body: Body, count: int, sizes: list[int], strides: list[list[int]], pointers: list[int], numbers: Any
    ) -> None:
        types = (*body.arrays, *body.outputs)
        modes = "".join(["1" if one[-1] == 1 else "0" if one[-1] == 0 else "s" for one in strides])
        pack = 16 // max([_SIZES[type] for type in types])
        while pack > 1 and not _fits(pack, sizes, strides, modes, types, pointers):
            pack //= 2
        large = count >= 1 << 31
        kernel = self.kernel(body, modes, len(sizes), pack, large)
        inner = list(sizes)
        inner[-1] = sizes[-1] if len(sizes) == 1 else sizes[-1] // pack
        where = _where(len(sizes), len(types), large).pack(*inner, *[step for one in strides for step in one])
        blocks = self.driver.blocks(-(-count // (THREADS * pack)))
        kernel((blocks, 1, 1), (THREADS, 1, 1), 0, count, *pointers, *numbers, where)


def broadcast(x: Native, shape: tuple[int, ...]) -> list[int]:
    """The strides, in elements, of ``x`` seen in a shape that it broadcasts to."""
    itemsize = x.dtype.itemsize
    extra = len(shape) - x.ndim
    return [0] * extra + [step // itemsize if size != 1 else 0 for size, step in zip(x.shape, x.strides, strict=True)]


def strides_of(x: Native) -> list[int]:
    """In elements."""
    itemsize = x.dtype.itemsize
    return [step // itemsize for step in x.strides]


def reach_of(x: Native) -> tuple[int, int]:
    """The addresses between which the elements lie."""
    low = high = x.data.ptr
    for size, step in zip(x.shape, x.strides, strict=True):
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high + x.dtype.itemsize


def _fits(
    pack: int, sizes: list[int], strides: list[list[int]], modes: str, types: Sequence[str], pointers: list[int]
) -> bool:
    """Whether packs do not cross the rows, and those that move as one are aligned."""
    if len(sizes) > 1 and sizes[-1] % pack:
        return False
    for mode, steps, type, pointer in zip(modes, strides, types, pointers, strict=True):
        if mode == "1" and (pointer % (pack * _SIZES[type]) or any([step % pack for step in steps[:-1]])):
            return False
    return True


@cache
def _where(dims: int, operands: int, large: bool) -> struct.Struct:
    return struct.Struct(f"@{dims}{'q' if large else 'I'}{dims * operands}q")


def _source(body: Body, modes: str, dims: int, pack: int, index: str) -> str:
    """The kernel's source: ``modes`` says of each operand whether its innermost stride is 1, 0, or another."""
    inputs = len(body.arrays)
    types = (*body.arrays, *body.outputs)
    arguments = [f"const wide<{type}> x{i}" for i, type in enumerate(body.arrays)]
    arguments += [f"const {type} n{i}" for i, type in enumerate(body.numbers)]
    arguments += [f"wide<{type}> &y{i}" for i, type in enumerate(body.outputs)]
    parameters = [f"const {index} count"]
    parameters += [f"const {type} *p{i}" for i, type in enumerate(body.arrays)]
    parameters += [f"{type} *p{inputs + i}" for i, type in enumerate(body.outputs)]
    parameters += [f"const {type} n{i}" for i, type in enumerate(body.numbers)]
    parameters += ["const where at"]
    numbers = [f"n{i}" for i in range(len(body.numbers))]
    lines = [
        source_of("types.cuh"), source_of("functions.cuh"),
        f"struct where {{ {index} sizes[{dims}]; __align__(8) int64 strides[{len(types)}][{dims}]; }};",
        f"__device__ __forceinline__ void body({', '.join(arguments)}) {{ {body.statements} }}",
        'extern "C" __global__ void __launch_bounds__(256)',
        f"pointwise({', '.join(parameters)}) {{",
        f"  const {index} step = ({index})gridDim.x * blockDim.x, first = ({index})blockIdx.x * blockDim.x + threadIdx.x;",
        f"  for ({index} v = first; v < count / {pack}; v += step) {{",
    ]  # fmt: skip
    if dims == 1:
        lines.append(f"    const {index} i0 = v;")
    else:
        lines.append(f"    {index} rest = v;")
        for dim in range(dims - 1, 0, -1):
            lines.append(f"    const {index} i{dim} = rest % at.sizes[{dim}]; rest /= at.sizes[{dim}];")
        lines.append(f"    const {index} i0 = rest;")
    for k in range(len(types)):
        terms = [f"(int64)i{dim} * at.strides[{k}][{dim}]" for dim in range(dims - 1)]
        terms.append(f"(int64)i{dims - 1} * {pack}" + (f" * at.strides[{k}][{dims - 1}]" if modes[k] == "s" else ""))
        lines.append(f"    const int64 o{k} = {' + '.join(terms if modes[k] != '0' else terms[:-1] or ['0'])};")
    for k in range(inputs):
        lines.append(f"    const auto x{k} = " + (f"load<{pack}>(p{k} + o{k});" if modes[k] == "1" else
                     f"widen(p{k}[o{k}]);" if modes[k] == "0" else f"p{k} + o{k};"))  # fmt: skip
    for k in range(inputs, len(types)):
        lines.append(f"    pack<{types[k]}, {pack}> y{k};")
    element = [f"widen(x{k}.at[k])" if modes[k] == "1" else f"x{k}" if modes[k] == "0" else
               f"widen(x{k}[(int64)k * at.strides[{k}][{dims - 1}]])" for k in range(inputs)]  # fmt: skip
    lines += ["#pragma unroll", f"    for (int k = 0; k < {pack}; k++) {{"]
    results = [f"z{i}" for i in range(len(body.outputs))]
    lines += [f"      wide<{type}> z{i};" for i, type in enumerate(body.outputs)]
    lines.append(f"      body({', '.join([*element, *numbers, *results])});")
    lines += [f"      y{inputs + i}.at[k] = narrow<{type}>(z{i});" for i, type in enumerate(body.outputs)]
    lines.append("    }")
    for k in range(inputs, len(types)):
        if modes[k] == "1":
            lines.append(f"    store<{pack}>(p{k} + o{k}, y{k});")
        else:
            lines.append(
                f"    for (int k = 0; k < {pack}; k++) p{k}[o{k} + (int64)k * at.strides[{k}][{dims - 1}]] = y{k}.at[k];"
            )
    lines.append("  }")
    if dims == 1 and pack > 1:
        # What is left over behind the last whole pack.
        single = [f"widen(p{k}[i * at.strides[{k}][0]])" for k in range(inputs)]
        lines.append(f"  for ({index} i = count / {pack} * {pack} + first; i < count; i += step) {{")
        lines += [f"    wide<{type}> z{i};" for i, type in enumerate(body.outputs)]
        lines.append(f"    body({', '.join([*single, *numbers, *results])});")
        lines += [f"    p{inputs + i}[i * at.strides[{inputs + i}][0]] = narrow<{type}>(z{i});"
                  for i, type in enumerate(body.outputs)]  # fmt: skip
        lines.append("  }")
    return "\n".join([*lines, "}", ""])
