"""What records and what does not, under the name of the module that programs import it from."""

from __future__ import annotations

from tensorcore.tape.mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
