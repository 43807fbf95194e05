"""Tools for the parameters of a model: clipping, one vector of all of them, other forms of weights, packed sequences."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "construction": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format skip_init",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "norms": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
}
_PLACE = {name: room for room, names in _NAMES.items() for name in names.split()}
_ROOMS = ("clip_grad", "convert_parameters", "fusion", "parametrizations", "parametrize", "prune", "rnn", "stateless")

__all__ = ["parametrizations", "parametrize", "prune", "rnn", "stateless"]
__all__ += list(_PLACE)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"tensorcore.nn.utils.{name}")
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"tensorcore.nn.utils.{_PLACE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
