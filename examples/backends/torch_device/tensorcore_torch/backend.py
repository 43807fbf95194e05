"""PyTorch's CPU tensors as native arrays, and its functions as kernels."""

import torch

from tensorcore.plugin import (
    Backend,
    Capabilities,
    DeviceUnavailable,
    DivisionError,
    DtypeError,
    OutOfMemoryError,
    dtypes,
)

__all__ = ["TorchBackend"]

TORCH = {one.name: getattr(torch, one.name) for one in dtypes.ALL}

# Kernels that are PyTorch's functions of the same name, arguments and all.
SAME = [
    "abs", "acos", "acosh", "add", "angle", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "complex",
    "conj_physical", "copysign", "cos", "cosh", "digamma", "div", "eq", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "floor", "fmax", "fmin", "ge", "gt", "hypot", "isfinite", "isinf", "isnan", "le", "lgamma", "log",
    "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "lt", "matmul", "maximum", "minimum", "mul", "ne", "neg", "nextafter", "positive", "reciprocal", "round",
    "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "trunc",
    "where",
]  # fmt: skip


def of_tensors(function):
    """A function for calls with a number among its tensors: one of their dtype."""

    def kernel(*values, **options):
        dtype = next(one.dtype for one in reversed(values) if isinstance(one, torch.Tensor))
        return function(
            *[one if isinstance(one, torch.Tensor) else torch.tensor(one, dtype=dtype) for one in values], **options
        )

    return kernel


def divisor_checked(name, function):
    """A division that says what is wrong with a zero among integers in tensorcore's words."""

    def kernel(x, y, **options):
        if not (y.is_floating_point() or y.is_complex() or y.all()):
            raise DivisionError(
                f"{name}: ZeroDivisionError: expected integers other than 0 to divide by, got 0; mask them out"
            )
        return function(x, y, **options)

    return of_tensors(kernel)


def power(x, y, **options):
    """Powers; a negative one of integers, where it is a number, is an error and not 0."""
    if isinstance(y, int) and y < 0 and not (x.is_floating_point() or x.is_complex()):
        raise DtypeError(
            f"pow: Integers to negative integer powers are not allowed, got exponent {y}; convert to a floating dtype first"
        )
    return torch.pow(x, y, **options)


def over_all(function):
    """A reduction that wants its dims named, for calls that mean all of them."""
    return lambda x, *, dim=None, **options: function(x, tuple(range(x.ndim)) if dim is None else dim, **options)


def as_numbers(function):
    """A function that takes no bools, of which 0 and 1 have the same order."""
    return lambda x, **options: function(x.view(torch.uint8) if x.dtype is torch.bool else x, **options)


OTHER = {
    "amax": over_all(torch.amax),
    "amin": over_all(torch.amin),
    "arange": lambda start, step, length, *, dtype: (start + step * torch.arange(length)).to(TORCH[dtype.name]),
    "argmax": as_numbers(torch.argmax),
    "argmin": as_numbers(torch.argmin),
    "cast": lambda x, *, dtype: x.to(TORCH[dtype.name], copy=True),
    "cat": lambda xs, *, dim, shape: torch.cat(xs, dim),
    "clone": torch.clone,
    "contiguous": lambda x: x.clone(memory_format=torch.contiguous_format),
    "copy": lambda target, source: target.copy_(source),
    "cumsum": lambda x, *, dim, dtype=None: torch.cumsum(x, dim, dtype=dtype and TORCH[dtype.name]),
    "fill": lambda target, value: target.fill_(value),
    "flip": lambda x, *, dims: torch.flip(x, dims),
    "floor_divide": divisor_checked("floor_divide", torch.floor_divide),
    "fmod": divisor_checked("fmod", torch.fmod),
    "full": lambda shape, value, *, dtype: torch.full(shape, value, dtype=TORCH[dtype.name]),
    "index_bounds": lambda x: (int(x.min()), int(x.max())) if x.numel() else (0, -1),
    "mean": over_all(torch.mean),
    "pow": power,
    "remainder": divisor_checked("remainder", torch.remainder),
    "reinterpret": lambda x, *, dtype: x.view(TORCH[dtype.name]),
    "real": torch.real,
    "imag": torch.imag,
    "softmax": torch.softmax,
    "stack": lambda xs, *, dim: torch.stack(xs, dim),
    "view_as_complex": torch.view_as_complex,
    "view_as_real": torch.view_as_real,
}


class TorchBackend(Backend):
    """PyTorch on this machine's processor."""

    capabilities = Capabilities(tuple(TORCH))
    array = torch.Tensor
    dlpack_type = 1  # the host's memory

    def __init__(self, index=0):
        if index:
            raise DeviceUnavailable(f"torch: expected index 0, got {index}; PyTorch has one CPU")
        super().__init__("torch", index)

    def allocate(self, shape, dtype):
        try:
            return torch.empty(shape, dtype=TORCH[dtype.name])
        except RuntimeError as error:
            raise OutOfMemoryError(f"allocate: expected room for {shape} of {dtype}, got none: {error}") from None

    def from_host(self, array):
        if array.dtype == dtypes.bfloat16.numpy:  # of another package, so it travels as integers
            return self.from_host(array.view("int16")).view(torch.bfloat16)
        # PyTorch gives what it makes of an array without elements strides of 0.
        made = torch.tensor(array)
        return made if made.numel() else torch.empty(made.shape, dtype=made.dtype)

    def to_host(self, native):
        native = native.detach().resolve_conj().resolve_neg()
        if native.dtype == torch.bfloat16:
            return native.view(torch.int16).numpy().view(dtypes.bfloat16.numpy)
        return native.numpy()

    def as_strided(self, native, shape, strides, offset):
        return torch.as_strided(native, shape, strides, offset)

    def layout(self, native):
        return native.stride(), native.storage_offset()

    def storage(self, native):
        return torch.empty(0, dtype=native.dtype).set_(native.untyped_storage())

    def data_pointer(self, native):
        return native.data_ptr()

    def to_dlpack(self, native, dtype, **options):
        return native.__dlpack__(**options)

    def from_dlpack(self, exporter, copy=None, **options):
        made = torch.from_dlpack(exporter)
        return (made.clone() if copy else made), next(one for one in dtypes.ALL if TORCH[one.name] is made.dtype)

    def find_kernel(self, name):
        kernel = super().find_kernel(name) or OTHER.get(name)
        if kernel is None and name in SAME:
            kernel = of_tensors(getattr(torch, name))
        return kernel and self.or_without(name, kernel)

    def or_without(self, name, kernel):
        """A kernel, and what would run without it for dtypes that PyTorch has no code for, such as uint16."""

        def run(*values, **options):
            try:
                return kernel(*values, **options)
            except NotImplementedError:
                return self.without(name)(*values, **options)

        return run

    def kernel_sum(self, x, *, dim=None, keepdim=False, dtype=None):
        return torch.sum(x, dim, keepdim, dtype=TORCH[dtype.name] if dtype else x.dtype)

    def kernel_prod(self, x, *, dim=None, keepdim=False, dtype=None):
        for one in sorted(range(x.ndim) if dim is None else dim, reverse=True):
            x = torch.prod(x, one, True, dtype=TORCH[dtype.name] if dtype else x.dtype)
        return x if keepdim else x.reshape([n for i, n in enumerate(x.shape) if dim is not None and i not in dim])

    def report(self):
        return {"library": f"torch {torch.__version__}", "threads": torch.get_num_threads()}
