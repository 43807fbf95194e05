"""Weights divided by a norm of theirs, as parametrizations and in the older form of hooks."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentError, DimensionError, UsageError
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.nn.utils import parametrize
from tensorcore.ops.layers.norm import normalize
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = [
    "SpectralNorm", "WeightNorm", "norm_except_dim", "parametrized_spectral_norm", "parametrized_weight_norm",
    "remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm",
]  # fmt: skip

_OF_LAST_CHANNELS = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def norm_except_dim(v: Any, dim: int) -> Any:
    """The length of each slice along ``dim``, kept as dims of size 1; of the whole where ``dim`` is -1."""
    if dim == -1:
        return v.norm()
    shape = [1] * v.dim()
    shape[dim] = v.shape[dim]
    return v.transpose(0, dim).reshape(v.shape[dim], -1).norm(2, 1).reshape(*shape)


def _scaled(g: Any, v: Any, dim: int) -> Any:
    return v * (g / norm_except_dim(v, dim))


# As parametrizations


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _scaled(weight_g, weight_v, self.dim)  # type: ignore[no-any-return]

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def parametrized_weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the length and the direction of each slice of a weight by themselves (arXiv:1602.07868).

    They are ``module.parametrizations.<name>.original0`` and ``original1``.

    Args:
        dim: of the slices; None for one length of the whole weight.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def translate(state: Any, prefix: str, *rest: Any) -> None:
        # Files of the older form.
        if f"{prefix}{name}_g" in state and f"{prefix}{name}_v" in state:
            state[f"{prefix}parametrizations.{name}.original0"] = state.pop(f"{prefix}{name}_g")
            state[f"{prefix}parametrizations.{name}.original1"] = state.pop(f"{prefix}{name}_v")

    module._register_load_state_dict_pre_hook(translate)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        dims = weight.dim()
        if not -dims <= dim < dims:
            raise DimensionError(
                f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ArgumentError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % dims
        self.eps = eps
        if dims > 1:  # a vector's norm needs no approximation
            self.n_power_iterations = n_power_iterations
            matrix = _as_matrix(weight, self.dim)
            rows, columns = (matrix.new_empty(size).normal_(0, 1) for size in matrix.shape)
            self.register_buffer("_u", normalize(rows, dim=0, eps=eps))
            self.register_buffer("_v", normalize(columns, dim=0, eps=eps))
            _power_method(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Any) -> Any:
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = _as_matrix(weight, self.dim)
        if self.training:
            _power_method(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        return weight / _spectral_length(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def parametrized_spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., arXiv:1802.05957), approximated in each training step.

    Args:
        n_power_iterations: steps of the power method for each forward in training.
        dim: of the outputs; None for 1 of transposed convolutions and 0 of all others.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = _output_dim(module)
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


def _output_dim(module: Module) -> int:
    return int(any(one.__name__ in _OF_LAST_CHANNELS for one in type(module).__mro__))


def _as_matrix(weight: Any, dim: int) -> Any:
    if dim:
        weight = weight.permute(dim, *(one for one in range(weight.dim()) if one != dim))
    return weight.flatten(1)


def _power_method(matrix: Any, u: Any, v: Any, steps: int, eps: float) -> None:
    """Move ``u`` and ``v`` towards the first singular vectors, in place, so that copies of the buffers follow."""
    with no_grad():
        for _ in range(steps):
            u.copy_(normalize(matrix.mv(v), dim=0, eps=eps))
            v.copy_(normalize(matrix.t().mv(u), dim=0, eps=eps))


def _spectral_length(matrix: Any, u: Any, v: Any) -> Any:
    # Of clones: the next forward writes to the buffers, and two of them may wait for one backward.
    return u.clone().dot(matrix.mv(v.clone()))


# As hooks


class WeightNorm:
    """The hook that ``weight_norm`` puts on a module: computes the weight before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight of its length and its direction."""
        return _scaled(getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v"), self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the length ``<name>_g`` and the direction ``<name>_v`` of a weight by themselves (arXiv:1602.07868).

    The older form; ``parametrizations.weight_norm`` is the newer one.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise UsageError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    made = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, made.dim).detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, made.compute_weight(module))
    module.register_forward_pre_hook(made)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module)
            delattr(module, name)
            del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
            setattr(module, name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ArgumentError(f"weight_norm of '{name}' not found in {module}")


class SpectralNorm:
    """The hook that ``spectral_norm`` puts on a module: computes the weight before each forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ArgumentError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """The weight divided by its largest singular value."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = _as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.mv(v), dim=0, eps=self.eps))
        return weight / _spectral_length(matrix, u, v)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., arXiv:1802.05957).

    The trained weight is ``<name>_orig``; ``<name>_u`` and ``<name>_v`` are the approximate singular vectors.
    The older form; ``parametrizations.spectral_norm`` is the newer one.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise UsageError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    made = SpectralNorm(name, n_power_iterations, _output_dim(module) if dim is None else dim, eps)
    weight: Any = module._parameters[name]
    with no_grad():
        rows, columns = (weight.new_empty(size).normal_(0, 1) for size in _as_matrix(weight, made.dim).shape)
        u, v = normalize(rows, dim=0, eps=eps), normalize(columns, dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    # A plain attribute, for programs that look at it before the first forward.
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(made)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again, of its present value."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with no_grad():
                weight = hook.compute_weight(module, do_power_iteration=False)
            delattr(module, name)
            for suffix in ("_u", "_v", "_orig"):
                delattr(module, name + suffix)
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ArgumentError(f"spectral_norm of '{name}' not found in {module}")
