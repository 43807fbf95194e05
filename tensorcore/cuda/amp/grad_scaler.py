"""``GradScaler`` where PyTorch keeps it."""

from tensorcore.amp.grad_scaler import OptState
from tensorcore.cuda.amp import GradScaler

__all__ = ["GradScaler", "OptState"]
