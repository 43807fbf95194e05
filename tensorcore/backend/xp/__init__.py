"""XPBackend: a whole backend from any namespace that looks like NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend, Capabilities, Kernel, Native
from tensorcore.backend.strides import contiguous_strides
from tensorcore.backend.xp import (
    activate,
    conv,
    elementwise,
    formulas,
    indexing,
    linalg,
    movement,
    norm,
    optim,
    pool,
    reduce,
    sort,
)
from tensorcore.backend.xp.dlpack import export_array, import_array
from tensorcore.backend.xp.laid import laid, layings

__all__ = ["XPBackend"]

# inf and nan are results like any other, as in PyTorch. NumPy's errstate would cost 0.8 us a call; this
# filter concerns only calls from our own modules.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tensorcore")

FAMILIES = (elementwise, movement, indexing, reduce, linalg, sort, norm, activate, conv, pool, optim, formulas)
# Imported when one of their kernels is first asked for.
LATE = {
    name: family
    for family, names in {
        "fourier": "fft_c2c fft_r2c fft_c2r",
        "functions": "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u "
        "chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv hermite_polynomial_h "
        "hermite_polynomial_he i0 i0e i1 i1e igamma igammac laguerre_polynomial_l legendre_polynomial_p lgamma "
        "log_ndtr modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri polygamma "
        "scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w trigamma "
        "xlog1py xlogy zeta",
        "lapack": "cholesky eig eigh geqrf householder_product inverse ldl_factor ldl_solve lstsq lu_factor lu_solve ormqr "
        "solve_triangular svd unpack_pivots",
        "margins": "multi_margin_loss multi_margin_loss_backward multilabel_margin_loss multilabel_margin_loss_backward",
        "resample": "grid_sample grid_sample_backward",
        "factors": "cholesky_inverse determinant log_determinant qr qr_triangle unpack_lu",
        "recurrent": "lstm_steps gru_steps rnn_steps lstm_steps_backward gru_steps_backward rnn_steps_backward",
        "sparse": "line_starts sparse_coalesce sparse_matmul sparse_matmul_backward sparse_product sparse_softmax sparse_softmax_backward",
        "sequence": "attention attention_backward ctc_loss ctc_loss_backward",
    }.items()
    for name in names.split()
}


class XPBackend(Backend):
    """A backend over an array namespace: NumPy, CuPy, or whatever has their functions.

    Args:
        xp: the namespace.
        name, index: of the device.
    """

    capabilities = Capabilities(tuple(one.name for one in dtypes.ALL), host=True)

    def __init__(self, xp: Any = np, name: str = "xp", index: int = 0) -> None:
        super().__init__(name, index)
        self.xp = xp
        self.dlpack_type = 1 if xp is np else None
        self.array = xp.ndarray
        self.table: dict[str, Kernel] = {}
        self.arrived: dict[str, Kernel] = {}
        self.families: set[str] = set()  # those that arrived
        for family in FAMILIES:
            kernels = family.kernels(self)
            twice = self.table.keys() & kernels.keys()
            assert not twice, f"{family.__name__} defines kernels of another family again: {sorted(twice)}"
            self.table.update(kernels)
        self.layings = layings(self, self.table)
        for name, lay in self.layings.items():
            if (
                type(self.table[name]) is not np.ufunc
            ):  # those keep the order but in a dispute, and are to stay what they are
                self.table[name] = laid(name, self.table[name], lay, self.array)
        self.table.update({name: partial(self._arrive, name) for name in LATE})

    def find_kernel(self, name: str) -> Kernel | None:
        found = super().find_kernel(name) or self.table.get(name)
        return self._late(name) if name in LATE and type(found) is partial else found

    def _late(self, name: str) -> Kernel | None:
        # Not into the table, where another kernel may stand over the stub and fall back to it.
        family = LATE[name]
        if family not in self.families:
            self.families.add(family)
            self.arrived.update(import_module(f"tensorcore.backend.xp.{family}").kernels(self))
        return self.arrived.get(name)

    def _arrive(self, name: str, *natives: Native, **options: Any) -> Any:
        return (self._late(name) or self.without(name))(*natives, **options)

    def xp_dtype(self, dtype: dtypes.dtype) -> Any:
        """The namespace's own dtype for one of ours."""
        return dtype.numpy

    def as_native(self, value: Any) -> Native:
        return self.xp.asarray(value)

    def dtype_of(self, native: Native) -> dtypes.dtype:
        return dtypes.from_numpy_dtype(native.dtype)

    def allocate(self, shape: tuple[int, ...], dtype: dtypes.dtype) -> Native:
        return self.xp.empty(shape, self.xp_dtype(dtype))

    def from_host(self, array: np.ndarray) -> Native:
        return self.xp.array(array)

    def share_host(self, array: np.ndarray) -> Native:
        # A storage of its own: whatever ``array`` is a part of is not the tensor's to show.
        if self.xp is not np:
            return self.from_host(array)
        if array.base is None and type(array) is np.ndarray:
            return array.view()  # a fourth of the time of what follows; all of the memory is the array's
        shared = np.asarray(_Shared(array))
        return shared if shared.dtype == array.dtype else shared.view(array.dtype)  # bfloat16 goes as bytes

    def to_host(self, native: Native) -> np.ndarray:
        return native  # type: ignore[no-any-return]

    def as_strided(self, native: Native, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Native:
        # The constructor checks that every element lies inside the buffer, and takes buffers of any dtype.
        size = native.itemsize
        steps = tuple([step * size for step in strides])
        owner = self._owner(native)
        # A part without elements may begin behind the end: the constructor knows no such place.
        start = min(offset * size, owner.nbytes) if 0 in shape else offset * size
        return self.over(owner, shape, native.dtype, start, steps)

    def over(self, native: Native, shape: tuple[int, ...], dtype: Any, start: int, strides: tuple[int, ...]) -> Native:
        """A native array over the memory of another, ``start`` bytes behind its first element; strides in bytes."""
        return self.xp.ndarray(shape, dtype, native, start, strides)

    def strides(self, native: Native) -> tuple[int, ...]:
        size = native.itemsize
        strides = tuple([step // size for step in native.strides])
        # NumPy gives new arrays without elements strides of 0 throughout.
        return strides if native.size or any(strides) else contiguous_strides(native.shape)

    def layout(self, native: Native) -> tuple[tuple[int, ...], int]:
        strides = self.strides(native)
        if native.base is None:
            return strides, 0
        start = self.data_pointer(self._owner(native))
        return strides, (self.data_pointer(native) - start) // native.itemsize

    def is_contiguous(self, native: Native) -> bool:
        return native.flags.c_contiguous  # type: ignore[no-any-return]

    def storage(self, native: Native) -> Native:
        root = self._owner(native)
        flat = root if root.ndim == 1 else root.reshape(-1, order="C" if root.flags.c_contiguous else "F")
        if flat.dtype == native.dtype:
            return flat
        return self.xp.ndarray((root.nbytes // native.itemsize,), native.dtype, root)

    def storage_key(self, native: Native) -> Hashable:
        return self.data_pointer(self._owner(native))

    def _owner(self, native: Native) -> Native:
        """The array that owns the memory under ``native``, without gaps."""
        root = native
        while isinstance(root.base, self.xp.ndarray):
            root = root.base
        if root.flags.c_contiguous or root.flags.f_contiguous:
            return root
        # A base from elsewhere whose elements do not lie densely: all from its first to its last byte.
        span = sum([(size - 1) * step for size, step in zip(root.shape, root.strides, strict=True) if size])
        return np.lib.stride_tricks.as_strided(root, (span // root.itemsize + 1,), (root.itemsize,))

    def to_dlpack(self, native: Native, dtype: dtypes.dtype, **options: Any) -> Any:
        return export_array(native, dtype, **options) if self.xp is np else super().to_dlpack(native, dtype, **options)

    def from_dlpack(self, exporter: Any, **options: Any) -> tuple[Native, dtypes.dtype]:
        if self.xp is not np:
            return super().from_dlpack(exporter, **options)
        array = import_array(exporter, **options)
        return array, dtypes.from_numpy_dtype(array.dtype)

    def report(self) -> dict[str, str | int | float | bool | None]:
        return {"library": f"{self.xp.__name__} {getattr(self.xp, '__version__', 'of unknown version')}"}

    def data_pointer(self, native: Native) -> int:
        return native.__array_interface__["data"][0]  # type: ignore[no-any-return]


class _Shared:
    """Stands between a host array and its owner, so that the search for a storage ends there."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, array: np.ndarray) -> None:
        self.__array_interface__ = array.__array_interface__
        self.owner = array
