"""JAX's arrays as flat memory, and its functions as dense kernels."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tensorcore.plugin import Capabilities, DeviceUnavailable, StridedBackend, dtypes, flat_index

__all__ = ["JaxBackend"]

jax.config.update("jax_enable_x64", True)  # or float64 becomes float32 without a word

# Kernels by the functions of jax.numpy that they are; most have its name.
SAME = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "copysign", "cos", "cosh", "exp", "expm1", "floor",
    "fmax", "fmin", "hypot", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "nextafter",
    "positive", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "reciprocal",
]  # fmt: skip
NAMED = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "bitwise_left_shift": "left_shift", "bitwise_not": "bitwise_not",
    "bitwise_right_shift": "right_shift", "conj_physical": "conjugate", "div": "true_divide", "eq": "equal",
    "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "mul": "multiply", "ne": "not_equal",
    "neg": "negative", "sgn": "sign", "sub": "subtract",
}  # fmt: skip


SMALL = 4096  # elements up to which XLA takes longer to compile a program than to run it
LINE = 64  # the shortest line; on the CPU a shorter one is not faster

# XLA compiles a program for every shape. Small arrays on the CPU are laid out in lines, of which few lengths exist.


def small(*arrays):
    """The CPU that all of these small arrays are on, which are NumPy's beside at least one of JAX; else None."""
    [place, *_] = next(one.devices() for one in arrays if isinstance(one, jax.Array))
    return place if place.platform == "cpu" and max(one.size for one in arrays) <= SMALL else None


def line(size, shortest=LINE):
    """The length of the line for so many elements."""
    return max(shortest, 1 << (size - 1).bit_length())


def elementwise(function):
    """A function of elements, on arrays that broadcast and on numbers, which take the arrays' dtype."""

    def kernel(*given, **options):
        dtype = next(one.dtype for one in reversed(given) if hasattr(one, "dtype"))
        values: list = [one if hasattr(one, "dtype") else np.asarray(one, dtype) for one in given]
        shape = np.broadcast_shapes(*[one.shape for one in values])
        size = int(np.prod(shape))
        if size > SMALL or (place := small(*values)) is None:
            return function(*map(jnp.asarray, values), **options)
        lines = [np.zeros(line(size), one.dtype) for one in values]
        for each, one in zip(lines, values, strict=True):
            each[:size] = np.broadcast_to(one, shape).ravel()
        done = function(*jax.device_put(lines, place), **options)
        return jax.device_put(np.asarray(done)[:size].reshape(shape), place)

    return kernel


def reduction(function, neutral=None):
    """A function of slices; what fills a line is ``neutral``, or where there is no such element the slice's first one."""

    def kernel(x, *, dim=None, keepdim=False, **options):
        if x.size == 0 or (place := small(x)) is None:
            return function(x, axis=dim, keepdims=keepdim, **options)
        dims = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
        kept = [one for one in range(x.ndim) if one not in dims]
        rows = np.asarray(x).transpose(*kept, *dims).reshape(int(np.prod([x.shape[one] for one in kept])), -1)
        lines = np.zeros((line(rows.shape[0]), line(rows.shape[1])), x.dtype)
        lines[: rows.shape[0]] = rows[:, :1] if neutral is None else neutral
        lines[: rows.shape[0], : rows.shape[1]] = rows
        done = np.asarray(function(jax.device_put(lines, place), axis=1, keepdims=False, **options))[: rows.shape[0]]
        shape = [1 if one in dims else n for one, n in enumerate(x.shape) if keepdim or one not in dims]
        return jax.device_put(done.reshape(shape), place)

    return kernel


def accumulated(function):
    """A sum or a product in the dtype that is asked for."""

    def reduce(x, *, axis, keepdims, dtype=None):
        kind = dtype.numpy if dtype else x.dtype
        # Two bytes are too few to add up in; the result is rounded once.
        narrow = x.dtype.itemsize <= 2 and x.dtype.kind not in "iub"
        return function(x.astype(np.float32) if narrow else x.astype(kind), axis=axis, keepdims=keepdims).astype(kind)

    return reduce


def matmul(x, y):
    """Products of matrices, small ones with zeros around them."""
    fits = min(x.ndim, y.ndim) >= 2 and x.shape[-1] == y.shape[-2]  # or JAX says that it does not
    if not fits or (place := small(x, y)) is None:
        return jnp.matmul(x, y)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    count = int(np.prod(batch))
    given = []
    for one in (x, y):
        there = np.broadcast_to(np.asarray(one), (*batch, *one.shape[-2:])).reshape(count, *one.shape[-2:])
        lines = np.zeros([line(count, 1), *[line(n, 8) for n in one.shape[-2:]]], one.dtype)
        lines[:count, : one.shape[-2], : one.shape[-1]] = there
        given.append(jax.device_put(lines, place))
    done = np.asarray(jnp.matmul(*given))[:count, : x.shape[-2], : y.shape[-1]]
    return jax.device_put(done.reshape(*batch, x.shape[-2], y.shape[-1]), place)


def arange(start, step, length, *, dtype):
    """As many numbers, from the front of a line."""
    made = (start + step * jnp.arange(line(length) if length <= SMALL else length)).astype(dtype.numpy)
    return jax.device_put(np.asarray(made)[:length]) if length <= SMALL else made


def moved(function):
    """A function of both libraries that computes nothing, called with the one that small arrays move by."""

    def kernel(x, **options):
        arrays = x if isinstance(x, (list, tuple)) else [x]
        place = small(*arrays)
        return function(jnp, x, **options) if place is None else jax.device_put(function(np, x, **options), place)

    return kernel


DENSE = {
    **{name: elementwise(getattr(jnp, NAMED.get(name, name))) for name in [*SAME, *NAMED]},
    "all": reduction(lambda x, **options: jnp.all(x != 0, **options)),
    "amax": reduction(jnp.max),
    "amin": reduction(jnp.min),
    "any": reduction(lambda x, **options: jnp.any(x != 0, **options)),
    "arange": arange,
    "argmax": reduction(jnp.argmax),
    "argmin": reduction(jnp.argmin),
    "cast": elementwise(lambda x, *, dtype: x.astype(dtype.numpy)),
    "cat": moved(lambda xp, xs, *, dim, shape: xp.concatenate([one for one in xs if one.shape != (0,)] or xs, dim)),
    "clone": lambda x: x,
    "contiguous": lambda x: x,
    "flip": moved(lambda xp, x, *, dims: xp.flip(x, dims)),
    "index_bounds": lambda x: (int(reduction(jnp.min)(x)), int(reduction(jnp.max)(x))) if x.size else (0, -1),
    "matmul": matmul,
    "prod": reduction(accumulated(jnp.prod), 1),
    "stack": moved(lambda xp, xs, *, dim: xp.stack(xs, dim)),
    "sum": reduction(accumulated(jnp.sum), 0),
    "where": elementwise(jnp.where),
}


class JaxBackend(StridedBackend):
    """One device of JAX."""

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL))
    dense_kernels = DENSE
    numbered = True

    def __init__(self, index=0):
        devices = jax.devices()
        if index >= len(devices):
            raise DeviceUnavailable(
                f"jax: expected an index below {len(devices)}, got {index}; use one of JAX's devices"
            )
        super().__init__("jax", index)
        self.place = devices[index]
        # On the CPU NumPy reads JAX's memory where it is; XLA would compile a program for every shape of a view.
        self.shared = self.place.platform == "cpu"
        self.dlpack_type = 1 if self.shared and not index else None  # the host's memory

    def dense(self, array):
        return jax.device_put(np.array(array), self.place)

    def host(self, dense):
        return np.array(dense)

    def flattened(self, dense):
        return jax.device_put(np.asarray(dense).reshape(-1), self.place) if self.shared else dense.reshape(-1)

    def read(self, data, shape, strides, offset):
        if self.shared:
            return jax.device_put(_view(np.asarray(data), shape, strides, offset), self.place)
        return data[_places(shape, strides, offset)]

    def write(self, data, shape, strides, offset, values):
        if self.shared:
            changed = np.array(data)
            _view(changed, shape, strides, offset)[...] = np.asarray(values)
            return jax.device_put(changed, self.place)
        return data.at[_places(shape, strides, offset)].set(values)

    def to_dlpack(self, native, dtype, **options):
        return self.load(native).__dlpack__(**options)

    def from_dlpack(self, exporter, copy=None, **options):
        if copy is False:  # JAX trusts that nobody writes to its arrays
            raise BufferError("from_dlpack: expected permission to copy, got copy=False; jax's arrays never change")
        made = jax.dlpack.from_dlpack(exporter)  # whose own ``copy=True`` shares the memory all the same
        return self.from_host(np.asarray(made)), next(one for one in dtypes.ALL if one.numpy == made.dtype)

    def synchronize(self):
        jax.effects_barrier()

    def report(self):
        return {"library": f"jax {jax.__version__}", "platform": self.place.platform}


_places = functools.lru_cache(4096)(flat_index)


def _view(flat, shape, strides, offset):
    # A view without elements may begin behind the last one.
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, [step * flat.itemsize for step in strides])
