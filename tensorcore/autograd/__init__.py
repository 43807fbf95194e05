"""Automatic differentiation, as programs use it; the tape itself is in ``tensorcore.tape``."""

from __future__ import annotations

from tensorcore.autograd.walks import backward, grad
from tensorcore.tape.mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
