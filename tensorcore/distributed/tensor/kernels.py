"""How each kernel runs on a mesh: its dims get labels, one label for each dim of the mesh is shared out, the rest is whole.

A label stands for dims that go together: those of an elementwise call that are aligned, the inner dim of a product.
What carries the label is sharded there, what does not is replicated, and where the label is summed over the result is
a part of a sum. Of the labels that fit, the one is taken that sends the fewest bytes. A kernel without labels runs on
whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from tensorcore.backend.base import Kernel
from tensorcore.backend.kernels import OPTIONAL, RULES
from tensorcore.backend.shapes import VIEWS
from tensorcore.distributed.tensor.arrays import MeshArray
from tensorcore.distributed.tensor.labels import LABELS, Labels
from tensorcore.distributed.tensor.moving import cost_of
from tensorcore.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, shard_size
from tensorcore.errors import UsageError

if TYPE_CHECKING:
    from tensorcore.distributed.tensor.mesh import MeshBackend

__all__ = ["mesh_kernel"]

Shape = tuple[int, ...]
_R = Replicate()
# Kernels that a part of a sum goes through as any tensor does.
_LINEAR = frozenset(
    ["neg", "clone", "contiguous", "positive", "permute", "expand", "view", "unsqueeze", "index", "unindex"]
)
_SUMS = frozenset(["add", "sub"])
_PRODUCTS = frozenset(["mul", "matmul", "matmul_nt", "matmul_tn", "div"])


def mesh_kernel(backend: MeshBackend, name: str) -> Kernel | None:
    """The kernel of that name on a mesh, None where the wrapped device has none or ops should decompose it."""
    kernel = backend.inner.kernels[name]
    if not kernel:
        return None
    if name in _OWN:
        return _OWN[name](backend, kernel)
    rule = LABELS.get(name)
    if rule is not None:
        return _labelled(backend, name, kernel, rule)
    return None if name in OPTIONAL else _replicated(backend, name, kernel)


def _labelled(backend: MeshBackend, name: str, kernel: Kernel, rule: Callable[..., Labels | None]) -> Kernel:
    slow = _replicated(backend, name, kernel)
    shape_of = _result_shapes(name)

    def call(*natives: Any, out: Any = None, **options: Any) -> Any:
        given = list(natives[0]) if type(natives[0]) is list else list(natives)
        arrays = [backend.take(one) if hasattr(one, "shape") else None for one in given]
        labels = rule([None if one is None else one.shape for one in arrays], options)
        if labels is None or any(hasattr(one, "shape") for one in options.values()):
            return slow(*natives, out=out, **options)
        places, results = _choose(backend, name, given, arrays, labels)
        local = [
            one if array is None else backend.move(array, place).local
            for one, array, place in zip(given, arrays, places, strict=True)
        ]
        whole = shape_of(natives, options)
        if "shape" in options:
            options = {**options, "shape": backend.local_shape(whole[0], results[0])}
        if any(labels.once) and any(one.is_partial() for one in results[0]):
            local = _only_once(backend, local, labels, results[0])
        made = kernel(local, **options) if type(natives[0]) is list else kernel(*local, **options)
        if made is None:  # a view that only a copy could be
            return None
        several = type(made) in (tuple, list)
        found = tuple(
            one if one is None or not hasattr(one, "shape") else MeshArray(tuple(shape), place, one)
            for one, shape, place in zip(made if several else [made], whole, results, strict=True)
        )
        if name in VIEWS and arrays[0] is not None:
            found[0].copied = arrays[0].copied or arrays[0].placements != places[0]
        if out is not None:
            return _stored(backend, out, found[0])
        return found if several else found[0]

    return call


def _choose(
    backend: MeshBackend, name: str, given: list[Any], arrays: list[MeshArray | None], labels: Labels
) -> tuple[list[tuple[Placement, ...]], list[tuple[Placement, ...]]]:
    """For each argument and each result its placements."""
    mesh = backend.mesh
    places: list[list[Placement]] = [[] for _ in arrays]
    results: list[list[Placement]] = [[] for _ in labels.outs]
    sizes: dict[Any, int] = {}
    for array, names in zip(arrays, labels.ins, strict=True):
        if array is not None:
            sizes.update({label: array.shape[i] for i, label in enumerate(names) if label is not None})
    for dim, parts in enumerate(mesh.shape):
        have = [None if one is None else one.placements[dim] for one in arrays]
        kept = _kept_sum(name, given, have, labels)
        if kept is not None:
            one, carriers = kept
            for i, place in enumerate(places):
                place.append(one if i in carriers else _R)
            for place in results:
                place.append(one)
            continue
        candidates: list[Any] = [None]
        for one, names in zip(have, labels.ins, strict=True):
            if isinstance(one, Shard) and names[one.dim] is not None and names[one.dim] not in candidates:
                candidates.append(names[one.dim])
        best = min(candidates, key=lambda label: _cost(arrays, have, labels, label, parts, sizes))
        if best is not None and not _divisible(labels, best, sizes, parts):
            best = None
        for place, names in zip(places, labels.ins, strict=True):
            place.append(Shard(names.index(best)) if best is not None and best in names else _R)
        for place, names in zip(results, labels.outs, strict=True):
            if best is not None and best in names:
                place.append(Shard(names.index(best)))
            else:
                place.append(Partial(labels.sums[best]) if best in labels.sums else _R)
        if best is not None:
            sizes[best] = shard_size(sizes[best], parts, mesh.get_local_rank(dim))[1]
    return [tuple(one) for one in places], [tuple(one) for one in results]


def _cost(arrays: Any, have: Any, labels: Labels, label: Any, parts: int, sizes: dict[Any, int]) -> float:
    if label is not None and not _divisible(labels, label, sizes, parts):
        return float("inf")
    total = 0.0
    for array, one, names in zip(arrays, have, labels.ins, strict=True):
        if array is not None:
            want = Shard(names.index(label)) if label is not None and label in names else _R
            total += cost_of(array.nbytes, parts, one, want)
    return total


def _divisible(labels: Labels, label: Any, sizes: dict[Any, int], parts: int) -> bool:
    """Whether the ranks' parts of a label may be of several sizes, or are all of one."""
    return sizes[label] % parts == 0 or (label not in labels.even and labels.sums.get(label) != "avg")


def _kept_sum(name: str, given: list[Any], have: list[Any], labels: Labels) -> tuple[Partial, set[int]] | None:
    """The sum that the arguments are parts of and the result is one of too, and which of them are."""
    carriers = {i for i, one in enumerate(have) if isinstance(one, Partial)}
    if not carriers:
        return None
    one = have[min(carriers)]
    arrays = {i for i, each in enumerate(have) if each is not None}
    if one.reduce_op not in ("sum", "avg"):
        return (one, carriers) if name in _LINEAR - {"neg"} and carriers == arrays else None
    if name in _LINEAR or (name == "sum" and one.reduce_op == "sum"):
        return one, carriers
    if name in _SUMS and all(have[i] == one for i in arrays) and len(arrays) == len(given):
        return one, carriers
    others = [have[i] for i in arrays - carriers]
    if name in _PRODUCTS and len(carriers) == 1 and all(each.is_replicate() for each in others):
        return (one, carriers) if name != "div" or 0 in carriers else None
    return None


def _only_once(backend: MeshBackend, local: list[Any], labels: Labels, result: tuple[Placement, ...]) -> list[Any]:
    """Leave out, on all ranks but one, what is added to a sum that the ranks have parts of."""
    mine = backend.mesh.get_coordinate()
    first = all(mine[i] == 0 for i, one in enumerate(result) if one.is_partial())
    return [None if once and not first else one for one, once in zip(local, labels.once, strict=True)]


def _replicated(backend: MeshBackend, name: str, kernel: Kernel) -> Kernel:
    """On whole arrays, on every rank."""

    def whole(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)([whole(one) for one in value])
        return backend.whole(value) if type(value) is MeshArray else value

    def made(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)([made(one) for one in value])
        return backend.make(value) if hasattr(value, "shape") and hasattr(value, "dtype") else value

    def call(*natives: Any, out: Any = None, **options: Any) -> Any:
        found = made(kernel(*whole(natives), **{key: whole(one) for key, one in options.items()}))
        if name in VIEWS and found is not None:
            found.copied = natives[0].copied or natives[0].placements != backend.everywhere
        return found if out is None else _stored(backend, out, found)

    return call


def _stored(backend: MeshBackend, target: MeshArray, source: MeshArray) -> MeshArray:
    """Write values to where others may see them."""
    if target.copied:
        raise UsageError(
            "DTensor: expected memory that is shared with the tensor it is a view of, got a copy, since its ranks have other "
            "parts of it than the view has; write to the whole tensor, or redistribute it first"
        )
    if source.shape != target.shape:
        source = backend.kernels["expand"](source, shape=target.shape)
    backend.inner.kernels["copy"](target.local, backend.move(source, target.placements).local)
    return target


def _result_shapes(name: str) -> Callable[[Any, Any], list[Shape]]:
    """The shapes of the whole results."""
    view, rule = VIEWS.get(name), RULES.get(name)

    def shape_of(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)([shape_of(one) for one in value])
        return tuple(value.shape) if hasattr(value, "shape") else value

    def find(natives: Any, options: Any) -> list[Shape]:
        if view is not None:
            x = natives[0]
            if name == "view":
                return [tuple(options["shape"])]
            place = view.place(x.shape, (1,) * len(x.shape), 0, **options)
            assert place is not None
            return [tuple(place[0])]
        assert rule is not None
        made = rule.shape(*shape_of(natives), **options)
        return list(made) if type(made) is list else [made]

    return find


# Kernels with a way of their own


def _copy(backend: MeshBackend, kernel: Kernel) -> Kernel:
    def call(target: MeshArray, source: Any) -> MeshArray:
        if not hasattr(source, "shape"):
            return backend.kernels["fill"](target, source)  # type: ignore[no-any-return]
        return _stored(backend, target, backend.take(source))

    return call


def _fill(backend: MeshBackend, kernel: Kernel) -> Kernel:
    def call(target: MeshArray, value: Any) -> MeshArray:
        if hasattr(value, "shape"):
            return _stored(backend, target, backend.take(value))
        if target.copied or any(one.is_partial() for one in target.placements):
            full = backend.inner.kernels["clone"](backend.whole(target))
            return _stored(backend, target, backend.make(kernel(full, value)))
        kernel(target.local, value)
        return target

    return call


def _embedding(backend: MeshBackend, kernel: Kernel) -> Kernel:
    """A table whose rows are shared out: each rank looks up those that it has, and the sum over the ranks is all."""
    plain = _labelled(backend, "embedding", kernel, LABELS["embedding"])

    def call(weight: MeshArray, indices: Any, **options: Any) -> Any:
        indices = backend.take(indices)
        rows = [i for i, one in enumerate(weight.placements) if one.is_shard(0)]
        if len(rows) != 1 or any(not one.is_replicate() for one in indices.placements):
            return plain(weight, indices, **options)
        dim, mesh, k = rows[0], backend.mesh, backend.inner.kernels
        start, length = shard_size(weight.shape[0], mesh.size(dim), mesh.get_local_rank(dim))
        if not length:
            return plain(weight, indices, **options)
        at = k["sub"](indices.local, start)
        outside = k["logical_or"](k["lt"](at, 0), k["ge"](at, length))
        found = kernel(weight.local, k["masked_fill"](at, outside, 0), **options)
        mask = k["unsqueeze"](outside, dim=len(indices.shape))
        found = k["masked_fill"](found, mask, 0.0)
        place = tuple(
            Partial() if i == dim else Shard(len(indices.shape)) if one.is_shard(1) else _R
            for i, one in enumerate(weight.placements)
        )
        return MeshArray((*indices.shape, weight.shape[1]), place, found)

    return call


def _norm(backend: MeshBackend, kernel: Kernel) -> Kernel:
    """The norm of all elements: of those of the ranks' norms, without bringing the elements together."""
    plain = _labelled(backend, "norm", kernel, LABELS["norm"])

    def call(x: MeshArray, *, p: float, dim: Any = None, keepdim: bool = False) -> Any:
        shared = [one.is_shard() for one in x.placements]
        everything = dim is None or len(set(dim)) == len(x.shape)
        if not (everything and any(shared) and 0 < p < inf) or any(one.is_partial() for one in x.placements):
            return plain(x, p=p, dim=dim, keepdim=keepdim)
        k = backend.inner.kernels
        mine = kernel(x.local, p=p, dim=dim, keepdim=keepdim)
        place = tuple(Partial() if one else _R for one in shared)
        total = backend.move(backend.make(k["pow"](mine, float(p)), placements=place), backend.everywhere)
        return backend.make(backend.inner.as_native(k["pow"](total.local, 1.0 / p)))

    return call


def _stepping(backend: MeshBackend, kernel: Kernel) -> Kernel:
    """A step of an optimizer, element by element: gradients and states go to where the parameters' parts are."""

    def call(params: list[MeshArray], *others: list[MeshArray] | None, **options: Any) -> Any:
        if any(one.copied or any(place.is_partial() for place in one.placements) for one in params):
            raise UsageError(
                "optimizer: expected parameters that lie in whole or in shards, got a part of a sum; redistribute it"
            )
        for state in others[1:]:
            for one, param in zip(state or (), params, strict=False):
                held = backend.move(one, param.placements)
                one.local, one.placements = held.local, held.placements
        beside = [
            None
            if some is None
            else [backend.move(one, param.placements).local for one, param in zip(some, params, strict=True)]
            for some in others
        ]
        return kernel([one.local for one in params], *beside, **options)

    return call


_OWN: dict[str, Callable[[MeshBackend, Kernel], Kernel]] = {
    "copy": _copy, "fill": _fill, "embedding": _embedding, "norm": _norm, "sgd_step": _stepping, "adam_step": _stepping,
}  # fmt: skip
