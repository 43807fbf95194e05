"""The replay of a traced call: the text of the function that stands for it, and the guards of what that reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tensorcore.compiler.build import Result, Script
from tensorcore.compiler.call import Call
from tensorcore.compiler.entry import MISSED
from tensorcore.compiler.gradient import CompiledBackward, Freed, node_of, reads_of
from tensorcore.lazy.plan import Broken
from tensorcore.ops.inplace import share_version
from tensorcore.ops.output import written
from tensorcore.tape.engine import key_of
from tensorcore.tape.memory import Version, View
from tensorcore.tensor import new_tensor

__all__ = ["Replay"]


class Replay:
    """What stands for a call.

    Args:
        compile: what stands in the place of the backend's ``compile``, or None.

    Attributes:
        run: the function of ``args`` and ``kwargs``; it answers with ``MISSED`` where a check fails.
        plans: what that runs.
        needed: the tensors, by ``id``, that it names.
    """

    def __init__(self, call: Call, compile: Any) -> None:
        self.call, self.script = call, call.script
        self.script.compile = compile
        self.run_back: CompiledBackward | None = None
        self.run, self.needed = self._function()
        self.plans = self.script.plans

    def _function(self) -> tuple[Callable[..., Any], set[int]]:
        call, script, result = self.call, self.script, self.call.result
        assert result is not None
        needed = set(call.values)
        saved: list[int] = []
        if call.backward is not None and call.backward[0] == "compiled":
            self.run_back, saved = self._backward_script()
            needed |= set(saved)
        calls, needed = script.calls(0, call.ends, needed, call.kept)
        self._guard_inputs(needed)
        script.names.update(
            Broken=Broken, MISSED=MISSED, new_tensor=new_tensor, Version=Version, written=written, node_of=node_of,
            View=View, share_version=share_version,
        )  # fmt: skip
        held, bumps = self._bumps()
        lines = [*held, *self._around(calls), *bumps]
        lines += self._results(result)
        if call.backward is not None:
            lines += self._tape(result, saved)
        for i, (_, text) in enumerate(call.replaced):  # all of it before the first is put in place
            lines.append(f"n{i} = {text}")
        lines.append(f"answer = {result.text}")
        lines += [f"{place} = n{i}" for i, (place, _) in enumerate(call.replaced)]
        lines.append("return answer")
        run = script.function("run(args, kwargs)", lines, needed)
        words = set(re.findall(r"\w+", run.source))
        return run, {id(one) for path, one in call.reached if path in words}

    def watch_backward(self, named: frozenset[str] | None, ran: frozenset[int]) -> None:
        """Have the compiled backward pass ask whether what the program's own functions read there is what it was."""
        if self.run_back is not None:
            self.run_back.reads = reads_of(self.call.custom, self.call.guards, named, ran)

    def _around(self, calls: list[str]) -> list[str]:
        """The calls of segments, with the effects and events between them; one that may stop comes before all that stays."""
        tracer, script = self.call.tracer, self.script
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
            for tensor, path, number, now in self.call.effects.get(position, []):
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
        bases = {base for segment in self.call.tracer.segments[: self.call.ends] for _, base in segment.writes}
        held, lines = [], []
        for number in sorted(bases):
            source = self.script.sources.get(number)
            if source is not None:
                held.append(f"w{number} = {source.removesuffix('.native')}")
                lines.append(f"written(w{number})")
        self.script.names.update({path: one for path, one in self.call.reached if path.startswith("o")})
        return held, lines

    def _results(self, result: Result) -> list[str]:
        lines: list[str] = []
        device = self.call.tracer.device
        versions: dict[int, str] = {}
        for i, (one, number) in enumerate(zip(result.tensors, self.call.values, strict=True)):
            kind, place = self.script.name(one.dtype), self.script.name(device)
            lines.append(f"r{i} = new_tensor(x{number}, {kind}, {place})")
            if one.version is None:
                continue
            base = one.origin.base if one.origin is not None else None
            path = self.call.known.get(id(base)) if base is not None else None
            shared = path or next((path for path, other in self.call.reached if other.version is one.version), None)
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

    def _tape(self, result: Result, saved: list[int]) -> list[str]:
        """The node behind the results."""
        places = {id(one): f"r{i}" for i, one in enumerate(result.tensors)}
        results = "".join(f"{places[id(one)]}, " for one in self.call.backward[1])
        if self.run_back is None:
            return [f"node_of({self.script.name(Freed())}, (), None, (), [{results}])"]
        edges = []
        keys = {key_of(one.node): path for path, one in reversed(self.call.reached) if one.node is not None}
        for edge in self.call.backward[2]:
            path = keys.get(key_of(edge))
            edges.append(f"{path}.node" if path else self.script.name(edge))
        natives = "".join(f"x{one}, " for one in saved)
        versions = []
        for one in saved:
            source = self.script.sources.get(one)
            if source is not None:
                versions.append(f"share_version({source.removesuffix('.native')})")
            elif one in self.call.values:
                versions.append(f"share_version(r{self.call.values.index(one)})")
        watched = "".join(f"{one}, " for one in versions)
        given = f"({''.join(f'{one}, ' for one in edges)}), ({natives}), ({watched}), [{results}]"
        return [f"node_of({self.script.name(self.run_back)}, {given})"]

    def _backward_script(self) -> tuple[CompiledBackward, list[int]]:
        """The op of the node behind the results, and the values that it needs of the forward pass."""
        _, _, _, values, kinds, seeds = self.call.backward
        back = Script(self.call.tracer, {}, self.script.compile)
        later = {one for one in values if one is not None}
        calls, needed = back.calls(self.call.ends, len(self.call.tracer.segments), later, {})
        constants = needed & set(self.call.tracer.constants)
        saved = sorted(needed - set(seeds) - constants)
        lines = [
            f"({''.join(f'x{one}, ' for one in saved)}) = saved",
            f"({''.join(f'x{one}, ' for one in seeds)}) = seeds",
        ]
        lines += [*calls, f"return ({''.join('None, ' if one is None else f'x{one}, ' for one in values)})"]
        run = back.function("run(saved, seeds)", lines, constants)
        self.script.plans.extend(back.plans)
        return CompiledBackward(run, self.call.tracer.device, kinds), saved

    def _guard_inputs(self, needed: set[int]) -> None:
        """Guards for what a replay reads: gradients that were there, and which arguments are one and the same."""
        call, guards, tracer = self.call, self.call.guards, self.call.tracer
        if len(guards.arguments) > 1:
            keys = ", ".join(f"id({path})" for path, _ in guards.arguments)
            count = len({id(one) for _, one in guards.arguments})
            guards.add(f"len({{{keys}}}) == {count}", "which arguments are one and the same", "")
        held = {id(one.native): (path, one) for path, one in call.reached}
        for i, (path, one) in enumerate(call.reached):
            for other_path, other in call.reached[:i]:
                if other.native is one.native and path != other_path:
                    guards.add(f"{path}.native is {other_path}.native", f"whether {path} is {other_path}", "")
                    break
        read = {id(tracer.given[one]) for one in needed if one in tracer.given}
        for path, one in call.leaves:
            grad = call.first[id(one)]
            if id(one) in call.touched or (grad is not None and id(grad.native) in read):
                guards.names.setdefault(path, one) if path.startswith("o") else None
                guards.add(f"({path}.node.grad is None) is {grad is None}", "whether a tensor has a gradient", "")
                if grad is not None:
                    guards.add(
                        f"{path}.node.grad.is_contiguous() is {grad.is_contiguous()}", "the strides of a gradient", ""
                    )
        writes = {base for segment in tracer.segments for _, base in segment.writes}
        if any(number in self.script.sources for number in writes) and guards.arguments:
            distinct = {path: one for path, one in guards.arguments if held[id(one.native)][0] == path}
            if distinct:
                place = guards.name(tracer.device)
                keys = ", ".join(f"{place}.storage_key({path}.native)" for path in distinct)
                known = {tracer.device.storage_key(one.native) for path, one in call.reached if path.startswith("o")}  # type: ignore[union-attr]
                mine = {tracer.device.storage_key(one.native) for one in distinct.values()}  # type: ignore[union-attr]
                guards.add(
                    f"len({{{keys}}}) == {len(mine)} and {guards.name(known - mine)}.isdisjoint({{{keys}}})",
                    "which arguments share memory", "",
                )  # fmt: skip
