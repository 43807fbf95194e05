"""A trained model with its layers put in packed ones' places."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

from tensorcore import dtypes
from tensorcore.absent import qint8
from tensorcore.ao.quantization.layers import DYNAMIC, WEIGHT_ONLY
from tensorcore.ao.quantization.weights import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    per_channel_dynamic_qconfig,
)
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.nn.module import Module

__all__ = ["quantize_dynamic", "quantize_weight_only"]

Spec = Collection[Any] | Mapping[Any, Any] | None


def quantize_dynamic(
    model: Module,
    qconfig_spec: Spec = None,
    dtype: Any = qint8,
    mapping: Mapping[type, type] | None = None,
    inplace: bool = False,
) -> Module:
    """The model with int8 weights in its Linear, LSTM and GRU layers, whose inputs are quantised at each call.

    A weight has one scale (each output its own with ``per_channel_dynamic_qconfig``), symmetric around 0; an input has
    one scale and zero for all its elements, of their range. The results of Linear are those of PyTorch's.

    Args:
        qconfig_spec: which layers: a set of classes and of dotted names, or a dict from these to a QConfig (None leaves
            a layer as it is). All layers of the three kinds where None.
        dtype: ``torch.qint8``, or ``torch.float16`` for weights of half the size and inputs as they are.
        mapping: further classes and what takes their place, each with a ``from_float(module)``.
        inplace: change this model instead of a copy.
    """
    if dtype is not qint8 and dtype is not dtypes.float16:
        raise ArgumentError(
            f"quantize_dynamic: Don't know how to quantize with default settings for {dtype!r}; pass torch.qint8 or torch.float16"
        )
    default = default_dynamic_qconfig if dtype is qint8 else float16_dynamic_qconfig
    return _convert("quantize_dynamic", model, qconfig_spec, {**DYNAMIC, **(mapping or {})}, default, inplace)


def quantize_weight_only(model: Module, qconfig_spec: Spec = None, inplace: bool = False) -> Module:
    """The model with int8 weights, a scale for each output, in its Linear, Embedding, LSTM and GRU layers.

    Inputs and sums stay float32, so that accuracy hardly changes; a weight takes a quarter of its memory.

    Args:
        qconfig_spec, inplace: as for :func:`quantize_dynamic`.
    """
    return _convert("quantize_weight_only", model, qconfig_spec, WEIGHT_ONLY, per_channel_dynamic_qconfig, inplace)


def _convert(op: str, model: Module, spec: Spec, mapping: Mapping[Any, Any], default: QConfig, inplace: bool) -> Module:
    if not isinstance(model, Module):
        raise ArgumentTypeError(f"{op}: expected a Module, got {type(model).__name__}; pass the model itself")
    wanted: dict[Any, Any] = dict(spec) if isinstance(spec, Mapping) else dict.fromkeys(spec or mapping, default)
    names = {name for name, _ in model.named_modules()}
    for key in wanted:
        if isinstance(key, str) and key not in names:
            raise ArgumentError(f"{op}: expected names of modules in qconfig_spec, got {key!r}; see named_modules()")
        if not isinstance(key, str) and key not in mapping:
            title = getattr(key, "__name__", key)
            raise ArgumentError(
                f"{op}: expected classes among {[one.__name__ for one in mapping]} in qconfig_spec, got {title!r}; leave it out"
            )
    found = model if inplace else copy.deepcopy(model)
    packed: dict[int, Module] = {}

    def pack(name: str, module: Module, above: QConfig | None) -> Module:
        mine = wanted.get(name, wanted.get(type(module), above))
        if mine is not None and not isinstance(mine, QConfig):
            raise ArgumentTypeError(
                f"{op}: expected a QConfig for {name or type(module).__name__}, got {mine!r}; pass one"
            )
        # A name that is asked for asks for what is below it too.
        below = mine if name in wanted else above
        kind = type(module)
        if mine is not None and kind in mapping:
            if id(module) not in packed:  # a layer that is used twice stays one
                packed[id(module)] = mapping[kind].from_float(module, mine) if kind in (*DYNAMIC, *WEIGHT_ONLY) else (
                    mapping[kind].from_float(module)
                )  # fmt: skip
            return packed[id(module)]
        for key, one in list(module._modules.items()):
            if one is not None:
                module._modules[key] = pack(f"{name}.{key}" if name else key, one, below)
        return module

    return pack("", found, None)
