"""What a call that is traced does apart from kernels: the gradients that it puts in place, its result, its backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorcore.amp.grad_scaler import GradScaler
from tensorcore.compiler.build import Result, Script
from tensorcore.compiler.gradient import custom_of, external_edges, hooks_of, outermost
from tensorcore.compiler.guards import Guards
from tensorcore.compiler.objects import is_library, items_of
from tensorcore.compiler.tracer import Tracer
from tensorcore.errors import GradientError
from tensorcore.optim.optimizer import Optimizer
from tensorcore.optim.schedule import LRScheduler
from tensorcore.tape.engine import key_of, walk
from tensorcore.tape.node import is_leaf
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["Call"]


class Call:
    """The tensors that a call can reach, their gradients, what it answers with, and how its backward pass goes.

    Attributes:
        reached: tensors that were there before, with expressions for them; ``known`` are these by ``id``, containers too.
        leaves: those that gather gradients; ``first`` are the gradients before the call, by ``id`` of the leaf.
        touched: leaves, by ``id``, whose gradient counts when the call begins.
        effects: the gradients that are put in place, by the segment after which; ``kept`` are the values that this needs.
        result, values: what it answers with, and the values of the tensors in it.
        replaced: where it put something else into a container, and what, as expressions.
        ends: how many segments are the forward pass.
        backward: what the backward pass is, as ``_differentiate`` leaves it; None where there is none.
        custom: backward functions of the program's own in it, and what their forward left for them.
        script: the text of the replay, as far as the result names something in it.
    """

    def __init__(self, guards: Guards, tracer: Tracer) -> None:
        self.guards, self.tracer = guards, tracer
        tracer.on_event = self._event
        self.reached: list[tuple[str, Tensor]] = [*guards.arguments]
        self.reached += [(guards.name(one), one) for _, one in guards.tensors]
        self.hooks = {id(one): _Hooks(one, guards.states) for _, one in self.reached if hooks_of(one.node)}
        self.reached += [(guards.name(one), one) for hooks in self.hooks.values() for one in hooks.tensors]
        self.known = {id(one): path for path, one in reversed(self.reached)}
        self.known |= {id(one): path for path, one, _ in reversed(guards.containers)}
        self.leaves = [(path, one) for path, one in self.reached if is_leaf(one.node)]
        if any(hasattr(type(one), "instead") for _, one in self.reached):
            tracer.reason = "uses sparse tensors"
        if any(one.device.wraps is not None for _, one in self.reached):
            tracer.reason = "uses tensors of a device that wraps another one (lazy, vmap)"
        self.looks = [(one, one.native, list(one.__dict__)) for _, one in self.reached]
        self.first = self.grads = self._held_grads()
        self.cleared: set[int] = set()  # leaves whose gradient the call forgot before anything else
        self.touched: set[int] = set()
        self.kept: dict[int, set[int]] = {}
        self.effects: dict[int, list[tuple[Tensor, str, int | None, Any]]] = {}
        self.result: Result | None = None
        self.replaced: list[tuple[str, str]] = []
        self.values: list[int] = []
        self.ends = 0
        self.backward: Any = None
        self.custom: list[tuple[Any, dict[str, Any]]] = []
        self.script: Any = None

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
        ran = self._guard_hooks()
        named = {id(one.native) for one in (*[one for _, one in self.guards.tensors], *ran)}
        for number, native in tracer.given.items():
            if id(native) in self.sources:
                numbers.setdefault(number, self.sources[id(native)])
            elif number not in tracer.late and id(native) not in named:  # a replay would read this very array for ever
                tracer.fail("reads a tensor that guards do not find")

    def _guard_hooks(self) -> list[Tensor]:
        """Guards for the hooks of the leaves whose gradients the call puts in place, or reads; the tensors that these read."""
        guards, found = self.guards, []
        put = self.touched | {id(one) for some in self.effects.values() for one, _, _, _ in some}
        bare = []
        for path, one in self.leaves:
            if id(one) in put:
                guards.names.setdefault(path, one) if path.startswith("o") else None
                if one.node.extra is None:
                    bare.append(f"{path}.node.extra")
                    continue
                hooks = self.hooks.get(id(one))
                held = [] if hooks is None else hooks.hooks
                guards.add(f"{guards.name(hooks_of)}({path}.node) == {guards.name(held)}", "the hooks of a tensor", "")
                if hooks is not None:
                    found += hooks.tensors
                    if hooks.foreign:
                        self.tracer.fail("uses tensors with hooks of a package's, which may do more than compute,")
                    for reads in hooks.reads:
                        guards.add(f"{guards.name(reads)}.check((), {{}})", "what a hook of a tensor reads", "")
        if bare:
            guards.add(f"not ({' or '.join(bare)})", "the hooks of a tensor", "")
        return found

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
        hooked = [node for node in nodes if hooks_of(node)]
        if hooked and all(node.saved is not None for node in nodes):
            tracer.fail("hooks the tape, which Python runs behind the call")
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
        hooks = [(node, node.extra) for node in (*hooked, *map(outermost, edges))]
        for node, _ in hooks:  # they have run in the call's own backward pass, or run behind the compiled one
            node.extra = None
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
        finally:
            for node, extra in hooks:
                node.extra = extra
        if hooked:
            tracer.fail("hooks the tape, which Python runs behind the call")
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


class _Hooks:
    """What a program hooked to a leaf.

    Attributes:
        foreign: whether a package did, whose hooks may send gradients to other processes.
        reads: guards of what they read; ``tensors`` are those that they do.
    """

    def __init__(self, leaf: Tensor, states: tuple[Any, ...]) -> None:
        self.hooks = hooks_of(leaf.node)
        self.foreign = any(is_library(getattr(one, "__module__", None)) for one in self.hooks)
        self.reads = [Guards(one, (), {}, states=states) for one in self.hooks]
        self.tensors = [one for reads in self.reads for _, one in reads.tensors]
        for reads in self.reads:
            reads.settle()
