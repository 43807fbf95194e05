"""One traced call: the function runs as ever, and what it did becomes an entry that replays it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from tensorcore.amp.grad_scaler import GradScaler
from tensorcore.amp.state import again, regions
from tensorcore.amp.state import state as autocast
from tensorcore.compiler.build import Result, Script
from tensorcore.compiler.draws import Draws
from tensorcore.compiler.entry import MISSED, Entry
from tensorcore.compiler.gradient import (
    CompiledBackward,
    Freed,
    custom_of,
    external_edges,
    has_hooks,
    node_of,
    outermost,
    reads_of,
)
from tensorcore.compiler.guards import Guards
from tensorcore.compiler.names import Names
from tensorcore.compiler.objects import items_of
from tensorcore.compiler.switches import guard_switches
from tensorcore.compiler.tracer import Tracer
from tensorcore.errors import GradientError
from tensorcore.lazy.plan import Broken
from tensorcore.ops.inplace import share_version
from tensorcore.ops.output import written
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import LRScheduler
from tensorcore.tape.engine import key_of, walk
from tensorcore.tape.memory import Version, View, next_order
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["trace"]


def trace(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], fullgraph: bool, compile: Any,
    states: tuple[Any, ...] = (),
) -> tuple[Any, Entry]:  # fmt: skip
    """Call a function, and make an entry of what it did. Its exceptions are its own, and leave no entry.

    Args:
        states: where calls are known to put tensors in the place of others, as pairs of what has it and a key.
    """
    guards = Guards(function, args, kwargs, states=states)
    guard_switches(guards)
    call = _Call(guards, Tracer(fullgraph))
    start, draws = next_order(), Draws(guards.generators)
    around = again((*regions()[:2], False)) if autocast.enabled else nullcontext()
    watched = Names(guards.met, call.tracer.fail_unless_paused, guards.environment, call.read_grad, call.read_place)
    with around, call.tracer, watched as names:
        result = function(*args, **kwargs)
        call.finish(result, start)
    if who := draws.found():
        call.tracer.fail(f"draws random numbers of {who} in the call")
    changed = next(guards.failing(args, kwargs), None)
    replaced = [] if changed is None else guards.replaced()
    reason = call.tracer.reason
    if reason is None and changed is not None:
        reason = f"changes what it depends on: {changed}"
    elif reason is not None and call.tracer.line:
        reason = f"{reason} at {call.tracer.line}"
    if reason is not None:
        entry = Entry(guards, None, [], reason)
        entry.unsettled, entry.device, entry.replaced = changed is not None, call.tracer.device, replaced
        return result, entry
    run, plans = call.replay(compile)
    found = names.found()
    if found is not None:
        call.watch_backward(*found)
        guards.narrow(*found, call.needed)
    if guards.unfit:
        call.tracer.fail(guards.unfit)
        return result, Entry(guards, None, [], call.tracer.reason)
    return result, Entry(guards, run, plans, None)


class _Call:
    """The call that is being traced: the tensors that can be reached, their gradients, and what it answers with."""

    def __init__(self, guards: Guards, tracer: Tracer) -> None:
        self.guards, self.tracer = guards, tracer
        tracer.on_event = self._event
        self.reached: list[tuple[str, Tensor]] = [*guards.arguments]
        self.reached += [(guards.name(one), one) for _, one in guards.tensors]
        self.known = {id(one): path for path, one in reversed(self.reached)}
        self.known |= {id(one): path for path, one, _ in reversed(guards.containers)}
        self.leaves = [(path, one) for path, one in self.reached if is_leaf(one.node)]
        if any(has_hooks(one.node) for _, one in self.leaves):
            tracer.reason = "uses tensors with hooks, which Python runs"
        if any(hasattr(type(one), "instead") for _, one in self.reached):
            tracer.reason = "uses sparse tensors"
        if any(one.device.wraps is not None for _, one in self.reached):
            tracer.reason = "uses tensors of a device that wraps another one (lazy, vmap)"
        self.looks = [(one, one.native, list(one.__dict__)) for _, one in self.reached]
        self.first = self.grads = self._held_grads()
        self.cleared: set[int] = set()  # leaves whose gradient the call forgot before anything else
        self.touched: set[int] = set()  # leaves whose gradient counts when the call begins
        self.kept: dict[int, set[int]] = {}
        self.effects: dict[int, list[tuple[Tensor, str, int | None, Any]]] = {}
        self.result: Result | None = None
        self.replaced: list[tuple[str, str]] = []  # where the call put something else into an argument, and what
        self.values: list[int] = []
        self.needed: set[int] = set()  # tensors, by id, that the replay names
        self.ends = 0
        self.backward: Any = None
        self.custom: list[
            tuple[Any, dict[str, Any]]
        ] = []  # backward functions of the program's own, and what they are handed
        self.script: Any = None
        self.run_back: CompiledBackward | None = None

    # While the function runs

    def _event(self, event: Any) -> None:
        """Around a call that Python makes itself; ``event`` is None before it."""
        if event is None:
            self._note_grads()
            return
        for one in (event.owner, *event.takes):
            if isinstance(one, Optimizer | LRScheduler | GradScaler) and not self.guards.reaches(one):
                # It begins anew in each call, and a replay has but the one of the trace.
                self.tracer.fail(f"makes its own {type(one).__name__}")
        self.grads = self._held_grads()
        if any(id(one) in self.touched for one in event.clears):  # a second run would find none
            self.tracer.done.add(len(self.tracer.events) - 1)
        if event.clears:
            self.cleared |= {id(one) for one in event.clears if one.grad is None} - self.touched

    def read_grad(self, tensor: Tensor) -> None:
        """The program asks for a gradient, or puts one: whether there is one counts, where the call has not changed it before."""
        held = self.first.get(id(tensor), tensor)
        if held is not tensor and tensor.grad is held and id(tensor) not in self.cleared:
            self.touched.add(id(tensor))

    def read_place(self, tensor: Tensor) -> None:
        """The program takes a part of a tensor's memory, wherever in it the tensor is."""
        keys = [one.device.storage_key(one.native) for _, one in self.reached]
        if tensor.device.storage_key(tensor.native) in keys:
            self.tracer.fail_unless_paused("asks for a place in a tensor's memory")

    def _held_grads(self) -> dict[int, Tensor | None]:
        """The gradients of the leaves, also of those that the call has frozen for the moment."""
        return {id(one): one.grad for _, one in self.leaves}

    def _note_grads(self) -> None:
        """The gradients that were put in place since the last event, by the segment that does it."""
        position = len(self.tracer.segments) - 1
        held = self._held_grads()
        for path, one in self.leaves:
            now, was = held[id(one)], self.grads[id(one)]
            if now is was:
                continue
            if id(one) not in self.cleared:
                self.touched.add(id(one))
            number = None
            if now is not None:
                if type(now) is not Tensor or type(now.native) is not now.device.array or now.node is not None:
                    self.tracer.fail("leaves a gradient that is sparse or recorded")
                    return
                if now.device is not self.tracer.device:
                    self.tracer.fail("leaves a gradient of a device that no kernel was called on")
                    return
                number = self.tracer.expose(now.native)
                self.kept.setdefault(position, set()).add(number)
            self.tracer.done.add(position)
            self.effects.setdefault(position, []).append((one, path, number, now))
        self.grads = held

    def finish(self, result: Any, start: int) -> None:
        """Take down what the call answered with, and the backward pass that may follow, while it is still looked at."""
        tracer = self.tracer
        if tracer.reason is not None:
            return
        if tracer.device is None:
            tracer.reason = "calls no kernel"
            return
        if any(one.native is not native or list(one.__dict__) != names for one, native, names in self.looks):
            tracer.fail("gives other memory or attributes to a tensor that was there")
            return
        self.sources = {id(one.native): f"{path}.native" for path, one in reversed(self.reached)}
        for path, one in self.leaves:
            held = self.first[id(one)]
            if held is not None:
                self.sources.setdefault(id(held.native), f"{path}.node.grad.native")
        tracer.part()
        self._note_grads()
        tracer.cut()
        numbers = {
            number: self.sources[id(native)] for number, native in tracer.given.items() if id(native) in self.sources
        }
        self.script = Script(tracer, numbers)
        found = self.result = Result(result, self.known, self.script, self.guards.reaches)
        self.replaced = [(place, found.expression(one)) for place, one in self._replaced()]
        self.script.names.update(self.guards.literals)
        if found.failed:
            tracer.fail(found.failed)
            return
        if any(one.device is not tracer.device for one in found.tensors):
            tracer.fail("answers with a tensor of another device than it computes on")
            return
        tracer.pause(True)
        tracer.unshared()
        tracer.pause(False)
        if any(tracer.root(tracer.value_of(one.native)) in tracer.shared for one in found.tensors):
            tracer.fail("answers with a tensor over the memory of an array that Python holds")
            return
        self.values = [tracer.own(tracer.value_of(one.native)) for one in found.tensors]
        self.ends = len(tracer.segments)
        for _, one in self.reached:
            if one.node is not None and not is_leaf(one.node) and outermost(one.node).order < start:
                tracer.fail("writes to a tensor that it was given, as recorded by autograd")
                return
        roots = [one for one in found.tensors if one.node is not None]
        if roots and tracer.reason is None:
            self._differentiate(roots, start)
        named = {id(one.native) for _, one in self.guards.tensors}
        for number, native in tracer.given.items():
            if id(native) in self.sources:
                numbers.setdefault(number, self.sources[id(native)])
            elif number not in tracer.late and id(native) not in named:  # a replay would read this very array for ever
                tracer.fail("reads a tensor that guards do not find")

    def _replaced(self) -> Iterator[tuple[str, Any]]:
        """What the call put into containers that it was given, or has state in, and where; other keys are guards' affair."""
        for path, one, before in self.guards.containers:
            now = items_of(one)
            for key, value in before.items():
                if key not in now:
                    self.tracer.fail(f"deletes {self.guards.place(path, one, key)}")
                elif now[key] is not value:
                    yield self.guards.place(path, one, key), now[key]

    def _differentiate(self, roots: list[Tensor], start: int) -> None:
        """Run the backward pass once, for gradients of ones that stand for any."""
        tracer = self.tracer
        edges, nodes = external_edges([one.node for one in roots], start)
        if any(has_hooks(node) for node in [*nodes, *map(outermost, edges)]):
            tracer.fail("hooks the tape, which Python runs")
            return
        tracer.cut()
        tracer.final = len(tracer.segments) - 1
        seeds = []
        device: Any = tracer.device
        for one in roots:
            tracer.pause(True)
            native = device.kernels["full"](tuple(one.native.shape), 1, dtype=one.dtype)
            tracer.pause(False)
            seeds.append((tracer.value_of(native), new_tensor(native, one.dtype, device)))
        tracer.late = {number for number, _ in seeds}
        try:
            found = walk(
                [(one.node, g) for one, (_, g) in zip(roots, seeds, strict=True)],
                retain=True, create=False, targets={key_of(edge) for edge in edges},
            )  # fmt: skip
        except GradientError as error:
            if any(node.saved is None for node in nodes):  # a backward pass in the call has freed what this one needs
                self.backward = "freed", roots
            else:
                tracer.fail(f"cannot be differentiated: {error}")
            return
        tracer.part()
        self.custom = custom_of(nodes)
        grads = [found.get(key_of(edge)) for edge in edges]
        if any(g is not None and type(g.native) is not device.array for g in grads):
            tracer.fail("has sparse gradients")
            return
        values = [None if g is None else tracer.value_of(g.native) for g in grads]
        kinds = [edge.dtype for edge in edges]
        self.backward = "compiled", roots, edges, values, kinds, [number for number, _ in seeds]

    # The replay

    def replay(self, compile: Any) -> tuple[Callable[..., Any], list[Any]]:
        """The function that stands for the call, and the plans that it runs."""
        script, result = self.script, self.result
        assert result is not None
        script.compile = compile
        needed = set(self.values)
        saved: list[int] = []
        if self.backward is not None and self.backward[0] == "compiled":
            self.run_back, saved = self._backward_script(script)
            needed |= set(saved)
        calls, needed = script.calls(0, self.ends, needed, self.kept)
        self._guard_inputs(needed)
        script.names.update(
            Broken=Broken, MISSED=MISSED, new_tensor=new_tensor, Version=Version, written=written, node_of=node_of,
            View=View, share_version=share_version,
        )  # fmt: skip
        held, bumps = self._bumps()
        lines = [*held, *self._around(calls), *bumps]
        lines += self._results(result, saved)
        if self.backward is not None:
            lines += self._tape(saved, self.run_back)
        for i, (_, text) in enumerate(self.replaced):  # all of it before the first is put in place
            lines.append(f"n{i} = {text}")
        lines.append(f"answer = {result.text}")
        lines += [f"{place} = n{i}" for i, (place, _) in enumerate(self.replaced)]
        lines.append("return answer")
        run = script.function("run(args, kwargs)", lines, needed)
        words = set(re.findall(r"\w+", run.source))  # type: ignore[attr-defined]
        self.needed = {id(one) for path, one in self.reached if path in words}
        return run, script.plans

    def watch_backward(self, named: frozenset[str] | None, ran: frozenset[int]) -> None:
        """Have the compiled backward pass ask whether what the program's own functions read there is what it was."""
        if self.run_back is not None:
            self.run_back.reads = reads_of(self.custom, self.guards, named, ran)

    def _around(self, calls: list[str]) -> list[str]:
        """The calls of segments, with the effects and events between them; one that may stop comes before all that stays."""
        tracer, script = self.tracer, self.script
        marked, free = [*enumerate(tracer.sources.values())], tracer.last_free()
        lines = [f"m{i} = {script.name(one)}.mark()" for i, one in marked]
        for position, call in enumerate(calls):
            writes = tracer.segments[position].writes
            if call and position <= free and (tracer.checks(position) or not writes):
                # Of kernels that find an index outside eager's own error is raised by the call that is traced then.
                lines += ["try:", f"    {call}", "except Broken:" if writes else "except (Broken, IndexError):"]
                lines += [f"    {script.name(one)}.go_back(m{i})" for i, one in marked]
                lines.append("    return MISSED")
            else:
                lines.append(call)
            for tensor, path, number, now in self.effects.get(position, []):
                made = (
                    None
                    if number is None
                    else f"new_tensor(x{number}, {script.name(now.dtype)}, {script.name(now.device)})"
                )
                lines.append(f"{path}.node.grad = {made}")
                script.names.setdefault(path, tensor) if path.startswith("o") else None
            if position < len(tracer.events):
                lines.append(f"{script.name(tracer.events[position].run)}()")
        return lines

    def _bumps(self) -> tuple[list[str], list[str]]:
        """Notes of the writes to tensors that others may hold; and before, names for them: the call may let a gradient go."""
        bases = {base for segment in self.tracer.segments[: self.ends] for _, base in segment.writes}
        held, lines = [], []
        for number in sorted(bases):
            source = self.script.sources.get(number)
            if source is not None:
                held.append(f"w{number} = {source.removesuffix('.native')}")
                lines.append(f"written(w{number})")
        self.script.names.update({path: one for path, one in self.reached if path.startswith("o")})
        return held, lines

    def _results(self, result: Result, saved: list[int]) -> list[str]:
        lines: list[str] = []
        device = self.tracer.device
        versions: dict[int, str] = {}
        for i, (one, number) in enumerate(zip(result.tensors, self.values, strict=True)):
            kind, place = self.script.name(one.dtype), self.script.name(device)
            lines.append(f"r{i} = new_tensor(x{number}, {kind}, {place})")
            if one.version is None:
                continue
            base = one.origin.base if one.origin is not None else None
            path = self.known.get(id(base)) if base is not None else None
            shared = path or next((path for path, other in self.reached if other.version is one.version), None)
            if shared is not None:
                lines.append(f"r{i}.version = share_version({shared})")
            elif id(one.version) in versions:
                lines.append(f"r{i}.version = {versions[id(one.version)]}.version")
            else:
                versions[id(one.version)] = f"r{i}"
                lines.append(f"r{i}.version = Version()")
            if path is not None:
                steps = self.script.name(one.origin.steps)
                lines.append(f"r{i}.trail = View({path}, {steps}, {one.origin.kind!r})")
        return lines

    def _tape(self, saved: list[int], op: Any) -> list[str]:
        """The node behind the results."""
        assert self.result is not None
        places = {id(one): f"r{i}" for i, one in enumerate(self.result.tensors)}
        results = "".join(f"{places[id(one)]}, " for one in self.backward[1])
        if op is None:
            return [f"node_of({self.script.name(Freed())}, (), None, (), [{results}])"]
        edges = []
        keys = {key_of(one.node): path for path, one in reversed(self.reached) if one.node is not None}
        for edge in self.backward[2]:
            path = keys.get(key_of(edge))
            edges.append(f"{path}.node" if path else self.script.name(edge))
        natives = "".join(f"x{one}, " for one in saved)
        versions = []
        for one in saved:
            source = self.script.sources.get(one)
            if source is not None:
                versions.append(f"share_version({source.removesuffix('.native')})")
            elif one in self.values:
                versions.append(f"share_version(r{self.values.index(one)})")
        watched = "".join(f"{one}, " for one in versions)
        given = f"({''.join(f'{one}, ' for one in edges)}), ({natives}), ({watched}), [{results}]"
        return [f"node_of({self.script.name(op)}, {given})"]

    def _backward_script(self, script: Script) -> tuple[CompiledBackward, list[int]]:
        """The op of the node behind the results, and the values that it needs of the forward pass."""
        _, _, _, values, kinds, seeds = self.backward
        back = Script(self.tracer, {}, script.compile)
        later = {one for one in values if one is not None}
        calls, needed = back.calls(self.ends, len(self.tracer.segments), later, {})
        constants = needed & set(self.tracer.constants)
        saved = sorted(needed - set(seeds) - constants)
        lines = [
            f"({''.join(f'x{one}, ' for one in saved)}) = saved",
            f"({''.join(f'x{one}, ' for one in seeds)}) = seeds",
        ]
        lines += [*calls, f"return ({''.join('None, ' if one is None else f'x{one}, ' for one in values)})"]
        run = back.function("run(saved, seeds)", lines, constants)
        script.plans.extend(back.plans)
        return CompiledBackward(run, self.tracer.device, kinds), saved

    def _guard_inputs(self, needed: set[int]) -> None:
        """Guards for what a replay reads: gradients that were there, and which arguments are one and the same."""
        guards = self.guards
        if len(guards.arguments) > 1:
            keys = ", ".join(f"id({path})" for path, _ in guards.arguments)
            count = len({id(one) for _, one in guards.arguments})
            guards.add(f"len({{{keys}}}) == {count}", "which arguments are one and the same", "")
        held = {id(one.native): (path, one) for path, one in self.reached}
        for i, (path, one) in enumerate(self.reached):
            for other_path, other in self.reached[:i]:
                if other.native is one.native and path != other_path:
                    guards.add(f"{path}.native is {other_path}.native", f"whether {path} is {other_path}", "")
                    break
        read = {id(self.tracer.given[one]) for one in needed if one in self.tracer.given}
        for path, one in self.leaves:
            grad = self.first[id(one)]
            if id(one) in self.touched or (grad is not None and id(grad.native) in read):
                guards.names.setdefault(path, one) if path.startswith("o") else None
                guards.add(f"({path}.node.grad is None) is {grad is None}", "whether a tensor has a gradient", "")
                if one.node.extra is None:
                    guards.add(f"not {path}.node.extra", "whether a tensor has hooks", "")
                if grad is not None:
                    guards.add(
                        f"{path}.node.grad.is_contiguous() is {grad.is_contiguous()}", "the strides of a gradient", ""
                    )
        writes = {base for segment in self.tracer.segments for _, base in segment.writes}
        if any(number in self.script.sources for number in writes) and self.guards.arguments:
            distinct = {path: one for path, one in self.guards.arguments if held[id(one.native)][0] == path}
            if distinct:
                place = guards.name(self.tracer.device)
                keys = ", ".join(f"{place}.storage_key({path}.native)" for path in distinct)
                known = {
                    self.tracer.device.storage_key(one.native) for path, one in self.reached if path.startswith("o")
                }  # type: ignore[union-attr]
                mine = {self.tracer.device.storage_key(one.native) for one in distinct.values()}  # type: ignore[union-attr]
                guards.add(
                    f"len({{{keys}}}) == {len(mine)} and {guards.name(known - mine)}.isdisjoint({{{keys}}})",
                    "which arguments share memory", "",
                )  # fmt: skip
