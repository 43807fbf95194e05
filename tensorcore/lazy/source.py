"""The writer of a plan's text: one line for each kernel, with the arrays that are free again as places for results."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite, prod
from typing import Any

from tensorcore.backend.base import Backend
from tensorcore.backend.program import Program, Spec, Value
from tensorcore.lazy.kernels import pure_kernels
from tensorcore.lazy.kinds import CHECKS, ELEMENTWISE, IN_PLACE, OWN, VIEWING, indexed, reads, roots

__all__ = ["Writer"]

# Below this many bytes an array costs less to make than ``out=`` costs to pass.
_WORTH = 1 << 14
# What holds the same in each replay is made once with the plan, up to this many bytes, which the plan keeps.
_CONSTANTS = frozenset(["full", "arange"])
_SMALL = 1 << 12
_numbers = itertools.count(1)


class Writer:
    """Writes a plan unit by unit.

    Args:
        into: outputs that are written over inputs, by their positions.
        dense: of each value whether it lies in row-major order.
    """

    def __init__(self, program: Program, backend: Backend, into: dict[int, int], dense: list[bool]) -> None:
        self.program, self.backend, self.into, self.dense = program, backend, into, dense
        self.specs = program.specs()
        self.roots = roots(program)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"as_native": backend.as_native}
        self.constant_names: dict[int, str] = {}  # by id
        self.kernels = self.merged = self.live = self.peak = 0
        self.starts: list[int] = []
        number = len(program.inputs)
        for step in program.steps:
            self.starts.append(number)
            number += len(step.makes)
        self.variables = [f"v{i}" for i in range(number)]
        self.readers: list[list[int]] = [[] for _ in range(number)]
        for i, step in enumerate(program.steps):
            for one in set(reads(step)):
                self.readers[one].append(i)
        # By root: the steps that read its memory and have not run, and whether it leaves the program.
        self.waiting: dict[int, set[int]] = {}
        for one, found in enumerate(self.readers):
            self.waiting.setdefault(self.roots[one], set()).update(found)
        self.shown: dict[int, list[int]] = {}  # by root: the values that lie in its memory
        for one, root in enumerate(self.roots):
            self.shown.setdefault(root, []).append(one)
        self.outputs = {one.number for one in program.outputs}
        self.leaving = {self.roots[one] for one in self.outputs}
        leave = [self.roots[one.number] for one in program.outputs]
        times, over = Counter(leave), {root for i, root in enumerate(leave) if i in into}
        # Outputs that go over an input, and are no other output too, nor is the input any other's source.
        self.targets = {
            program.outputs[i].number: j
            for i, j in into.items()
            if times[leave[i]] == 1 and j not in over and leave[i] == program.outputs[i].number
        }
        self.free: dict[Spec, list[str]] = {}
        self.made: set[int] = set()  # values that have a variable
        self.constants: dict[int, Any] = {}  # those that the plan keeps
        self.owned: set[int] = set()  # those whose memory nobody else knows
        self.direct: set[int] = set()  # outputs that were written where they belong
        self.checks = sum(step.kernel in CHECKS for step in program.steps)
        self.wanted: dict[Spec, int] = {}
        for i, step in enumerate(program.steps):
            if step.kernel in ELEMENTWISE:
                self.wanted[self.specs[self.starts[i]]] = i  # the last step that could take a free array

    def results(self, i: int) -> range:
        """The numbers of what a step makes."""
        return range(self.starts[i], self.starts[i] + len(self.program.steps[i].makes))

    def needed_outside(self, number: int, members: Sequence[int]) -> bool:
        """Whether a value is read by another step than these, or leaves the program."""
        inside = set(members)
        return number in self.outputs or any(one not in inside for one in self.readers[number])

    def all_dense(self, numbers: Sequence[int]) -> bool:
        """Whether values lie in row-major order where their kernels run one by one."""
        return all(self.dense[one] for one in numbers)

    # Units

    def single(self, i: int) -> None:
        """The call of one step's kernel."""
        step = self.program.steps[i]
        made = list(self.results(i))
        if self._settled(i, made):
            return
        self.kernels += 1
        if step.kernel in OWN:
            getattr(self, f"_{step.kernel}")(i, made)
        else:
            arguments = [self._text(one) for one in step.operands]
            arguments += [f"{key}={self._text(value)}" for key, value in step.options.items()]
            kernel = self._kernel(step.kernel)
            if step.kernel in ELEMENTWISE:
                place = self._room(made[0], [i], list(reads(step)), in_place=step.kernel in IN_PLACE)
                if place is not None:
                    arguments.append(f"out={place}")
                    self.variables[made[0]] = place
                self.lines.append(f"{self.variables[made[0]]} = {kernel}({', '.join(arguments)})")
            elif "needs" in step.options or step.kernel == "standardize":
                called = f"{self._constant(_kept)}({kernel}({', '.join(arguments)}), {len(made)}, {tuple(step.options.get('needs', ()))})"
                self.lines.append(f"{''.join(f'v{one}, ' for one in made)} = {called}")
            else:
                self.lines.append(f"{', '.join(f'v{one}' for one in made)} = {kernel}({', '.join(arguments)})")
            if len(made) == 1 and self.specs[made[0]].shape == () and step.kernel not in VIEWING:
                name = self.variables[made[0]]
                self.lines.append(f"{name} = as_native({name})")  # NumPy answers with a scalar
        self.made.update(made)
        self._after([i], made if step.kernel not in VIEWING else [])

    def fused(self, kernel: Callable[..., Any], members: Sequence[int], inputs: list[int], outputs: list[int]) -> None:
        """The call of one kernel that does several steps."""
        self.kernels += 1
        self.merged += 1
        given = ", ".join(self.variables[one] for one in inputs)
        places = [self._room(one, members, (), in_place=False) for one in outputs]
        for one, place in zip(outputs, places, strict=True):
            self.variables[one] = place or self.variables[one]
        out = f", out=({', '.join(map(str, places))},)" if any(places) else ""
        names = ", ".join(self.variables[one] for one in outputs)
        self.lines.append(f"{names}, = {self._constant(kernel)}({given}{out})")
        self.made.update(outputs)
        self._after(members, outputs)

    def finish(self, broken: type[Exception]) -> Any:
        """The function."""
        outputs, ends, copies = self.program.outputs, [], []
        overwritten = {self.roots[j] for j in self.into.values()}
        for i, one in enumerate(outputs):
            j = self.into.get(i)
            if j is None:
                ends.append(self.variables[one.number])
                continue
            ends.append(f"v{j}")
            if one.number in self.direct or one.number == j:
                continue
            source = self.variables[one.number]
            if self.roots[one.number] in overwritten:  # would be read after it was written
                self.lines.append(f"t{i} = {self._kernel('clone')}({source})")
                source = f"t{i}"
            copies.append(f"{self._kernel('copy')}(v{j}, {source})")
        inputs = ", ".join(f"v{i}" for i in range(len(self.program.inputs)))
        self.names["Broken"] = broken
        body = "".join(
            f"    {line}\n" for line in (*self.lines, *copies, f"return ({''.join(f'{e}, ' for e in ends)})")
        )
        source = f"def replay({inputs}):\n{body}"
        exec(compile(source, f"<plan {next(_numbers)}>", "exec"), self.names)
        made = self.names.pop("replay")
        made.source, made.kernels, made.fused, made.peak = source, self.kernels, self.merged, self.peak
        return made

    # Steps of a plan's own

    def _settled(self, i: int, made: list[int]) -> bool:
        """Whether a step is done with already: it makes a small constant, or checks one."""
        step = self.program.steps[i]
        if step.kernel in CHECKS:
            operand = step.operands[0]
            native = self.constants.get(operand.number) if isinstance(operand, Value) else None
            if native is None:
                return False
            if step.kernel == "bounds":
                held = step.options["holds"](*pure_kernels(self.backend)["index_bounds"](native))
            else:
                held = step.options["holds"](self.backend.to_host(native))
            if not held:
                return False
            self.checks -= 1
        elif step.kernel in _CONSTANTS and not any(True for _ in reads(step)):
            if self._bytes(made[0]) > _SMALL or made[0] in self.leaving:
                return False
            native = pure_kernels(self.backend)[step.kernel](*step.operands, **step.options)
            native = self.constants[made[0]] = self.backend.as_native(native)
            self.variables[made[0]] = self._constant(native)
            self.made.update(made)
        else:
            return False
        for one in reads(step):
            self.waiting[self.roots[one]].discard(i)
        return True

    def _random(self, i: int, made: list[int]) -> None:
        options = self.program.steps[i].options
        given = [f"{key}={self._text(options[key])}" for key in ("kind", "shape", "dtype", "generator")]
        given += [f"{key}={self._text(value)}" for key, value in options["options"]]
        self.lines.append(f"v{made[0]} = {self._constant(self.backend.random)}({', '.join(given)})")

    def _draw(self, i: int, made: list[int]) -> None:
        step = self.program.steps[i]
        given = [
            self._text(step.options["op"]),
            self._constant(step.options["function"]),
            *map(self._text, step.operands),
        ]
        self.lines.append(f"v{made[0]} = {self._constant(self.backend.draw)}({', '.join(given)})")

    def _place(self, i: int, made: list[int]) -> None:
        base, part, *places = self.program.steps[i].operands
        self._take_over(i, made[0], base)
        at = f"v{made[0]}"
        numbers = iter(places)
        for kernel, options in self.program.steps[i].options["chain"]:
            given = "".join(f", {key}={self._place_text(value)}" for key, value in indexed(options, numbers).items())
            self.lines.append(f"t = {self._kernel(kernel)}({at}{given})")
            at = "t"
        self.lines.append(f"{self._kernel('copy')}({at}, {self._text(part)})")

    def _place_text(self, value: Any) -> str:
        """As ``_text``, where a value is an int of an index."""
        if type(value) is tuple:  # a value is one too
            return f"({''.join(f'{self._place_text(one)}, ' for one in value)})"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self._text, (value.start, value.stop, value.step)))})"
        return self._text(value)

    def _update(self, i: int, made: list[int]) -> None:
        step = self.program.steps[i]
        given: list[Any] = [
            [self._text(one) for one in operand] if type(operand) is tuple else self._text(operand)
            for operand in step.operands
        ]
        for one, target in zip(made, step.options["targets"], strict=True):
            if type(target) is tuple:  # a position, and one in the list there
                self._take_over(i, one, step.operands[target[0]][target[1]])
                given[target[0]][target[1]] = f"v{one}"
            else:
                self._take_over(i, one, step.operands[target])
                given[target] = f"v{one}"
        arguments = [f"[{', '.join(one)}]" if type(one) is list else one for one in given]
        # Kernels that take a number for each array take a list of them.
        arguments += [
            f"{key}={self._text(list(one) if type(one) is tuple else one)}" for key, one in step.options["options"]
        ]
        self.lines.append(f"{self._kernel(step.options['kernel'])}({', '.join(arguments)})")

    def _bounds(self, i: int, made: list[int]) -> None:
        step = self.program.steps[i]
        holds = self._constant(step.options["holds"])
        self.checks -= 1
        self.lines.append(
            f"if not {holds}(*{self._kernel('index_bounds')}({self._text(step.operands[0])})): raise Broken"
        )

    def _values(self, i: int, made: list[int]) -> None:
        step = self.program.steps[i]
        holds, to_host = self._constant(step.options["holds"]), self._constant(self.backend.to_host)
        self.checks -= 1
        self.lines.append(f"if not {holds}({to_host}({self._text(step.operands[0])})): raise Broken")

    def _take_over(self, i: int, number: int, operand: Any) -> None:
        """Give a value that is written in place memory of its own: the operand's where nobody needs that any more."""
        root = self.roots[operand.number]
        last = self.waiting[root] <= {i} and not self.checks
        mine = operand.number in self.owned and root not in self.leaving
        goes_there = self.targets.get(number) == operand.number
        if last and (mine or goes_there):
            self.lines.append(f"v{number} = {self.variables[operand.number]}")
            self.owned.discard(operand.number)
            if goes_there:
                self.direct.add(number)
        else:
            self.lines.append(f"v{number} = {self._kernel('clone')}({self.variables[operand.number]})")

    # Memory

    def _room(self, number: int, members: Sequence[int], operands: Any, in_place: bool) -> str | None:
        """The name of an array that a result is written to, None where a new one is made."""
        spec = self.specs[number]
        if not self.dense[number]:
            return None
        j = self.targets.get(number)
        if (
            j is not None
            and not self.checks
            and self.dense[j]
            and self.specs[j] == spec
            and self.waiting.get(j, set()) <= set(members)
            and (in_place or not any(self.roots[one] == j for i in members for one in reads(self.program.steps[i])))
            and not any(self.roots[one] == j and one != j for i in members for one in reads(self.program.steps[i]))
        ):
            self.direct.add(number)
            return f"v{j}"
        if self._bytes(number) < _WORTH or number in self.leaving:
            return None
        if self.free.get(spec):
            self.live -= self._bytes(number)
            return self.free[spec].pop()
        if in_place:
            for one in operands:
                last = one in self.owned and one not in self.leaving and self.waiting[one] <= set(members)
                if last and self.specs[one] == spec and self.dense[one]:
                    self.owned.discard(one)
                    self.live -= self._bytes(one)
                    return self.variables[one]
        return None

    def _after(self, members: Sequence[int], made: Sequence[int]) -> None:
        """Note what was made, and free what was read for the last time."""
        for one in made:
            if one not in self.direct:
                self.owned.add(one)
                self.live += self._bytes(one)
        self.peak = max(self.peak, self.live)
        touched = {self.roots[one] for i in members for one in reads(self.program.steps[i])} | set(made)
        for root in touched:
            waiting = self.waiting.get(root)
            if waiting is None:
                continue
            waiting.difference_update(members)
            if waiting or root in self.leaving or root not in self.owned:
                continue
            self.owned.discard(root)
            spec = self.specs[root]
            if self._bytes(root) < _WORTH:
                self.live -= self._bytes(root)
            elif self.dense[root] and self.wanted.get(spec, -1) > max(members):
                self.free.setdefault(spec, []).append(self.variables[root])
            else:
                self.live -= self._bytes(root)
                shown = {self.variables[one] for one in self.shown[root] if one in self.made}
                self.lines.append(f"del {', '.join(sorted(shown))}")

    # Text

    def _kernel(self, name: str) -> str:
        return self._named(f"k_{name}", pure_kernels(self.backend)[name])

    def _constant(self, value: Any) -> str:
        name = self.constant_names.get(id(value))
        if name is None:
            name = self.constant_names[id(value)] = self._named(f"c{len(self.names)}", value)
        return name

    def _named(self, name: str, value: Any) -> str:
        self.names[name] = value
        return name

    def _text(self, value: Any) -> str:
        if isinstance(value, Value):
            return self.variables[value.number]
        if isinstance(value, tuple | list):
            inside = "".join(f"{self._text(one)}, " for one in value)
            # Where a kernel takes a sequence of arrays, that is a list.
            several = any(isinstance(one, Value) for one in value)
            return f"[{inside}]" if several or type(value) is list else f"({inside})"
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        if type(value) is float and isfinite(value):
            return repr(value)
        return self._constant(value)

    def _bytes(self, number: int) -> int:
        spec = self.specs[number]
        return prod(spec.shape) * spec.dtype.itemsize


def _kept(made: Any, count: int, needs: tuple[bool, ...]) -> Any:
    """The results of a kernel that a program counts: all, those that are there, or those of the needed ones."""
    if len(made) == count:
        return made
    found = [one for one in made if one is not None]
    return found if len(found) == count else [one for one, needed in zip(made, needs, strict=False) if needed]
