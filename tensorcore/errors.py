"""Every exception that tensorcore raises on purpose.

    TensorcoreError
    ├── ShapeError        (RuntimeError)        shapes that do not fit together
    ├── DtypeError        (RuntimeError)        dtypes that do not mix, or that an op does not take
    │   └── UnsupportedDtype  (NotImplementedError) a dtype that an op has no code for
    ├── UnknownMode       (NotImplementedError) a mode that an op does not have, or not for so many dims
    ├── DivisionError     (RuntimeError, ZeroDivisionError)  integers divided by zero
    ├── DeviceError       (RuntimeError)        devices that do not match
    │   ├── AcceleratorError                    a device that failed amid its work
    │   ├── UnknownDevice                       no plugin offers a device of that name
    │   └── DeviceUnavailable                   a plugin offers it and it cannot be used here
    ├── DimensionError    (IndexError)          a dim or an index out of range
    │   └── IndexOutside  (RuntimeError)        an index of a lazy tensor, for which some ops raise the one and some the other
    ├── ConversionError   (RuntimeError, ValueError) a value that a dtype cannot hold
    ├── ArgumentError     (ValueError)          a value outside what an argument takes
    ├── ArgumentTypeError (TypeError)           an argument of a type that it does not take
    ├── GradientError     (RuntimeError)        what the tape cannot do
    ├── UsageError        (RuntimeError)        calls in an order, or with values or options, that make no sense
    ├── LinAlgError       (RuntimeError)        a matrix without the inverse or factor asked for
    ├── OutOfMemoryError  (RuntimeError, MemoryError)
    ├── KernelMissing     (NotImplementedError) the backend has no kernel of that name
    ├── ValuesMissing     (NotImplementedError) a tensor of a shape alone was asked for its values
    ├── LoadError         (RuntimeError)        a file that cannot be written, or read back
    ├── RefusedGlobal     (pickle.UnpicklingError) a file that wants more built than the caller allowed
    └── PluginError       (RuntimeError)        a plugin that broke the rules of registration

Each also is the builtin exception that PyTorch raises in that place, so ``except RuntimeError``
in an existing program keeps working. A message reads
``{op}: {what was expected}, got {value}; {what to do}``.
"""

from __future__ import annotations

from pickle import UnpicklingError

__all__ = [
    "AcceleratorError",
    "ArgumentError",
    "ArgumentTypeError",
    "ConversionError",
    "DeviceError",
    "DeviceUnavailable",
    "DimensionError",
    "DivisionError",
    "DtypeError",
    "GradientError",
    "IndexOutside",
    "KernelMissing",
    "LinAlgError",
    "LoadError",
    "OutOfMemoryError",
    "PluginError",
    "RefusedGlobal",
    "ShapeError",
    "TensorcoreError",
    "UnknownDevice",
    "UnknownMode",
    "UnsupportedDtype",
    "UsageError",
    "ValuesMissing",
    "not_bool",
]


class TensorcoreError(Exception):
    """The root of all of them."""


class ShapeError(TensorcoreError, RuntimeError):
    """Shapes that do not fit together."""


class DtypeError(TensorcoreError, RuntimeError):
    """Dtypes that do not mix, or that an op does not take."""


class UnsupportedDtype(DtypeError, NotImplementedError):
    """A dtype that an op has no code for."""


class UnknownMode(TensorcoreError, NotImplementedError):
    """A mode that an op does not have, or not for so many dims."""


class DivisionError(TensorcoreError, RuntimeError, ZeroDivisionError):
    """Integers divided by zero."""


class DeviceError(TensorcoreError, RuntimeError):
    """Devices that do not match."""


class AcceleratorError(DeviceError):
    """A device that failed amid its work: what is on it is lost."""


class UnknownDevice(DeviceError):
    """No plugin offers a device of that name."""


class DeviceUnavailable(DeviceError):
    """A plugin offers the device, and it cannot be used on this machine."""


class ConversionError(TensorcoreError, RuntimeError, ValueError):
    """A value that a dtype cannot hold."""


class DimensionError(TensorcoreError, IndexError):
    """A dim or an index out of range."""


class IndexOutside(DimensionError, ShapeError):
    """An index of a lazy tensor out of range: of some ops programs expect an IndexError, of others a RuntimeError."""


class ArgumentError(TensorcoreError, ValueError):
    """A value outside what an argument takes."""


class ArgumentTypeError(TensorcoreError, TypeError):
    """An argument of a type that it does not take."""


class GradientError(TensorcoreError, RuntimeError):
    """What the tape cannot do: a second walk over freed values, a write to a leaf, ..."""


class UsageError(TensorcoreError, RuntimeError):
    """Calls in an order, or with values or options, that make no sense, where PyTorch raises RuntimeError."""


class LinAlgError(TensorcoreError, RuntimeError):
    """A matrix for which what was asked for does not exist, as the inverse of a singular one."""


class OutOfMemoryError(TensorcoreError, RuntimeError, MemoryError):
    """The device has no room for an allocation; ``explained`` once it names those who hold the memory."""

    explained = False


class KernelMissing(TensorcoreError, NotImplementedError):
    """The backend has no kernel of that name, and the op has no decomposition."""


class ValuesMissing(TensorcoreError, NotImplementedError):
    """A tensor that has a shape and no values was asked for its values."""


class LoadError(TensorcoreError, RuntimeError):
    """A file that cannot be written, or read back."""


class RefusedGlobal(TensorcoreError, UnpicklingError):
    """A file that wants more built than the caller allowed."""


class PluginError(TensorcoreError, RuntimeError):
    """A plugin that broke the rules of registration."""


def not_bool(op: str, name: str, value: object) -> ArgumentTypeError:
    """The error of something else where a bool belongs: a number would pass for one, and be a dim in the next place."""
    return ArgumentTypeError(
        f"{op}(): argument '{name}' must be bool, not {type(value).__name__}, got {value!r}; pass True or False"
    )
