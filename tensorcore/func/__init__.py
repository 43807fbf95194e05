"""Functions of functions: derivatives and maps that compose, as ``torch.func`` has them."""

from __future__ import annotations

from tensorcore.func.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from tensorcore.func.jacobians import hessian, jacfwd, jacrev
from tensorcore.func.transforms import grad, grad_and_value, jvp, linearize, vjp
from tensorcore.func.vmapping import vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
