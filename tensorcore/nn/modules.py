"""The layers under the module names that PyTorch keeps them in: ``nn.modules.batchnorm._BatchNorm`` and the like."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from tensorcore import nn
from tensorcore.nn import hooks
from tensorcore.nn.module import Module

# PyTorch's module, and where its classes are here.
_ROOMS = {
    "activation": "activation attention", "adaptive": "adaptive", "batchnorm": "batchnorm", "channelshuffle": "rearrange",
    "container": "containers parameters", "conv": "conv", "distance": "distance", "dropout": "dropout",
    "flatten": "rearrange", "fold": "rearrange", "instancenorm": "batchnorm", "lazy": "lazy", "linear": "linear",
    "loss": "loss adaptive", "module": "module hooks state", "normalization": "norm", "padding": "padding",
    "pixelshuffle": "rearrange", "pooling": "pooling", "rnn": "recurrent cells", "sparse": "embedding",
    "transformer": "transformer", "upsampling": "rearrange",
}  # fmt: skip
# Bases whose names differ.
_NAMES = {
    "_ConvNd": "_Conv",
    "_ConvTransposeNd": "_ConvTranspose",
    "_WeightedLoss": "_Weighted",
    "_DropoutNd": "_Dropout",
    "_MaxPoolNd": "_MaxPool",
    "_EXTRA_STATE_KEY_SUFFIX": "_EXTRA",
    "_IncompatibleKeys": "IncompatibleKeys",
}

__all__ = ["Module"]
__path__: list[str] = []  # so that ``from ...nn.modules.conv import ...`` looks inside


class _Room(ModuleType):
    """One of PyTorch's modules."""

    def __getattr__(self, name: str) -> Any:
        for family in _ROOMS[self.__name__.rpartition(".")[2]].split():
            found = getattr(import_module(f"tensorcore.nn.{family}"), _NAMES.get(name, name), None)
            if found is not None:
                return found
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name == "__dict__":  # whoever asks for all names, as vars() and dir() do, is to see them
            for family in _ROOMS[found["__name__"].rpartition(".")[2]].split():
                room = import_module(f"tensorcore.nn.{family}")
                for one in room.__all__:
                    found.setdefault(one, getattr(room, one))
        return found


class _Tuples(ModuleType):
    """What ``nn.modules.utils`` has: one number, or several, as a tuple."""

    def __getattr__(self, name: str) -> Any:
        dims = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}.get(name)
        if dims is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from tensorcore.nn.conv import per_dim

        return lambda value: per_dim(value, dims)


def __getattr__(name: str) -> Any:
    found = getattr(nn, name, None) or getattr(hooks, name, None)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


for _name in (*_ROOMS, "utils"):
    _room = (_Tuples if _name == "utils" else _Room)(f"{__name__}.{_name}")
    sys.modules[_room.__name__] = globals()[_name] = _room
