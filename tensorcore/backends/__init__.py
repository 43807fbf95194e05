"""``torch.backends``: switches of the libraries that PyTorch runs on; and, called, the names of the devices there are.

A program may set and read each switch. What it changes is how fast a device's plugin is, and with that the last bits of results.
What a ``is_available()`` is asked for is answered for this library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar

from tensorcore import dtypes
from tensorcore.accelerators import Devices
from tensorcore.backend import registry
from tensorcore.ops.placement import host_device
from tensorcore.switches import Switches, set_float32_matmul_precision

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


class _Room(ModuleType):
    """The switches of one library: attributes that may be set."""

    def __init__(self, name: str, **switches: Any) -> None:
        super().__init__(f"{__name__}.{name}")
        self.__dict__.update(switches)
        sys.modules[self.__name__] = self

    def is_available(self) -> bool:
        """Whether this library computes with it: no."""
        return False

    is_built = is_available

    @contextmanager
    def flags(self, **switches: Any) -> Iterator[None]:
        """Set switches inside ``with``."""
        before = {name: getattr(self, name) for name in switches}
        self._set(switches)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, switches: dict[str, Any]) -> None:
        for name, value in switches.items():
            setattr(self, name, value)


class _Cudnn(_Room):
    """NVIDIA's library of layers: a plugin that has it reads ``enabled`` and the other switches at each call."""

    CUDNN_TENSOR_DTYPES = frozenset([dtypes.float16, dtypes.float32, dtypes.float64])

    def version(self) -> int | None:
        """Its version as it counts them, such as 91300 for 9.13.0; None where no device uses it."""
        devices = Devices("cuda")
        return devices.report().get("cudnn") if devices.is_available() else None

    def is_available(self) -> bool:
        """Whether convolutions and attention on CUDA devices can run in it."""
        return self.version() is not None

    def is_acceptable(self, tensor: Any) -> bool:
        """Whether it would take the tensor."""
        return bool(
            self.enabled
            and tensor.device.type == "cuda"
            and tensor.dtype in self.CUDNN_TENSOR_DTYPES
            and self.is_available()
        )


class _Kinds(_Room):
    """The libraries of one kind of device."""

    def is_available(self) -> bool:
        """Whether there is such a device."""
        return Devices(self.__name__.rpartition(".")[2]).is_available()

    is_built = is_available


class _Processor(_Kinds):
    """The host's own kernels."""

    _CAPABILITIES: ClassVar[dict[str, str]] = {"avx512": "AVX512", "avx2": "AVX2"}

    @property
    def benchmark(self) -> bool:
        """Whether a convolution of new sizes is made in each way there is, and the fastest kept for these sizes.

        False at the start: which way is taken then depends on the sizes alone, so that results have the same bits in
        each run. ``use_deterministic_algorithms(True)`` keeps to that whatever stands here.
        """
        return host_device().benchmark()

    @benchmark.setter
    def benchmark(self, value: bool) -> None:
        host_device().benchmark(bool(value))

    @property
    def codegen(self) -> bool:
        """Whether functions that are compiled from now on, and lazy programs, have C made of their groups of elementwise ops.

        False at the start; ``TENSORCORE_CODEGEN=1`` changes that. A C compiler is needed (``$CC``, or one on the path), and some tenths
        of a second for each file; what it made is kept on disk. Results have the same bits. Without the extension it stays False.
        """
        return host_device().codegen()

    @codegen.setter
    def codegen(self, value: bool) -> None:
        host_device().codegen(bool(value))

    def get_cpu_capability(self) -> str:
        """The instruction set that kernels run with, in PyTorch's words: ``AVX512``, ``AVX2``, or ``DEFAULT`` for none of them."""
        return self._CAPABILITIES.get(host_device().properties().get("instructions", ""), "DEFAULT")


class _Products:
    """How products of matrices may be rounded on CUDA devices."""

    allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 may be rounded to 10 bits: the other name of ``set_float32_matmul_precision("high")``."""
        return Switches.precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        set_float32_matmul_precision("high" if value else "highest")


class _Cuda(_Kinds):
    """The ways of attention, each of which may be left out."""

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Whether attention may run in one kernel."""
        self._flash = enabled

    def enable_mem_efficient_sdp(self, enabled: bool) -> None:
        """Whether attention may run in one kernel of another kind."""
        self._efficient = enabled

    def enable_math_sdp(self, enabled: bool) -> None:
        """Whether attention may run op by op."""
        self._math = enabled

    def enable_cudnn_sdp(self, enabled: bool) -> None:
        """Whether attention may run in cuDNN."""
        self._cudnn = enabled

    def flash_sdp_enabled(self) -> bool:
        """Whether attention may run in one kernel."""
        return self._flash

    def mem_efficient_sdp_enabled(self) -> bool:
        """Whether attention may run in one kernel of another kind."""
        return self._efficient

    def math_sdp_enabled(self) -> bool:
        """Whether attention may run op by op."""
        return self._math

    def cudnn_sdp_enabled(self) -> bool:
        """Whether attention may run in cuDNN."""
        return self._cudnn

    @contextmanager
    def sdp_kernel(self, enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
                   enable_cudnn: bool = True) -> Iterator[None]:  # fmt: skip
        """Set the ways of attention inside ``with``."""
        with self.flags(_flash=enable_flash, _math=enable_math, _efficient=enable_mem_efficient, _cudnn=enable_cudnn):
            yield


class _Callable(ModuleType):
    """The module itself, which is also the function that was here before it."""

    def __call__(self) -> list[str]:
        """The names of the devices that can be used now."""
        return registry.backends()


cudnn = _Cudnn("cudnn", enabled=True, benchmark=False, deterministic=False, allow_tf32=True, benchmark_limit=None)
cuda = _Cuda("cuda", matmul=_Products(), _flash=True, _efficient=True, _math=True, _cudnn=True)
mps = _Kinds("mps")
mkl = _Room("mkl")
mkldnn = _Room("mkldnn", enabled=True, deterministic=False, allow_tf32=True)
openmp = _Room("openmp")
opt_einsum = _Room("opt_einsum", enabled=False, strategy=None)
cpu = _Processor("cpu")

sys.modules[__name__].__class__ = _Callable
