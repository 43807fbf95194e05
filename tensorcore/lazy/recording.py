"""The table of kernels that write down: what they are called with becomes a deferred value, and what they write another one."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from tensorcore.backend.base import Backend, Kernel
from tensorcore.backend.kernels import EAGER, NEEDS_VALUES, RULES
from tensorcore.backend.shapes import VIEWS, broadcast
from tensorcore.dtypes import from_numpy_dtype
from tensorcore.lazy.arrays import LazyArray, around, chain_of
from tensorcore.lazy.calls import NUMBERS, is_simple, recording, viewing
from tensorcore.lazy.making import limits, realise, relieve
from tensorcore.lazy.record import (
    Call,
    Deferred,
    Form,
    Host,
    Line,
    array_call,
    call_of,
    copied,
    dense_form,
    form,
    frozen,
    known_call,
    leaf,
    user_frame,
)  # fmt: skip
from tensorcore.lazy.updates import WRITTEN, writing
from tensorcore.ops.layers.labels import check_labels

__all__ = ["Recorder"]

Shape = tuple[int, ...]
getframe, reference = sys._getframe, weakref.ref
# What the frontend has other ways for: a formula that is no plain value, lists of arrays, and an answer that is written and needed.
_LEFT_OUT = EAGER | {"norms", "step", "unscale"}
_OF_LABELS = frozenset(["cross_entropy", "nll_loss"])  # their kernels take it that labels are classes
_HOST_PLACES = frozenset(["add_rows", "take_rows"])
# Kernels that keep for their gradients what suits them, other than their shape rules say.
_OWN_RESULTS = frozenset(["binary_cross_entropy_with_logits_backward", "cross_entropy"])


class Recorder(Backend):
    """A backend whose kernels write down what those of ``target`` would compute.

    Attributes:
        target: the wrapped backend.
        log: weak references to what was written down and not made yet, in order.
        pending: bytes of all that was written down since the log was last looked through.
        tracks: by the length of the log, and what was asked for: the program, its track, and the bytes it makes.
        lines: by place in the log: the call that was there the last time, and its place in the user's program, so many frames
            up the stack.
    """

    array = LazyArray

    def __init__(self, target: Backend, name: str, index: int = 0) -> None:
        super().__init__(name, index)
        self.target = self.wraps = target
        self.log: list[weakref.ref[Deferred]] = []
        self.pending = 0
        self.tracks: dict[Any, Any] = {}
        self.lines: list[Line] = []

    # Arrays of this device, and of the one underneath

    def read(self, native: LazyArray) -> Deferred:
        """The value that an array has now."""
        parent = native.parent
        if parent is None:
            return native.value
        writes = native.root.writes
        if native.stamp == writes:
            return native.seen  # type: ignore[return-value]
        base = self.read(parent)
        call = native.call
        if base.native is not None:
            # Made at once: it costs no memory, and programs stay the same whatever part of the data they take.
            assert call.kernel is not None
            made = leaf(native.form.based, self.target.kernels[call.kernel](base.native, **call.options))
        else:
            made = self.write_down(call, (base,))
        native.seen, native.stamp = made, writes
        return made

    def write_down(self, call: Call, operands: tuple[Any, ...]) -> Deferred:
        """A deferred value, in the log."""
        log = self.log
        if self.pending > limits.bytes or len(log) > limits.steps:
            relieve(self)
        made = Deferred()
        made.call = call
        made.operands = operands
        made.native = None
        # A walk over the stack is most of what a call costs. Where the log has got as far as it had when this call came the last
        # time, and the same line is as far up the stack as then, it is taken to be the line again.
        try:
            line = self.lines[len(log)]
            known, depth, code, place = line
            if known is not call or (frame := getframe(depth)).f_code is not code or frame.f_lasti != place:
                line = self.line(call)
        except (IndexError, ValueError):
            line = self.line(call)
        made.line = line
        log.append(reference(made))
        self.pending += call.nbytes
        return made

    def line(self, call: Call) -> Line:
        """The place in the user's program, two frames up or further; noted for the next time."""
        frame, up = user_frame(getframe(2))
        lines, at = self.lines, len(self.log)
        line = (call, up + 1, frame.f_code, frame.f_lasti)
        if at >= len(lines):
            lines.extend([line] * (at + 1 - len(lines)))
        lines[at] = line
        return line

    def keep(self, native: Any) -> LazyArray:
        """A lazy array around a new array of the wrapped backend."""
        strides, _ = self.target.layout(native)
        one = form(tuple(native.shape), tuple(strides), 0, np.dtype(native.dtype))
        return around(leaf(one, native), one)

    def make(self, native: LazyArray, cause: str | None = None) -> Any:
        """The array of the wrapped backend with the values of a lazy one, made if need be. Nobody may write to it."""
        value = self.read(native)
        if value.native is None:
            realise(self, [value], cause)
        return value.native

    def store(self, target: LazyArray, value: Deferred) -> None:
        """Let ``target`` have this value, of its shape and dtype."""
        memory = target.memory
        if target.parent is None and value.call.forms[0] is memory.form:
            memory.value = value
        else:
            base = memory.value
            chain, places = chain_of(target)
            key = ("place", memory.form, value.call.forms[0], frozen(chain))
            call = array_call("place", key, (memory.form,), {"chain": chain})
            memory.value = self.write_down(call, (base, value, *places))
        memory.writes += 1

    # Kernels

    def find_kernel(self, name: str) -> Kernel | None:
        if name in _LEFT_OUT or not self.target.kernels[name]:
            return None
        if name in ("copy", "fill"):
            return self._copy
        if name in VIEWS:
            return viewing(name)
        if name in WRITTEN:
            return writing(self, name)
        if name in _OF_LABELS and not self.target.checks_indices:
            return self._checking(name)
        if name in RULES and name not in NEEDS_VALUES:
            return recording(self, name, numbers=RULES[name].shape is not broadcast)
        return self.needing(name)

    def general(self, name: str, natives: tuple[Any, ...], options: dict[str, Any]) -> tuple[Call, Deferred, bool]:
        """Any call, with lists and host arrays among what it takes; whether the forms and options alone decide it."""
        named = [key for key, one in options.items() if self._holds_arrays(one)]
        kernel = name
        if named:
            kernel = f"{name}:{','.join(named)}"
            natives = (*natives, *[options[key] for key in named])
            options = {key: one for key, one in options.items() if key not in named}
        operands = tuple([self.operand(one) for one in natives])
        forms = tuple([self.form_of(one) for one in natives])
        if name in _HOST_PLACES:  # these take places along a dim from the host, whatever the device
            forms = (*forms[:-1], Host(forms[-1])) if type(forms[-1]) is Form else forms
        # What value fills an array decides nothing about it.
        told = (forms[0], type(forms[1])) if name == "full" else [
            type(one) if type(one) in NUMBERS and RULES[name].shape is broadcast else one for one in forms
        ]  # fmt: skip
        key = (kernel, *map(frozen, told), *options, *map(frozen, options.values()))
        if name in _OWN_RESULTS:
            key = (id(self.target), *key)
            call = known_call(key)
            if call is None:
                tried = self._tried(name, natives, options)
                call = array_call(kernel if tried else None, key, tried or (None,), options, several=tried is not None)
        else:
            call = call_of(kernel, key, forms, options)
        if call.kernel is None:
            return call, leaf(dense_form((), np.dtype(bool))), True
        lasting = not named and all(map(is_simple, natives))
        return call, self.write_down(call, operands), lasting

    def _tried(self, name: str, natives: tuple[Any, ...], options: dict[str, Any]) -> tuple[Form | None, ...] | None:
        """The forms of what a kernel answers with, by calling it: on zeros, once for each combination of forms.

        None where it leaves the combination to others.
        """
        zeros = [
            self.target.from_host(np.zeros(one.shape, one.dtype)) if type(one) is LazyArray else one for one in natives
        ]
        with np.errstate(all="ignore"):
            made = self.target.kernels[name](*zeros, **options)
        if made is None:
            return None
        return tuple([
            None if one is None else form(tuple(one.shape), tuple(self.target.strides(one)), 0, np.dtype(one.dtype))
            for one in made
        ])  # fmt: skip

    def operand(self, one: Any) -> Any:
        if type(one) is LazyArray:
            return self.read(one)
        if type(one) is list or type(one) is tuple:
            return tuple([
                each.value if type(each) is LazyArray and each.parent is None else self.operand(each)
                for each in one
            ])  # fmt: skip
        if type(one) is self.target.array:
            # A tensor of the wrapped device, as it is now: it may be written before this is read.
            made = self.target.kernels["clone"](one)
            return leaf(form(tuple(made.shape), tuple(self.target.strides(made)), 0, np.dtype(made.dtype)), made)
        if isinstance(one, np.ndarray):  # places that the frontend found on the host
            return leaf(dense_form(one.shape, one.dtype), np.array(one))
        return one

    def form_of(self, one: Any) -> Any:
        if type(one) is LazyArray:
            return one.form.based
        if type(one) is list or type(one) is tuple:
            return tuple([each.form.based if type(each) is LazyArray else self.form_of(each) for each in one])
        if type(one) is self.target.array:
            return form(tuple(one.shape), tuple(self.target.strides(one)), 0, np.dtype(one.dtype))
        if isinstance(one, np.ndarray):
            return Host(dense_form(one.shape, one.dtype))
        return one

    def _holds_arrays(self, one: Any) -> bool:
        if type(one) is tuple or type(one) is list:
            return any(map(self._holds_arrays, one))
        return type(one) is LazyArray or type(one) is self.target.array or isinstance(one, np.ndarray)

    def results(self, value: Deferred) -> list[Deferred]:
        """Each of the results that a call makes, as a deferred value in the log."""
        made = []
        log, operands, line = self.log, (value,), value.line
        for call in value.call.parts:
            one = Deferred()
            one.call = call
            one.operands = operands
            one.native = None
            one.line = line
            log.append(reference(one))
            made.append(one)
        return made

    def parts(self, call: Call, value: Deferred) -> tuple[LazyArray | None, ...]:
        """Arrays that hold the results which a call makes, and None for those that it does not."""
        parts = self.results(value)
        made: list[LazyArray | None] = []
        at = 0
        for one in call.forms:
            if one is None:
                made.append(None)
                continue
            array = LazyArray()  # as ``around`` does
            array.form = one
            array.shape = one.shape
            array.dtype = one.dtype
            array.parent = None
            array.value = parts[at]
            array.writes = 0
            made.append(array)
            at += 1
        return tuple(made)

    def put(self, target: LazyArray, value: Deferred) -> None:
        """Let ``target`` have a value, in its own dtype and shape."""
        made = value.call.forms[0]
        assert made is not None
        if made.dtype != target.dtype:
            options = {"dtype": from_numpy_dtype(target.dtype)}
            call = call_of("cast", ("cast", made, target.dtype), (made,), options)
            value = self.write_down(call, (value,))
            made = call.forms[0]
            assert made is not None
        if made.shape != target.shape:
            call = call_of("expand", ("expand", made, target.shape), (made,), {"shape": target.shape})
            value = self.write_down(call, (value,))
        self.store(target, value)

    def _copy(self, target: LazyArray, source: Any) -> LazyArray:
        kind = from_numpy_dtype(target.dtype)
        shape = target.shape
        if type(source) is LazyArray and source.memory is target.memory and source.form is target.form:
            return target  # as ``x[i] += 1`` ends
        if self._holds_arrays(source):
            self.put(target, self.operand(source))
            return target
        if isinstance(source, np.generic):
            source = source.item()
        key = ("fill", shape, target.dtype, type(source))
        call = array_call("full", key, (dense_form(shape, target.dtype),), {"dtype": kind})
        self.store(target, self.write_down(call, (shape, source)))
        return target

    def _checking(self, name: str) -> Kernel:
        """A loss of labels: they are looked at now where they are there, else when they are made."""
        run = recording(self, name, numbers=True)

        def kernel(x: LazyArray, labels: LazyArray, *others: Any, **options: Any) -> Any:
            value, classes, ignored = self.read(labels), x.shape[1], options["ignore_index"]
            if 0 in labels.shape:
                pass
            elif value.native is not None:
                check_labels(name, self.target, value.native, classes, ignored)
            else:
                given = {"kernel": name, "classes": classes, "ignore_index": ignored}
                one = copied(labels.form)
                call = array_call("checked", ("checked", labels.form, *given.values()), (one,), given)
                labels = around(self.write_down(call, (value,)), one)
            return run(x, labels, *others, **options)

        return kernel

    def needing(self, name: str) -> Kernel:
        """A kernel whose answer depends on values: they are made, and it runs."""
        run = self.target.kernels[name]

        def kernel(*natives: Any, **options: Any) -> Any:
            made = [self._made(one) for one in natives]
            answer = run(*made, **{key: self._made(one) for key, one in options.items()})
            return self._kept(answer)

        return kernel

    def _made(self, value: Any) -> Any:
        if type(value) is LazyArray:
            return self.make(value)
        if type(value) is list or type(value) is tuple:
            return type(value)([self._made(one) for one in value])
        return value

    def _kept(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple([self._kept(one) for one in value])
        return self.keep(value) if type(value) is self.target.array else value
