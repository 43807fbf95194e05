"""OpenCL's buffers as flat memory, and kernels compiled from C."""

import functools
import warnings
from math import prod

import numpy as np
import pyopencl as cl
import pyopencl.array as clarray

from tensorcore.plugin import Capabilities, DeviceUnavailable, OutOfMemoryError, StridedBackend, dtypes, flat_index

from .kernels import BINARY, CTYPES, FLOATS, PROGRAMS, TESTS, UNARY

__all__ = ["OpenCLBackend"]

ROOTS = {0.5: "sqrt(a)", -0.5: "1 / sqrt(a)"}
BITS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}


class OpenCLBackend(StridedBackend):
    """One device of OpenCL, behind a queue that runs in order."""

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL))
    numbered = True

    def __init__(self, index=0):
        found, reasons = working()
        if index >= len(found):
            raise DeviceUnavailable(
                f"opencl: expected a device of OpenCL that compiles under index {index}, got {len(found)} of them"
                f"{''.join([f' ({one})' for one in reasons])}; type: pip install intel-opencl-rt intel-cmplr-lib-rt"
            )
        super().__init__("opencl", index)
        self.place = found[index]
        self.context = cl.Context([self.place])
        self.queue = cl.CommandQueue(self.context)
        self.program = functools.cache(self._compiled)
        self.places = functools.lru_cache(1024)(lambda *place: self.dense(flat_index(*place)))
        self.dense_kernels = {
            name: functools.partial(self.elementwise, text, name in TESTS, name in FLOATS)
            for name, text in (FLOATS | UNARY | BINARY | TESTS).items()
        } | {
            "amax": functools.partial(self.reduce, "b != b || b > a ? b : a", None),
            "amin": functools.partial(self.reduce, "b != b || b < a ? b : a", None),
            "cast": lambda x, *, dtype: self.elementwise("a", False, False, x, dtype=dtype.numpy),
            "matmul": self.matmul,
            "pow": self.pow,
            "prod": functools.partial(self.reduce, "a * b", "1"),
            "sum": functools.partial(self.reduce, "a + b", "0"),
            "where": self.where,
        }

    # Memory

    def dense(self, array):
        return clarray.to_device(self.queue, np.array(array, order="C"))

    def host(self, dense):
        return dense.get(self.queue) if dense.size else np.empty(dense.shape, dense.dtype)

    def flat(self, size, dtype):
        return self.empty((size,), dtype)

    def read(self, data, shape, strides, offset):
        if strides == _row_major(shape) and data.size == prod(shape):
            return data.reshape(shape)
        made = self.empty(shape, data.dtype)
        if made.size:
            self.run(
                "gather", (made.size,), made, data, self.places(shape, strides, offset), t=BITS[data.dtype.itemsize]
            )
        return made

    def write(self, data, shape, strides, offset, values):
        self.run(
            "scatter", (values.size,), data, values, self.places(shape, strides, offset), t=BITS[data.dtype.itemsize]
        )
        return data

    def empty(self, shape, dtype):
        try:
            return clarray.empty(self.queue, shape, dtype)
        except (cl.MemoryError, cl.LogicError, cl.RuntimeError, ValueError, OverflowError) as error:
            raise OutOfMemoryError(f"allocate: expected room for {shape} of {dtype}, got none: {error}") from None

    def synchronize(self):
        self.queue.finish()

    def report(self):
        return {"library": f"pyopencl {cl.VERSION_TEXT}", "platform": self.place.platform.name, "device": self.place.name,
                "memory": self.place.global_mem_size}  # fmt: skip

    # Kernels on dense arrays

    def run(self, program, size, *arguments, **words):
        """Start a program on as many work items as ``size`` says."""
        given: list = [one.base_data if isinstance(one, clarray.Array) else np.int64(one) for one in arguments]
        self.program(program, **words)(self.queue, size, None, *given)

    def _compiled(self, program, **words):
        return build(self.context, PROGRAMS[program].format(**words))

    def elementwise(self, text, tests, floats, *values, dtype=None):
        """An expression of elements of arrays that broadcast, and of numbers."""
        arrays = [one for one in values if isinstance(one, clarray.Array)]
        kind = arrays[0].dtype
        result = np.dtype(bool) if tests else kind if dtype is None else np.dtype(dtype)
        if kind.name not in CTYPES or result.name not in CTYPES or (floats and kind.kind != "f"):
            return NotImplemented
        if not all(isinstance(one, clarray.Array) or _holds(kind, one) for one in values):
            return NotImplemented
        shape = np.broadcast_shapes(*[one.shape for one in arrays])
        inputs = [self.spread(one, shape, kind) for one in values]
        made = self.empty(shape, result)
        self.elements(text, made, *inputs)
        return made

    def pow(self, x, y):
        """C's power; those of 0.5 and -0.5 are by the square root, which differs at -0 and -inf."""
        if not isinstance(y, clarray.Array) and y in ROOTS:
            return self.elementwise(ROOTS[y], False, True, x)
        return self.elementwise("pow(a, b)", False, True, x, y)

    def where(self, condition, x, y):
        """``x`` where the condition holds, else ``y``."""
        kind = next(one.dtype for one in (y, x) if isinstance(one, clarray.Array))
        if kind.name not in CTYPES:
            return NotImplemented
        shape = np.broadcast_shapes(*[one.shape for one in (condition, x, y) if isinstance(one, clarray.Array)])
        made = self.empty(shape, kind)
        inputs = [
            self.spread(condition, shape, condition.dtype),
            self.spread(x, shape, kind),
            self.spread(y, shape, kind),
        ]
        self.elements("a ? b : c", made, *inputs)
        return made

    def elements(self, text, made, *inputs):
        """Run an expression into an array; all are of one shape."""
        if made.size:
            inputs = (inputs * 3)[:3] if len(inputs) == 1 else (*inputs, inputs[0])[:3]
            words = dict(
                zip("abc", [CTYPES[one.dtype.name] for one in inputs], strict=True), out=CTYPES[made.dtype.name]
            )
            store = f"({text}) != 0" if made.dtype == bool else f"({words['out']})({text})"
            self.run("elementwise", (made.size,), made, *inputs, store=store, **words)

    def spread(self, value, shape, dtype):
        """A number or an array in the shape of the result."""
        if not isinstance(value, clarray.Array):
            return self.dense(np.full(shape, value, dtype))
        if value.shape == shape:
            return value
        strides = [0] * (len(shape) - value.ndim)
        strides += [0 if size == 1 else step for size, step in zip(value.shape, _row_major(value.shape), strict=True)]
        return self.read(value.reshape(-1), shape, tuple(strides), 0)

    def reduce(self, step, start, x, *, dim=None, keepdim=False, dtype=None):
        """Combine the elements along some dims, one work item for each result."""
        kind = x.dtype if dtype is None else dtype.numpy
        dims = tuple(range(x.ndim)) if dim is None else dim
        rest = [i for i in range(x.ndim) if i not in dims]
        count, sizes = prod([x.shape[i] for i in dims]), [x.shape[i] for i in rest]
        if not {x.dtype.name, kind.name} <= CTYPES.keys() or kind.kind == "b" or (start is None and not count):
            return NotImplemented
        order = (*rest, *dims)
        strides = _row_major(x.shape)
        rows = self.read(x.reshape(-1), tuple([x.shape[i] for i in order]), tuple([strides[i] for i in order]), 0)
        made = self.empty(tuple(sizes), kind)
        if made.size:
            wide = "long" if kind.kind in "iu" else "double" if start is not None else CTYPES[kind.name]
            self.run("reduce", (made.size,), made, rows, count, out=CTYPES[kind.name], a=CTYPES[x.dtype.name], wide=wide,
                     start=start or "x[i * n]", step=step)  # fmt: skip
        return made.reshape([1 if i in dims else n for i, n in enumerate(x.shape)]) if keepdim else made

    def matmul(self, x, y):
        """Matrices and batches of them, one work item for each element; vectors are left to others."""
        if x.dtype.name not in CTYPES or x.dtype == bool or x.ndim < 2 or y.ndim < 2:
            return NotImplemented
        (m, k), n = x.shape[-2:], y.shape[-1]
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        if y.shape[-2] != k:
            raise ValueError("the inner sizes differ")  # the frontend says it in the user's shapes
        x, y = self.spread(x, (*batch, m, k), x.dtype), self.spread(y, (*batch, k, n), y.dtype)
        made = self.empty((*batch, m, n), x.dtype)
        if made.size:
            self.run("matmul", (n, m, prod(batch)), made, x, y, m, k, n, t=CTYPES[x.dtype.name])
        return made


def _holds(dtype, number):
    """Whether a number stays what it is in a dtype: integers hold no fractions, infinities or larger numbers."""
    if dtype.kind == "f":
        return True
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return least <= number <= most and number == int(number)


def build(context, text):
    """The kernel ``run`` of a program."""
    with warnings.catch_warnings(action="ignore", category=cl.CompilerWarning):  # what compilers say of good code
        return cl.Kernel(cl.Program(context, text).build(), "run")


@functools.cache
def working():
    """The devices of all platforms that compile a program, and why others do not: a compiler may not know its processor."""
    found, reasons = [], []
    try:
        for device in [device for platform in cl.get_platforms() for device in platform.get_devices()]:
            try:
                build(cl.Context([device]), "kernel void run() {}")
                found.append(device)
            except cl.Error as error:
                said = [line for line in str(error).splitlines() if "error:" in line]
                reasons.append(f"{device.platform.name}: {(said or [str(error)])[0].strip()}")
    except cl.Error as error:  # no platform at all
        reasons.append(str(error))
    return found, reasons


@functools.lru_cache(4096)
def _row_major(shape):
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(size, 1))
    return tuple(reversed(steps))[: len(shape)]
