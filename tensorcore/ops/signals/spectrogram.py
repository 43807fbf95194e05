"""Short-time Fourier transforms: the spectrum of each window of a signal, and back."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import DtypeError, ShapeError, UsageError
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.pointwise.complex import view_as_real
from tensorcore.ops.samples import fourier as samples
from tensorcore.ops.shapes.pad import pad
from tensorcore.ops.shapes.views_part import window_sum
from tensorcore.ops.signals.fourier import fft, ifft, irfft, rfft
from tensorcore.tensor import Tensor

__all__ = ["istft", "stft"]


@operation(samples=samples.stft)
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None, align_to_window: bool | None = None) -> Tensor:  # fmt: skip
    """The Fourier transforms of windows of a signal (length,) or of several (batch, length): (..., frequencies, windows).

    Args:
        n_fft: how many samples a window has.
        hop_length: from one window to the next, a quarter of ``n_fft`` unless told otherwise.
        win_length: how long ``window`` is, which stands in the middle of the ``n_fft`` samples.
        window: what samples are multiplied by; ones where None.
        center: whether window t has its middle at sample ``t * hop_length``; the signal is then continued on both
            sides in the way of ``pad_mode``.
        normalized: whether to divide by the root of ``n_fft``.
        onesided: whether frequencies that follow by symmetry are left out; not for complex signals.
        return_complex: whether to answer with complex numbers, or with a last dim of two real ones.
    """
    if type(input) is not Tensor:
        check_tensors("stft", input=input)
    if window is not None and type(window) is not Tensor:
        check_tensors("stft", window=window)
    if center and align_to_window is not None:
        raise UsageError("stft: stft align_to_window should only be set when center = false, got both; leave it out")
    if input.dtype.kind not in ("floating", "complex"):
        raise DtypeError(
            f"stft: expected a tensor of floating point or complex values, got {input.dtype}; use .float()"
        )
    if input.ndim not in (1, 2):
        raise ShapeError(f"stft: expected a 1D or 2D tensor, got {input.ndim}D; reshape it")
    whole = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not whole:
            raise UsageError(
                "stft: stft requires the return_complex parameter be given for real inputs, got None; pass return_complex=True"
            )
        return_complex = True
    x: Any = input if input.ndim == 2 else input.unsqueeze(0)  # type: ignore[attr-defined]
    if center:
        amount = n_fft // 2
        x = pad(x.unsqueeze(0), [amount, amount], pad_mode).squeeze(0)
    hop, taper = _window(
        "stft", x.real if x.dtype.is_complex else x, n_fft, hop_length, win_length, window, x.native.shape[-1]
    )
    onesided = not whole if onesided is None else onesided
    if onesided and whole:
        raise UsageError(
            "stft: Cannot have onesided output if window or input is complex, got onesided=True; leave it out"
        )
    frames = x.unfold(-1, n_fft, hop)
    frames = frames if taper is None else frames * taper
    norm = "ortho" if normalized else None
    made: Any = rfft(frames, norm=norm) if onesided else fft(frames, norm=norm)
    made = made.mT
    made = made if input.ndim == 2 else made.squeeze(0)
    if return_complex:
        return made  # type: ignore[no-any-return]
    return view_as_real(made)


def _window(op: str, like: Any, n_fft: int, hop: Any, length: Any, window: Any, have: int | None) -> tuple[int, Any]:
    """The hop, and the window in the middle of zeros."""
    hop = n_fft // 4 if hop is None else hop
    length = n_fft if length is None else length
    if n_fft <= 0 or (have is not None and n_fft > have):
        raise UsageError(f"{op}: expected 0 < n_fft <= {have}, but got n_fft={n_fft}; pass a shorter one")
    if hop <= 0:
        raise UsageError(f"{op}: expected hop_length > 0, but got hop_length={hop}; pass a positive one")
    if length <= 0 or length > n_fft:
        raise UsageError(f"{op}: expected 0 < win_length <= n_fft, but got win_length={length}; pass a shorter one")
    if window is not None and (window.ndim != 1 or window.native.shape[0] != length):
        raise ShapeError(
            f"{op}: expected a 1D window tensor of size equal to win_length={length}, but got window with size {list(window.shape)}"
        )
    if length < n_fft:
        if window is None:
            window = like.new_ones(length)
        left = (n_fft - length) // 2
        window = pad(window, [left, n_fft - length - left])
    return hop, window


@operation(samples=samples.istft)
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
          center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Tensor:  # fmt: skip
    """The signal of which :func:`stft` gave ``input``: the sum of all windows over the sum of the squared tapers.

    Args:
        length: of the signal; it is cut off or continued by zeros.
        return_complex: whether the signal is complex; ``onesided`` must be False then.
    """
    if type(input) is not Tensor:
        check_tensors("istft", input=input)
    if window is not None and type(window) is not Tensor:
        check_tensors("istft", window=window)
    if not input.dtype.is_complex:
        raise DtypeError(
            f"istft: istft requires a complex-valued input tensor matching the output from stft with return_complex=True, got "
            f"{input.dtype}; use view_as_complex"
        )
    if not input.numel():
        raise ShapeError(f"istft: input tensor cannot be empty, got shape {list(input.shape)}; skip it")
    if input.ndim not in (2, 3):
        raise ShapeError(f"istft: expected a tensor with 2 or 3 dimensions, got {input.ndim}; reshape it")
    x: Any = input if input.ndim == 3 else input.unsqueeze(0)  # type: ignore[attr-defined]
    hop, taper = _window("istft", x.real, n_fft, hop_length, win_length, window, None)
    rows, count = x.native.shape[-2], x.native.shape[-1]
    onesided = rows != n_fft if onesided is None else onesided
    if rows != (n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(
            f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided="
            f"{onesided}, got {rows} for n_fft={n_fft}; compare with what stft got"
        )
    if return_complex and onesided:
        raise UsageError(
            "istft: cannot have onesided output if window or input is complex, got both; pass onesided=False"
        )
    if not return_complex and window is not None and window.dtype.is_complex:
        raise UsageError("istft: Complex windows are incompatible with return_complex=False, got one; pass True")
    if hop > (win_length or n_fft):
        raise UsageError(f"istft: expected 0 < hop_length <= win_length, got {hop}; pass a shorter hop")
    x = x.mT
    norm = "ortho" if normalized else None
    if return_complex:
        frames: Any = ifft(x, norm=norm)
    else:
        frames = irfft(x if onesided else x.narrow(-1, 0, n_fft // 2 + 1), n_fft, norm=norm)
    taper = frames.new_ones(n_fft) if taper is None else taper
    whole = n_fft + hop * (count - 1)
    summed = window_sum(frames * taper, (x.native.shape[0], whole), 1, n_fft, hop)
    square: Any = taper.square().unsqueeze(0).expand(count, n_fft).contiguous()
    envelope: Any = window_sum(square, (whole,), 0, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - (n_fft // 2 if center else 0)
    stop = min(end, whole)
    made: Any = summed.narrow(1, start, stop - start)  # type: ignore[attr-defined]
    envelope = envelope.narrow(0, start, stop - start)
    if envelope.device.capabilities.values and not bool((envelope.detach().abs() > 1e-11).all()):
        raise UsageError(
            "istft: window overlap add min: 1, got places that no window covers; use another window or hop"
        )
    made = made / envelope
    if end > whole:
        made = pad(made, [0, end - whole])
    return made if input.ndim == 3 else made.squeeze(0)  # type: ignore[no-any-return]
