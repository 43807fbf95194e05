"""Numbers as eight bits and a scale: how weights are stored, and inputs rounded."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorcore import dtypes
from tensorcore.absent import qint8
from tensorcore.errors import ArgumentError
from tensorcore.nn.module import Module
from tensorcore.ops.shortage import again
from tensorcore.tape.mode import no_grad, unusual
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "Packed", "QConfig", "default_dynamic_qconfig", "float16_dynamic_qconfig", "per_channel_dynamic_qconfig", "rounded",
]  # fmt: skip


class QConfig(NamedTuple):
    """How a layer is quantised.

    Attributes:
        dtype: ``qint8``, or ``float16`` for weights of half the size.
        per_channel: whether each output has a scale of its own.
    """

    dtype: Any
    per_channel: bool = False


default_dynamic_qconfig = QConfig(qint8)
per_channel_dynamic_qconfig = QConfig(qint8, True)
float16_dynamic_qconfig = QConfig(dtypes.float16)


class Packed(Module):
    """A weight (outputs, inputs), and the bias that goes with it, in few bits.

    Attributes:
        data: the numbers, int8 or float16.
        scale: what one step of the int8 is worth, float32: for all, or for each output.
        bias: float32, None where there is none.
    """

    data: Tensor
    scale: Any
    bias: Any

    def __init__(self, weight: Tensor, bias: Tensor | None, qconfig: QConfig) -> None:
        super().__init__()
        self.qconfig = qconfig
        self.register_buffer("bias", None if bias is None else bias.detach().clone())  # type: ignore[attr-defined]
        values: Any = weight.detach()
        if not values.isfinite().all().item():
            raise ArgumentError(
                "quantize: expected finite weights, got inf or nan; train again from an earlier checkpoint"
            )
        if qconfig.dtype is dtypes.float16:
            self.register_buffer("data", values.half())
            self.register_buffer("scale", None)
            return
        # Symmetric around 0: the largest magnitude is 127.5 steps, so that both ends of the int8 are used.
        largest = values.abs().amax(1, keepdim=True) if qconfig.per_channel else values.abs().amax()
        scale = (largest / 127.5).clamp(min=1.1920928955078125e-07)
        self.register_buffer("data", (values * (1.0 / scale)).round().clamp(-128, 127).to(dtypes.int8))
        self.register_buffer("scale", scale.squeeze(1) if qconfig.per_channel else scale)

    def dequantize(self) -> Any:
        """The weight as float32."""
        wide: Any = self.data.float()  # type: ignore[attr-defined]
        if self.scale is None:
            return wide
        return wide * (self.scale.unsqueeze(1) if self.scale.dim() else self.scale)

    def product(self, x: Any, rounds: bool) -> Any:
        """``x`` times the weight's transpose, with the bias; ``rounds`` quantises ``x`` first. The result requires no gradient.

        By the device's product of integers where it has one, else as float32, which is exact for sums below 2**24: for up
        to 1032 inputs.
        """
        if rounds and (made := self._of_integers(x)) is not None:
            return made
        with no_grad():
            scale = self.scale
            if rounds and scale is not None:
                x, step = rounded(x)
                scale = scale * step
            made = x @ self.data.float().t()
            if scale is not None:
                made = made * scale
            return made if self.bias is None else made + self.bias

    def _of_integers(self, x: Any) -> Tensor | None:
        """What one kernel makes of a plain tensor, where there is one for it; None for other calls."""
        buffers = self._buffers  # past __getattr__
        data, scale, bias = buffers["data"], buffers["scale"], buffers["bias"]
        if (
            type(x) is not Tensor
            or type(scale) is not Tensor
            or x.dtype is not dtypes.float32
            or scale.dtype is not dtypes.float32
            or x.device is not data.device
            or (bias is not None and bias.dtype is not dtypes.float32)
            or unusual.tracers
            or unusual.vmaps
        ):
            return None
        device, shape = x.device, x.native.shape
        kernel = device.kernels["linear_int8"]
        if not kernel or not shape or shape[-1] != data.native.shape[1]:
            return None
        natives = (x.native, data.native, scale.native, None if bias is None else bias.native)
        try:
            native = kernel(*natives)
        except MemoryError as error:
            native = again(device, "linear_int8", natives, {}, error)
        made: Tensor = new_tensor(native, dtypes.float32, device)
        return made


def rounded(x: Any) -> tuple[Any, Any]:
    """A tensor as whole numbers of a step each, and the step.

    The range of the tensor, 0 included, is 127 steps wide: seven bits, so that PyTorch's int8 products cannot overflow
    their sums; the same here, so that a model gives the same numbers.
    """
    if not x.numel():
        return x, 1.0
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    step = (high - low) / 127
    step = step.where(step > 0, 1.0)
    zero = (-low / step).round().clamp(0, 127)
    return ((x * (1.0 / step)).round() + zero).clamp(0, 255) - zero, step
