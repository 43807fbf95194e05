"""Kernels that write to arrays they are given, such as an optimizer's step: what is written down is what these become."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.lazy.arrays import LazyArray, chain_of
from tensorcore.lazy.kinds import indexed
from tensorcore.lazy.record import Call, array_call, copied, frozen, known_call, leaf

if TYPE_CHECKING:
    from tensorcore.lazy.recording import Recorder

__all__ = ["WRITTEN", "writing"]

# What kernels write to: an operand may be a list of arrays, or None.
WRITTEN = {"adam_step": (0, 1, 2, 3, 4, 5), "sgd_step": (0, 1, 2), "track_statistics": (0, 1)}


def writing(recorder: Recorder, name: str) -> Kernel:
    """A kernel that writes to some of its arrays: its results become what these hold."""
    places = WRITTEN[name]
    calls: dict[Any, Call] = {}

    def kernel(*natives: Any, **options: Any) -> None:
        operands: list[Any] = []
        found: list[Any] = []
        for one in natives:
            if type(one) is list or type(one) is tuple:
                values, lying = [], []
                for each in one:
                    if type(each) is LazyArray and each.parent is None:
                        values.append(each.value)
                        lying.append(each.form)
                    else:
                        values.append(recorder.operand(each))
                        lying.append(recorder.form_of(each))
                operands.append(tuple(values))
                found.append(tuple(lying))
            else:
                operands.append(recorder.operand(one))
                found.append(recorder.form_of(one))
        forms = tuple(found)
        targets: list[LazyArray] = []
        for i in places:
            one = natives[i] if i < len(natives) else None
            if type(one) is list or type(one) is tuple:
                targets += one
            elif one is not None:
                targets.append(one)
        if _overlap(targets):
            _write_now(recorder, name, natives, options, targets)
            return
        named = []
        key: list[Any] = []
        for option, one in options.items():
            kind = type(one)
            if kind is float:
                named.append(option)
                operands.append(one)
            elif kind is LazyArray or ((kind is list or kind is tuple) and _varies(one)):
                named.append(option)
                operands.append(recorder.operand(one))
            else:
                key += (option, kind, one)
        known = (*named, forms, *map(type, forms), *key)
        try:
            call = calls.get(known)
        except TypeError:  # a list among the options
            call, known = None, ()
        if call is None:
            rest = {option: one for option, one in options.items() if option not in named}
            call = _written(name, natives, tuple(named), forms, targets, rest)
            if known:
                if len(calls) > 4096:
                    calls.clear()
                calls[known] = call
        parts = recorder.results(recorder.write_down(call, tuple(operands)))
        for target, made in zip(targets, parts, strict=True):
            if target.parent is None and made.call.forms[0] is target.form:  # as ``store`` would, a call less for each
                target.value = made
                target.writes += 1
            else:
                recorder.store(target, made)

    return kernel


def _overlap(targets: list[LazyArray]) -> bool:
    """Whether two of the arrays may have elements in common, as parameters that were tied by their data do."""
    if all([one.parent is None for one in targets]):
        return len(set(targets)) < len(targets)
    taken: dict[LazyArray, list[tuple[int, int]]] = {}
    for one in targets:
        if one.size:
            last = sum([step * (count - 1) for step, count in zip(one.form.strides, one.shape, strict=True)])
            begin, end = one.form.offset, one.form.offset + last + 1
            taken.setdefault(one.memory, []).append((begin * one.itemsize, end * one.itemsize))
    return any(a[1] > b[0] for found in map(sorted, taken.values()) for a, b in pairwise(found))


def _write_now(recorder: Recorder, name: str, natives: Any, options: dict[str, Any], targets: list[LazyArray]) -> None:
    """Call the kernel on a copy of the memory that its targets share: there it sees what it wrote, as it does eagerly."""
    kernels = recorder.target.kernels
    copies = {one.memory: kernels["clone"](recorder.make(one.memory)) for one in targets}

    def made(one: Any) -> Any:
        if type(one) is list or type(one) is tuple:
            return [made(each) for each in one]
        if type(one) is not LazyArray:
            return one
        if one.memory not in copies:
            return recorder.make(one)
        part = copies[one.memory]
        chain, places = chain_of(one)
        numbers = iter(places)
        for step, given in chain:
            part = kernels[step](part, **indexed(given, numbers))
        return part

    kernels[name](*map(made, natives), **{key: made(one) for key, one in options.items()})
    for memory, copy in copies.items():
        memory.value = leaf(memory.form.based, copy)
        memory.writes += 1


def _written(
    name: str, natives: Any, named: tuple[str, ...], forms: Any, targets: list[LazyArray], rest: dict[str, Any]
) -> Call:
    """The call of a kernel that writes to some of its arrays; options ``named`` are among its operands."""
    key = ("update", name, named, forms, *map(type, forms), *rest, *map(frozen, rest.values()))
    places: list[Any] = []
    for i in WRITTEN[name]:
        one = natives[i] if i < len(natives) else None
        if isinstance(one, list | tuple):
            places.extend([(i, j) for j in range(len(one))])
        elif one is not None:
            places.append(i)
    return known_call(key) or array_call(
        f"update:{','.join(named)}", key, tuple([copied(one.form) for one in targets]),
        {"kernel": name, "targets": tuple(places), "options": tuple(rest.items())}, several=True,
    )  # fmt: skip


def _varies(one: Any) -> bool:
    """Whether an option of an optimizer's step may be another number at the next one."""
    if type(one) is list or type(one) is tuple:
        return any(map(_varies, one))
    return type(one) is float or type(one) is LazyArray
