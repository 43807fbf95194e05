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


def elementwise(function):
    """A function of elements, on arrays that broadcast and on numbers, which take the arrays' dtype.

    XLA compiles a program for every shape, so small arrays on the CPU are laid out in lines, of which few lengths exist.
    """

    def kernel(*given, **options):
        dtype = next(one.dtype for one in reversed(given) if hasattr(one, "dtype"))
        values: list = [one if hasattr(one, "dtype") else np.asarray(one, dtype) for one in given]
        shape = np.broadcast_shapes(*[one.shape for one in values])
        [place, *_] = next(one.devices() for one in values if isinstance(one, jax.Array))
        size = int(np.prod(shape))
        if size > SMALL or place.platform != "cpu":
            return function(*map(jnp.asarray, values), **options)
        lines = [np.zeros(max(LINE, 1 << (size - 1).bit_length()), one.dtype) for one in values]
        for line, one in zip(lines, values, strict=True):
            line[:size] = np.broadcast_to(one, shape).ravel()
        done = function(*jax.device_put(lines, place), **options)
        return jax.device_put(np.asarray(done)[:size].reshape(shape), place)

    return kernel


def reduction(function):
    """A reduction under the interface's names for its options."""

    def kernel(x, *, dim=None, keepdim=False, dtype=None):
        kind = dtype.numpy if dtype else x.dtype
        # Two bytes are too few to add up in; the result is rounded once.
        narrow = x.dtype.itemsize <= 2 and x.dtype.kind not in "iub"
        return function(x.astype(np.float32) if narrow else x.astype(kind), axis=dim, keepdims=keepdim).astype(kind)

    return kernel


def extreme(function):
    """The largest or smallest element of slices."""
    return lambda x, *, dim=None, keepdim=False: function(x, axis=dim, keepdims=keepdim)


DENSE = {
    **{name: elementwise(getattr(jnp, NAMED.get(name, name))) for name in [*SAME, *NAMED]},
    "all": lambda x, *, dim=None, keepdim=False: jnp.all(x != 0, axis=dim, keepdims=keepdim),
    "amax": extreme(jnp.max),
    "amin": extreme(jnp.min),
    "any": lambda x, *, dim=None, keepdim=False: jnp.any(x != 0, axis=dim, keepdims=keepdim),
    "arange": lambda start, step, length, *, dtype: (start + step * jnp.arange(length)).astype(dtype.numpy),
    "argmax": extreme(jnp.argmax),
    "argmin": extreme(jnp.argmin),
    "cast": elementwise(lambda x, *, dtype: x.astype(dtype.numpy)),
    "cat": lambda xs, *, dim, shape: jnp.concatenate([one for one in xs if one.shape != (0,)] or xs, dim),
    "clone": lambda x: x,
    "contiguous": lambda x: x,
    "flip": lambda x, *, dims: jnp.flip(x, dims),
    "full": lambda shape, value, *, dtype: jnp.full(shape, value, dtype.numpy),
    "index_bounds": lambda x: (int(x.min()), int(x.max())) if x.size else (0, -1),
    "matmul": jnp.matmul,
    "prod": reduction(jnp.prod),
    "stack": lambda xs, *, dim: jnp.stack(xs, dim),
    "sum": reduction(jnp.sum),
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
