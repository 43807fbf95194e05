"""Layers and the modules that models are made of."""

from __future__ import annotations

from tensorcore.nn import (
    activation,
    containers,
    conv,
    dropout,
    embedding,
    flatten,
    functional,
    init,
    linear,
    loss,
    norm,
    parameters,
    pooling,
    utils,
)
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Buffer, Parameter

LAYERS = (activation, containers, conv, dropout, embedding, flatten, linear, loss, norm, parameters, pooling)
__all__ = ["Buffer", "Module", "Parameter", "functional", "init", "utils"]

for _family in LAYERS:
    for _name in _family.__all__:
        if _name[0].isupper():
            globals()[_name] = getattr(_family, _name)
            __all__.append(_name)
