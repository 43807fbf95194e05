"""One traced call: the function runs as ever, and what it did becomes an entry that replays it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from tensorcore.amp.state import again, regions
from tensorcore.amp.state import state as autocast
from tensorcore.compiler.call import Call
from tensorcore.compiler.draws import Draws
from tensorcore.compiler.entry import Entry
from tensorcore.compiler.guards import Guards
from tensorcore.compiler.names import Names
from tensorcore.compiler.replay import Replay
from tensorcore.compiler.switches import guard_switches
from tensorcore.compiler.tracer import Tracer
from tensorcore.tape.memory import next_order

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
    call = Call(guards, Tracer(fullgraph))
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
    replay = Replay(call, compile)
    found = names.found()
    if found is not None:
        replay.watch_backward(*found)
        guards.narrow(*found, replay.needed)
    if guards.unfit:
        call.tracer.fail(guards.unfit)
        return result, Entry(guards, None, [], call.tracer.reason)
    return result, Entry(guards, replay.run, replay.plans, None)
