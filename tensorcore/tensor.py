"""The Tensor: a native array, the device that understands it, and a place on the tape. No ops here."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from tensorcore import printing
from tensorcore.dtypes import dtype, get_default_dtype
from tensorcore.errors import ArgumentTypeError, DimensionError, GradientError, ShapeError, UsageError, not_bool
from tensorcore.formats import Size, contiguous_format
from tensorcore.shortcuts import before
from tensorcore.tape.aside import HISTORY, PLACE, WRITES, tells
from tensorcore.tape.engine import Eager
from tensorcore.tape.memory import Version, View, own_trail, writes
from tensorcore.tape.mode import makers, mode, unusual
from tensorcore.tape.node import ACCUMULATE, FROZEN, Handle, Node, Output, is_leaf, leaf

__all__ = ["Tensor", "new_tensor"]

new = object.__new__
makers.append(globals())


class Tensor:
    """A multi-dimensional array of one dtype on one device.

    Attributes:
        native: the backend's own array; its shape and strides are the tensor's.
        dtype, device: of all elements. ``device`` is the backend itself.
        node: where the values came from on the tape: a Node, an Output of one, or None.
        version: shared by all tensors of one memory; None until that memory is shared or written.
        trail: of a view what its ``origin`` is made of once somebody asks, or that; None if it is a view of nobody.
        inference: set on those made in inference mode, and on no other.
    """

    __slots__ = (
        "__dict__", "__weakref__", "device", "dtype", "frozen", "inference", "native", "node", "trail", "version",
    )  # fmt: skip

    __array_ufunc__ = None  # ndarray * tensor asks the tensor, instead of looping over it
    __hash__ = object.__hash__

    device: Any
    dtype: dtype
    native: Any
    node: Any
    version: Version | None
    trail: Any

    # Shape and memory

    @property
    def shape(self) -> Size:
        """The size of each dim."""
        return tuple.__new__(Size, self.native.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dim."""
        if dim is None:
            return self.shape
        shape = self.native.shape
        try:
            return shape[dim]
        except (IndexError, TypeError) as error:
            raise (DimensionError if isinstance(error, IndexError) else ArgumentTypeError)(
                f"size: expected dim in the range [{-(len(shape) or 1)}, {(len(shape) or 1) - 1}], got {dim!r}; Dimension out of range"
            ) from None

    @before("dim")
    def dim(self) -> int:
        """The number of dims."""
        return len(self.native.shape)

    ndimension, ndim = dim, property(dim)

    @before("count")
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.native.shape)

    nelement = numel

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    @before("stride")
    def stride(self, dim: int | None = None) -> Any:
        """The step from one element to the next along each dim, or one dim, in elements."""
        strides = self.device.strides(self.native)
        return strides if dim is None else strides[dim]

    @before("storage_offset")
    @tells(PLACE)
    def storage_offset(self) -> int:
        """Where in the storage the first element is, in elements."""
        return self.device.layout(self.native)[1]

    @before("data_ptr")
    @tells(PLACE)
    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.device.data_pointer(self.native)

    @before("is_contiguous")
    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in memory in row-major order, or that of ``memory_format``, without gaps."""
        if memory_format is None or memory_format is contiguous_format:
            return self.device.is_contiguous(self.native)
        dims = memory_format.dims
        if dims is None or len(dims) != len(self.native.shape):
            return dims is None and self.device.is_contiguous(self.native)
        return self.device.is_contiguous(self.device.kernels["permute"](self.native, dims=dims))

    def get_device(self) -> int:
        """The device's index, -1 in host memory."""
        return -1 if self.device.capabilities.host else self.device.index

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype has negative values."""
        return self.dtype.is_signed

    @tells(HISTORY)
    def is_inference(self) -> bool:
        """Whether its memory was made in inference mode. Autograd may save it all the same: its writes are counted too."""
        return unusual.inferred and getattr(self if self.trail is None else self.origin.base, "inference", False)

    @property
    def is_meta(self) -> bool:
        """Whether there are only a shape and a dtype, and no values."""
        return not self.device.capabilities.values

    # Autograd

    @property
    @before("requires_grad")
    def requires_grad(self) -> bool:
        """Whether gradients with respect to this tensor are asked for."""
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value is not True and value is not False:
            raise UsageError(f"requires_grad must be a bool, got {value!r}; assign True or False")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients, or no longer, in place. Leaves of floating or complex dtype only."""
        if requires_grad is not True and requires_grad is not False:
            raise not_bool("requires_grad_", "requires_grad", requires_grad)
        if requires_grad:
            if self.node is None:
                if self.dtype.kind not in ("floating", "complex"):
                    raise GradientError(
                        f"requires_grad_: only Tensors of floating point dtype can require gradients, got dtype "
                        f"{self.dtype}; convert it with .float() first"
                    )
                if not mode.inference and self.is_inference():
                    raise GradientError(
                        "requires_grad_: Setting requires_grad=True on inference tensor outside InferenceMode is not "
                        "allowed, got one; clone() it first"
                    )
                # Graphs recorded before a requires_grad_(False) lead to the old leaf: it comes back.
                node = self.node = getattr(self, "frozen", None) or leaf(self)
                node.op, node.shape, node.dtype = ACCUMULATE, tuple(self.native.shape), self.dtype
                node.grad = self.__dict__.pop("_grad", None)
        elif is_leaf(self.node):
            node = self.frozen = self.node
            if node.grad is not None:
                self.__dict__["_grad"] = node.grad
            node.op, node.grad = FROZEN, None
            self.node = None
        elif self.node is not None:
            raise GradientError(
                "requires_grad_: you can only change requires_grad flags of leaf variables, got the result of an op; "
                "If you want to use a computed variable in a subgraph that doesn't require differentiation use .detach()"
            )
        return self

    @property
    @before("is_leaf", ACCUMULATE)
    def is_leaf(self) -> bool:
        """Whether no recorded op made this tensor."""
        return self.node is None or is_leaf(self.node)

    @property
    @tells(HISTORY)
    def grad_fn(self) -> Any:
        """The node of the op that made this tensor, None for a leaf."""
        node = self.node
        if node is None or is_leaf(node):
            return None
        return node.node if type(node) is Output else node

    @property
    @tells(HISTORY)
    def output_nr(self) -> int:
        """Which result of its node this is."""
        return self.node.index if type(self.node) is Output else 0

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward walks added up here."""
        node = self.node
        if type(node) is Node and node.op is ACCUMULATE:  # is_leaf, which an optimizer would enter for each parameter
            return node.grad
        held = self.__dict__.get("_grad")
        if held is None and node is not None and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
                "populated during autograd.backward(); use .retain_grad() on it, or access the leaf it was computed from",
                UserWarning,
                stacklevel=2,
            )
        return held

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise ArgumentTypeError(f"grad: assigned grad expected to be a Tensor or None, got {value!r}")
            if value is self:
                raise GradientError(
                    "grad: expected another tensor, got the tensor itself; can't assign Variable as its own grad"
                )
            if tuple(value.native.shape) != tuple(self.native.shape):
                raise ShapeError(
                    f"grad: assigned grad has data of a different size, got {list(value.shape)} for a tensor of "
                    f"{list(self.shape)}; assign a gradient of the tensor's shape"
                )
            if value.dtype is not self.dtype or value.device is not self.device:
                raise GradientError(
                    f"grad: assigned grad has data of a different type, got {value.dtype} on {value.device} for a tensor "
                    f"of {self.dtype} on {self.device}; convert it with .to(...)"
                )
        node = self.node
        if type(node) is Node and node.op is ACCUMULATE:  # as above
            node.grad = value
        elif value is None:
            self.__dict__.pop("_grad", None)
        else:
            self.__dict__["_grad"] = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor too when it is no leaf."""
        if self.node is None:
            raise GradientError(
                "retain_grad: can't retain_grad on Tensor that has requires_grad=False, got one; call requires_grad_() first"
            )
        if not is_leaf(self.node) and not self.retains_grad:
            self._notes().setdefault("retain", {})[self.output_nr] = weakref.ref(self)

    @property
    @tells(HISTORY)
    def retains_grad(self) -> bool:
        """Whether ``retain_grad`` was called on this non-leaf."""
        if self.grad_fn is None or self.grad_fn.extra is None:
            return False
        reference = self.grad_fn.extra.get("retain", {}).get(self.output_nr)
        return reference is not None and reference() is self

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Call ``hook(grad)`` when this tensor's gradient is known; what it returns replaces the gradient."""
        if self.node is None:
            raise GradientError(
                "register_hook: cannot register a hook on a tensor that doesn't require gradient, got one; "
                "call requires_grad_() first"
            )
        hooks = self._notes().setdefault("tensor_hooks", {})
        return Handle(hooks, (self.output_nr, hook))

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call ``hook(tensor)`` as soon as the gradient of this leaf is complete and added to ``grad``."""
        if not is_leaf(self.node):
            raise GradientError(
                "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on non-leaf "
                "tensors, got one; use register_hook"
            )
        Eager.listen(self.node)
        return Handle(self._notes().setdefault("post_accumulate", {}), hook)

    def _notes(self) -> dict[str, Any]:
        node = self.node.node if type(self.node) is Output else self.node
        if node.extra is None:
            node.extra = {}
        return node.extra

    def detach(self) -> Tensor:
        """The same memory off the tape; writes through either are seen by both."""
        made = new_tensor(self.native, self.dtype, self.device)
        if self.version is None:
            self.version = Version()
        made.version = self.version
        return made

    def detach_(self) -> Tensor:
        """Take this tensor itself off the tape."""
        if self.origin is not None:
            raise GradientError("detach_: Can't detach views in-place, got a view; use detach() instead")
        if is_leaf(self.node):
            return self.requires_grad_(False)
        self.node = None
        return self

    @property
    def data(self) -> Tensor:
        """The same memory off the tape, with a version of its own: writes to it escape the checks of autograd."""
        return new_tensor(self.native, self.dtype, self.device)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"data: expected a Tensor, got {value!r}; wrap it in torch.tensor(...)")
        _, self.native, self.dtype, self.device = self.origin, value.native, value.dtype, value.device  # told by memory
        if is_leaf(self.node):
            self.node.shape, self.node.dtype = tuple(value.native.shape), value.dtype

    @property
    @tells(WRITES)
    def _version(self) -> int:
        if self.is_inference():
            raise GradientError("_version: Inference tensors do not track version counter, got one; clone() it first")
        return writes(self.version)

    @property
    def origin(self) -> Any:
        """Of whom this is a view, None if of nobody. Most views are never asked: it is made when one is."""
        trail = self.trail
        if type(trail) is tuple:
            trail = self.trail = View.taken(*own_trail(trail, self.native))
        return trail

    @property
    @tells(PLACE)
    def _base(self) -> Tensor | None:
        return None if self.trail is None else self.origin.base

    @tells(PLACE)
    def _is_view(self) -> bool:
        return self.trail is not None

    # Values on the host

    @before("item")
    def item(self) -> Any:
        """The value of a tensor with one element as a Python number."""
        native = self.native
        if native.shape and prod(native.shape) != 1:
            raise UsageError(
                f"item: a Tensor with {prod(native.shape)} elements cannot be converted to Scalar, got shape "
                f"{list(native.shape)}; use tolist(), or index one element"
            )
        if not self.device.capabilities.values:
            raise UsageError(f"item: expected a tensor with values, got one on {self.device}, which has shapes only")
        value = self.device.to_host(native).item()
        return float(value) if self.dtype.is_floating_point else value

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; a number for a 0-d tensor."""
        values = self.device.to_host(self.native)
        # bfloat16 is a NumPy extension type whose tolist() gives no Python floats.
        return values.astype(np.float32).tolist() if self.dtype.name == "bfloat16" else values.tolist()

    @before("is_true")
    def __bool__(self) -> bool:
        if self.native.shape and prod(self.native.shape) != 1:
            raise UsageError(
                f"bool: Boolean value of Tensor with {'more than one value' if self.numel() else 'no values'} is "
                f"ambiguous, got shape {list(self.native.shape)}; use .any() or .all()"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in ("integer", "bool") or self.numel() != 1:
            raise ArgumentTypeError(
                f"index: only integer tensors of a single element can be converted to an index, got dtype {self.dtype} "
                f"and shape {list(self.native.shape)}; use int(tensor)"
            )
        return int(self.item())

    def __len__(self) -> int:
        shape = self.native.shape
        if not shape:
            raise ArgumentTypeError("len: len() of a 0-d tensor, got one; it has a single value, use item()")
        return shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.native.shape:
            raise ArgumentTypeError("iter: iteration over a 0-d tensor, got one; it has a single value, use item()")
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __repr__(self, default_device: str = "cpu") -> str:
        device = self.device
        if device.wraps is not None:
            return device.describe(self)  # type: ignore[no-any-return]
        fn = self.grad_fn
        text = printing.format_tensor(
            device.to_host(self.native) if device.capabilities.values else None,
            dtype=self.dtype,
            shape=tuple(self.native.shape),
            device=None if str(device) == default_device else str(device),
            grad_fn=None if fn is None else fn.name().rpartition(":")[2],
            requires_grad=self.node is not None,
            default_dtype=get_default_dtype(),
            prefix="tensor(" if type(self) is Tensor else f"{type(self).__name__}(",
        )
        return "Parameter containing:\n" + text if self.__dict__.get("_is_param") else text

    def __format__(self, spec: str) -> str:
        if not self.native.shape and self.device.capabilities.values and not self.device.many:
            return format(self.item(), spec)
        return object.__format__(self, spec)


@before("new_tensor")
def new_tensor(native: Any, dtype: dtype, device: Any, cls: type = Tensor) -> Any:
    """A tensor around a native array, off the tape."""
    made = new(cls)
    made.native = native
    made.dtype = dtype
    made.device = device
    made.node = made.version = made.trail = None
    return made
