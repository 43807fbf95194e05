"""The parameters that a function shows: bools that take nothing else, NumPy's names for dims, and calls written out as text.

Binding arguments by hand (``*args, **kwargs``) costs 1.5 us a call, a frame with the exact parameters 0.05.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorcore.errors import ArgumentTypeError, TensorcoreError, not_bool
from tensorcore.ops.inplace import inplace
from tensorcore.ops.output import store
from tensorcore.shortcuts import place_way, placed_way
from tensorcore.tape.memory import Version, next_order
from tensorcore.tape.mode import makers, mode
from tensorcore.tape.node import Node
from tensorcore.tensor import Tensor

__all__ = ["checked", "composed", "parameters_of"]

# Parameters of which PyTorch asks no more than their truth: code in Python looks at them; one that makes a leaf may be
# None. ``write`` is given by this house alone, and nothing asks for ``implicit``.
_BY_TRUTH = {
    "write", "inplace", "requires_grad", "return_indices", "include_last_offset", "hard", "get_infos", "gaussian_nll_loss.full",
    "add_zero_attn", "need_weights", "average_attn_weights", "use_separate_proj_weight", "multi_head_attention_forward.training",
    "multi_head_attention_forward.is_causal", "stft.center", "pca_lowrank.center", "triplet_margin_with_distance_loss.swap",
    "backward.retain_graph", "backward.create_graph", "recompute_scale_factor", "expand.implicit",
}  # fmt: skip
# What annotations promise, and what such a thing has, one of them.
_KINDS = {
    "int": ("an int", ("__index__",)),
    "float": ("a number", ("__float__", "__index__")),
    "Tensor": ("a Tensor", ("native",)),
}
# Functions that look at ``out`` themselves, or whose calls with it are another's; others say so by their attribute ``sees_out``.
_PLACES = frozenset([
    "add", "addbmm", "addmm", "addmv", "amax", "amin", "aminmax", "argmax", "argmin", "avg_pool2d", "avg_pool3d", "baddbmm",
    "bmm", "cat", "clamp", "column_stack", "complex", "concat", "cross", "cummax", "cummin", "cumprod", "cumsum", "div", "dot",
    "dstack", "frexp", "gather", "hstack", "index_select", "isneginf", "isposinf", "kthvalue", "linalg_cross", "linear",
    "log_softmax", "logcumsumexp", "max", "mean", "min", "mm", "mode", "mv", "nansum", "narrow_copy", "polar", "searchsorted", "signbit",
    "softmax", "sort", "stack", "sub", "sum", "take", "topk", "tril", "triu", "vstack", "where", "xlog1py", "xlogy",
])  # fmt: skip
_KINDS |= {f"{one} | None": wanted for one, wanted in _KINDS.items()}
_NUMPY = (("axis", "dim"), ("keepdims", "keepdim"))
# The flags of code that takes any number of positions, and any keywords; inspect has them and is slow to import.
_SIZED, _NAMED = 0x04, 0x08
# Stands for an argument that was not given and has no default.
_absent: Any = object()


def checked(function: Callable[..., Any], title: str, numpy: bool = False) -> Any:
    """The function behind a look at its parameters that are annotated as bools; itself where it has none.

    Args:
        title: what its errors call it.
        numpy: whether ``axis`` and ``keepdims`` stand for ``dim`` and ``keepdim``, as they do in PyTorch.
    """
    if function.__name__.startswith("_"):
        function.__qualname__ = title  # what Python says of a wrong argument
    looks, parameters = _looks(function, title), parameters_of(function)
    # What is drawn is drawn once, and what is called most looks at ``out`` itself: it has no frame to spare.
    own = title in _PLACES or getattr(function, "sees_out", False)
    places = "out" in parameters and "generator" not in parameters and not own
    if not looks and not numpy and not places:
        return function
    scope: dict[str, Any] = {"function": function, "not_bool": not_bool}
    lines = []
    if numpy:
        absent = [one for one, (_, *default) in parameters.items() if one in ("dim", "keepdim") and not default]
        parameters |= {one: (parameters[one][0], _absent) for one in absent}
        scope |= {"renamed": functools.partial(_renamed, function, title, dict(parameters)), "absent": _absent}
        given = ", ".join([f"{one!r}: {one}" for one in parameters])
        lines.append(f"    if {' or '.join(['numpy', *[f'{one} is absent' for one in absent]])}:")
        lines.append(f"        return call(**renamed(numpy, {{{given}}}))")
    sized, named = _stars(function)
    passed = [one for one, (keyword, *_) in parameters.items() if not keyword]
    passed += [*sized, *[f"{one}={one}" for one, (keyword, *_) in parameters.items() if keyword], *named]
    lines += looks
    # Without ``out`` it is called past this frame.
    scope["placed"] = placed_way(function, title, store)
    first = (
        f"if out is not None and (done := placed({', '.join(_without_out(passed))})) is not None: return done"
        if places
        else ""
    )
    lines += _explaining(function, title, f"function({', '.join(passed)})", scope, first)
    return _written(function, title, parameters, scope, lines, ["**numpy"] if numpy else named)


def _without_out(passed: list[str]) -> list[str]:
    """The arguments of a call as those of ``placed``."""
    return ["out", *[one for one in passed if one not in ("out", "out=out")]]


def composed(
    op: Any, function: Callable[..., Any], run: Callable[..., Any], quick: Any, usual: str = "", numbers: bool = False,
    written: bool = False,
) -> Any:  # fmt: skip
    """``run`` behind the parameters of the function it stands for; ``out`` and ``inplace`` are dealt with here.

    ``quick`` calls are 1 us less than ``run``; ``usual`` is what their options have to meet, as text; with ``numbers`` the last
    input may be a float; ``written`` is whether the op is elementwise.
    """
    title, parameters = op.name, parameters_of(function)
    scope: dict[str, Any] = {"run": run, "store": store, "not_bool": not_bool}
    names = [one for one in parameters if one not in ("out", "inplace")]
    passed = ", ".join(names)
    lines = _looks(function, title)
    if "inplace" in parameters:
        lines.append(f"    if inplace: return over({passed})")
    if "out" in parameters:
        if quick is not None:
            scope["into"] = place_way(
                op, quick, None, quick if numbers else frozenset(), store=None if written else store
            )
            options = [f"{one}={one}" for one in names[len(op.inputs) :]]
            asked = f"out is not None{f' and {usual}' if usual else ''}"
            lines.append(
                f"    if {asked} and (done := into({', '.join(['out', *op.inputs, *options])})) is not None: return done"
            )
        given = [f"{one}={one}" if parameters[one][0] else one for one in names]
        lines.append(
            f"    if out is not None and (done := placed({', '.join(['out', *given])})) is not None: return done"
        )
        lines.append(f"    if out is not None: return store({title!r}, run({passed}), out, {', '.join(op.inputs)})")
    if quick is not None:
        scope |= {"quick": quick, "mode": mode, "Tensor": Tensor, "new": object.__new__, "name": op.kernel, "op": op}
        scope |= {"Node": Node, "Version": Version, "next_order": next_order}
        makers.append(scope)
        first, *others = op.inputs
        alike = [f"type({one}) is Tensor and {one}.dtype is dtype and {one}.device is device" for one in others]
        natives, off = [f"{one}.native" for one in op.inputs], [f"{one}.node is None" for one in op.inputs]
        if numbers:
            number = f"type({others[-1]}) is float"
            alike[-1], off[-1] = f"({number} or {alike[-1]})", f"({number} or {off[-1]})"
            natives[-1] = f"{others[-1]} if {number} else {natives[-1]}"
        untaped = " and ".join(off)
        options = ", ".join([f"{one}={one}" for one in names[len(op.inputs) :]])
        given = ", ".join(natives + ([options] if options else []))
        # Of one tensor, what is to be recorded is written out too.
        tapes = not others and bool(op.grads) and not op.traits
        taped = [
            "                if node is not None and mode.enabled:",
            "                    edge, made.node = node, new(Node)",
            "                    node = made.node",
            f"                    node.op, node.edges, node.saved = op, (edge,), {f'({first},)' if op.keeps_inputs else '()'}",
            f"                    node.options, node.extra = dict({options}), None",
            "                    node.shape, node.dtype, node.order = native.shape, dtype, next_order()",
            "                    made.version = node.version = Version()" if op.keeps_out else "",
            "                    node.out = native" if op.keeps_out else "",
        ]
        lines += [
            f"    if type({first}) is Tensor and {first}.dtype in quick{f' and {usual}' if usual else ''}:",
            f"        dtype, device, node = {first}.dtype, {first}.device, {first}.node",
            f"        if {' and '.join([*alike, f'({untaped} or not mode.enabled' + (' or mode.plain)' if tapes else ')')])}:",
            "            kernel = device.kernels[name]",
            "            try:",
            f"                native = kernel({given}) if kernel else None",
            "            except Exception:",  # ``run`` finds what is wrong once more, a lack of memory too, and says it
            "                native = None",
            "            if type(native) is device.array:",
            "                made = new(Tensor)",
            "                made.native, made.dtype, made.device = native, dtype, device",
            "                made.node = made.version = made.trail = None",
            *(taped if tapes else []),
            "                return made",
        ]
    lines += _explaining(function, title, f"run({passed})", scope)
    call = _written(function, title, parameters, scope, lines, [])
    call.__name__ = call.__qualname__ = title
    scope["placed"] = placed_way(call, title, store)
    if "inplace" in parameters:
        scope["over"] = inplace(f"{title}_", call)
    return call


def parameters_of(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Each parameter's name, whether it is keyword-only, and its default if it has one; inspect is slow to import."""
    code = function.__code__
    names, first = code.co_varnames, code.co_argcount
    found: dict[str, tuple[Any, ...]] = dict.fromkeys(names[:first], (False,))
    defaults = function.__defaults__ or ()
    for one, default in zip(names[first - len(defaults) : first], defaults, strict=True):
        found[one] = (False, default)
    for one in names[first : first + code.co_kwonlyargcount]:
        found[one] = (True, *([function.__kwdefaults__[one]] if one in (function.__kwdefaults__ or {}) else []))
    return found


def _looks(function: Callable[..., Any], title: str) -> list[str]:
    """The lines that look at the parameters annotated ``bool``, or ``bool | None``."""
    lines = []
    for one, kind in function.__annotations__.items():
        if kind not in ("bool", "bool | None") or one == "return" or _BY_TRUTH & {one, f"{title}.{one}"}:
            continue
        others = [f"{one} is not {value}" for value in ("False", "True", *(["None"] if kind != "bool" else []))]
        lines.append(f"    if {' and '.join(others)}: raise not_bool({title!r}, {one!r}, {one})")
    return lines


def _explaining(
    function: Callable[..., Any], title: str, call: str, scope: dict[str, Any], first: str = ""
) -> list[str]:
    """The lines that make a call, and look at its numbers and tensors where it ends in an error of Python's or NumPy's own.

    Args:
        first: a line before the call.

    Nothing is looked at before: a ``try`` that nothing is raised in costs nothing.
    """
    kinds = {one: kind for one, kind in function.__annotations__.items() if kind in _KINDS and one != "return"}
    if not kinds:
        return [*([f"    {first}"] if first else []), f"    return {call}"]
    scope["explain"] = functools.partial(_explain, title, kinds)
    return [
        "    try:",
        *([f"        {first}"] if first else []),
        f"        return {call}",
        "    except Exception as error:",
        f"        explain(error, {', '.join(kinds)})",
        "        raise",
    ]


def _explain(title: str, kinds: dict[str, str], error: Exception, *given: Any) -> None:
    """Raise for the first argument that is not what its annotation says, in the place of an error that shows what is within."""
    if isinstance(error, TensorcoreError):
        return
    for (name, kind), value in zip(kinds.items(), given, strict=True):
        wanted, slots = _KINDS[kind]
        if not (value is None and "None" in kind) and not any([hasattr(value, one) for one in slots]):
            raise ArgumentTypeError(f"{title}: expected {name} to be {wanted}, got {value!r}; pass one") from None


def _renamed(
    function: Callable[..., Any], title: str, parameters: Any, numpy: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call with NumPy's names under their own ones."""
    for theirs, ours in _NUMPY:
        if theirs in numpy and ours in given:
            if given[ours] is not parameters[ours][-1]:
                raise ArgumentTypeError(f"{title}: expected {ours} once, got {theirs} too; leave out {theirs}")
            given[ours] = numpy.pop(theirs)
    if numpy or _absent in given.values():  # which the function itself has to say
        function(**{one: value for one, value in given.items() if value is not _absent}, **numpy)
    return given


def _stars(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Its parameter of any number of positions, as it is written, and that of any keywords; empty lists for none."""
    code = function.__code__
    names = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    sized = [f"*{names.pop(0)}"] if code.co_flags & _SIZED else []
    return sized, [f"**{names[0]}"] if code.co_flags & _NAMED else []


def _written(
    function: Callable[..., Any], title: str, parameters: Any, scope: dict[str, Any], lines: list[str], named: list[str]
) -> Any:
    """The function ``call`` of these parameters and lines, which passes for the function that it stands before."""
    heads, star = [], _stars(function)[0] or ["*"]
    for one, (keyword_only, *default) in parameters.items():
        if keyword_only and star:
            heads.append(star.pop())
        if default:
            scope[f"default_{one}"] = default[0]
        heads.append(f"{one}=default_{one}" if default else one)
    heads += [*[one for one in star if one != "*"], *named]
    exec(compile("\n".join([f"def call({', '.join(heads)}):", *lines]), f"<call of {title}>", "exec"), scope)
    call = functools.update_wrapper(scope["call"], function)
    call.__code__ = call.__code__.replace(co_name=call.__name__)  # accounts of lazy tensors say what was called
    return call
