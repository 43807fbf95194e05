"""The labels of each kernel's dims, by kind: which dims of arguments and results go together, and which are summed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from tensorcore.backend.kernels import POINTWISE

__all__ = ["LABELS", "Labels", "elementwise"]

Shape = tuple[int, ...]
Names = tuple[Any, ...]  # one label for each dim, None for a dim that is never shared out


class Labels(NamedTuple):
    """The dims of one call.

    Attributes:
        ins: the labels of each argument, empty for what is no array.
        outs: the labels of each result.
        sums: by what the ranks' results are combined where a label is shared out that no result has.
        even: labels that are shared out only where all ranks get as much.
        once: which arguments only one rank may add where results are parts of a sum.
    """

    ins: Sequence[Names]
    outs: Sequence[Names]
    sums: Mapping[Any, str] = {}
    even: frozenset[Any] = frozenset()
    once: Sequence[bool] = ()


Rule = Callable[[list[Any], dict[str, Any]], "Labels | None"]


def elementwise(given: list[Any], options: dict[str, Any]) -> Labels:
    """Dims aligned from the last one on; those of size 1 that are stretched are whole."""
    known = [one for one in given if one is not None]
    ndim = max(map(len, known))
    sizes = [max((one[i - ndim + len(one)] for one in known if i >= ndim - len(one)), default=1) for i in range(ndim)]
    for one in known:  # an empty dim is never stretched
        for i, size in enumerate(one):
            if size == 0:
                sizes[i + ndim - len(one)] = 0
    ins = [() if one is None else _aligned(one, sizes) for one in given]
    return Labels(ins, [tuple(range(ndim))])


def _aligned(shape: Shape, sizes: list[int]) -> Names:
    skipped = len(sizes) - len(shape)
    return tuple([i + skipped if size == sizes[i + skipped] else None for i, size in enumerate(shape)])


def _reduced(kind: str | None, results: int = 1) -> Rule:
    """Over some dims; ``kind`` says what the results over parts of them are combined by, None where nothing does."""

    def rule(given: list[Any], options: dict[str, Any]) -> Labels | None:
        if len(given) != 1:
            return None
        shape, dim = given[0], options.get("dim")
        dims = range(len(shape)) if dim is None else (dim,) if isinstance(dim, int) else dim
        dims = {one % max(len(shape), 1) for one in dims}
        if options.get("keepdim"):
            left: list[Any] = [None if i in dims else i for i in range(len(shape))]
        else:
            left = [i for i in range(len(shape)) if i not in dims]
        sums = {} if kind is None else dict.fromkeys(dims, kind)
        own = tuple([i if i not in dims or kind is not None else None for i in range(len(shape))])
        # An empty part has no smallest element.
        even = frozenset(dims) if kind in ("min", "max") else frozenset()
        return Labels([own], [tuple(left)] * results, sums, even)

    return rule


def _along(*names: str, results: int = 1) -> Rule:
    """Along one dim or several, which are whole; all arrays and results have the first one's shape or its labels."""

    def rule(given: list[Any], options: dict[str, Any]) -> Labels | None:
        shape = given[0]
        if not shape or any(one is not None and len(one) != len(shape) for one in given):
            return None
        found = next((options[name] for name in names if options.get(name) is not None), None)
        if found is None:
            return None
        dims = {one % len(shape) for one in ((found,) if isinstance(found, int) else found)}
        labels = tuple([None if i in dims else i for i in range(len(shape))])
        ins = []
        for one in given:
            if one is None:
                ins.append(())
            elif any(a != b for i, (a, b) in enumerate(zip(one, shape, strict=True)) if i not in dims):
                return None
            else:
                ins.append(labels)
        return Labels(ins, [labels] * results)

    return rule


def _matmul(turn_left: bool, turn_right: bool) -> Rule:
    def rule(given: list[Any], options: dict[str, Any]) -> Labels | None:
        if len(given) != 2:
            return None
        a, b = given
        left: list[Any] = ["k"] if len(a) == 1 else ["k", "m"] if turn_left else ["m", "k"]
        right: list[Any] = ["k"] if len(b) == 1 else ["n", "k"] if turn_right else ["k", "n"]
        batch = max(len(a), len(b), 2) - 2
        sizes = [
            max([one[i - batch + len(one) - 2] for one in (a, b) if len(one) > 2 and i >= batch - len(one) + 2] or [1])
            for i in range(batch)
        ]

        def lead(shape: Shape) -> list[Any]:
            own = shape[:-2]
            return [
                ("b", i + batch - len(own)) if size == sizes[i + batch - len(own)] else None
                for i, size in enumerate(own)
            ]

        out = [("b", i) for i in range(batch)] + ["m"] * (len(a) > 1) + ["n"] * (len(b) > 1)
        return Labels([(*lead(a), *left), (*lead(b), *right)], [tuple(out)], {"k": "sum"})

    return rule


def _linear(given: list[Any], options: dict[str, Any]) -> Labels | None:
    x, weight, *bias = given
    lead = tuple([("b", i) for i in range(len(x) - 1)])
    out = ("n",) if len(weight) == 2 else ()
    ins: list[Names] = [(*lead, "k"), (*out, "k")]
    once = [False, False]
    for one in bias:
        ins.append(() if one is None else out if len(one) else ())
        once.append(one is not None)
    return Labels(ins, [(*lead, *out)], {"k": "sum"}, once=once)


def _permute(given: list[Any], options: dict[str, Any]) -> Labels:
    own = tuple(range(len(given[0])))
    return Labels([own], [tuple([own[i] for i in options["dims"]])])


def _unsqueeze(given: list[Any], options: dict[str, Any]) -> Labels:
    own, dim = tuple(range(len(given[0]))), options["dim"]
    return Labels([own], [(*own[:dim], None, *own[dim:])])


def _expand(given: list[Any], options: dict[str, Any]) -> Labels:
    shape, to = given[0], options["shape"]
    skipped = len(to) - len(shape)
    own = tuple([i if size == to[i + skipped] else None for i, size in enumerate(shape)])
    return Labels([own], [(*[None] * skipped, *own)])


def _view(given: list[Any], options: dict[str, Any]) -> Labels:
    """Dims that are split or joined keep the first of them, as long as that can be shared out evenly on both sides."""
    have, want = given[0], options["shape"]
    own: list[Any] = [None] * len(have)
    made: list[Any] = [None] * len(want)
    even = set()
    i = j = label = 0
    while i < len(have) and j < len(want) and prod(have):
        first, other = (i, j)
        a, b = have[i], want[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a *= have[i]
                i += 1
            else:
                b *= want[j]
                j += 1
        # Of the dims of one group the first that is not 1 is the outermost in memory.
        while first < i - 1 and have[first] == 1:
            first += 1
        while other < j - 1 and want[other] == 1:
            other += 1
        if have[first] == want[other]:
            own[first] = made[other] = label
            if i - first > 1 or j - other > 1:
                even.add(label)
        else:
            own[first] = made[other] = label
            even.add(label)
        label += 1
    return Labels([tuple(own)], [tuple(made)], even=frozenset(even))


def _index(given: list[Any], options: dict[str, Any]) -> Labels:
    shape, key = given[0], options["key"]
    own: list[Any] = []
    out: list[Any] = []
    for i, size in enumerate(shape):
        one = key[i] if i < len(key) else slice(None)
        whole = isinstance(one, slice) and one.indices(size) == (0, size, 1)
        own.append(i if whole else None)
        if isinstance(one, slice):
            out.append(i if whole else None)
    return Labels([tuple(own)], [tuple(out)])


def _unindex(given: list[Any], options: dict[str, Any]) -> Labels:
    found = _index([tuple(options["shape"])], options)
    return Labels([found.outs[0]], [found.ins[0]])


def _cat(given: list[Any], options: dict[str, Any]) -> Labels | None:
    ndim, dim = len(options["shape"]), options["dim"]
    if any(len(one) != ndim for one in given):
        return None
    names = tuple([None if i == dim else i for i in range(ndim)])
    return Labels([names] * len(given), [names])


def _stack(given: list[Any], options: dict[str, Any]) -> Labels:
    own, dim = tuple(range(len(given[0]))), options["dim"]
    return Labels([own] * len(given), [(*own[:dim], None, *own[dim:])])


def _embedding(given: list[Any], options: dict[str, Any]) -> Labels:
    own = tuple([("i", i) for i in range(len(given[1]))])
    return Labels([(None, "d"), own], [(*own, "d")])


def _embedding_gradient(given: list[Any], options: dict[str, Any]) -> Labels | None:
    own = tuple([("i", i) for i in range(len(given[1]))])
    if options.get("by_count") or len(given[0]) != len(own) + 1:
        return None
    return Labels([(*own, "d"), own], [(None, "d")], dict.fromkeys(own, "sum"))


def _conv(given: list[Any], options: dict[str, Any]) -> Labels:
    space = (None,) * (len(given[0]) - 2)
    return Labels([("n", None, *space), (None, None, *space), (None,) if given[2] else ()], [("n", None, *space)])


def _conv_input_gradient(given: list[Any], options: dict[str, Any]) -> Labels:
    space = (None,) * (len(given[0]) - 2)
    return Labels([("n", None, *space), (None, None, *space)], [("n", None, *space)])


def _conv_weight_gradient(given: list[Any], options: dict[str, Any]) -> Labels:
    space = (None,) * (len(given[0]) - 2)
    return Labels([("n", None, *space), ("n", None, *space)], [(None, None, *space)], {"n": "sum"})


def _samples(given: list[Any], options: dict[str, Any]) -> Labels:
    """Pools: samples and channels by themselves."""
    names = ("n", "c", *[None] * (len(given[0]) - 2))
    return Labels([names] * len(given), [names])


LABELS: dict[str, Rule] = {
    **dict.fromkeys((*POINTWISE, "clone", "contiguous", "masked_fill"), elementwise),
    "sum": _reduced("sum"),
    "mean": _reduced("avg"),
    "prod": _reduced("product"),
    "amax": _reduced("max"),
    "amin": _reduced("min"),
    "any": _reduced("sum"),
    "all": _reduced("product"),
    "count_nonzero": _reduced("sum"),
    "nansum": _reduced("sum"),
    **dict.fromkeys(("logsumexp", "norm", "var", "argmax", "argmin"), _reduced(None)),
    "var_mean": _reduced(None, 2),
    **dict.fromkeys(("max_dim", "min_dim", "median_dim", "kthvalue", "mode_dim"), _reduced(None, 2)),
    **dict.fromkeys(("softmax", "log_softmax", "softmax_backward", "log_softmax_backward", "cumsum", "cumprod", "cumsum_back",
                     "logcumsumexp", "flip", "roll", "gather", "pick"), _along("dim", "dims")),
    **dict.fromkeys(("sort", "topk", "cummax", "cummin"), _along("dim", results=2)),
    "matmul": _matmul(False, False),
    "matmul_nt": _matmul(False, True),
    "matmul_tn": _matmul(True, False),
    "linear": _linear,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "expand": _expand,
    "view": _view,
    "index": _index,
    "unindex": _unindex,
    "cat": _cat,
    "stack": _stack,
    "embedding": _embedding,
    "embedding_gradient": _embedding_gradient,
    "conv": _conv,
    "conv_input_gradient": _conv_input_gradient,
    "conv_weight_gradient": _conv_weight_gradient,
    **dict.fromkeys(("max_pool", "avg_pool", "max_pool_gradient"), _samples),
}  # fmt: skip
