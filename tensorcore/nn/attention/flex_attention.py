"""Attention whose scores a function of the program's own changes or masks: ``torch.nn.attention.flex_attention``.

The functions take scalar tensors and are mapped over batch, heads, rows and columns, as in "Flex Attention: A Programming
Model for Generating Optimized Attention Kernels", Dong et al., arXiv:2412.05496.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import inf, prod, sqrt
from typing import Any, NamedTuple

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.func import vmap
from tensorcore.ops.creation.create import arange, zeros
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.shapes.pad import pad
from tensorcore.tensor import Tensor

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` gives beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with an :class:`AuxRequest`, (batch, heads, rows) each; None where it was not."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None,
                   block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: Any = None, *,
                   return_aux: AuxRequest | None = None) -> Any:  # fmt: skip
    """Attention with ``score_mod(score, batch, head, row, column)`` in the place of each score.

    Args:
        query: (batch, heads, rows, features).
        key: (batch, heads, columns, features).
        value: (batch, heads, columns, values). The result is (batch, heads, rows, values).
        score_mod: is given scalar tensors and answers one; it may index tensors of the program's with them.
        block_mask: which columns a row may look at; what lies in a block it does not name is not looked at.
        scale: 1 / sqrt(features) if None.
        enable_gqa: key and value may have fewer heads, each for as many heads of the query in a row.
        return_lse: give the logarithm of each row's sum of exponentials too, (batch, heads, rows).
        kernel_options: for PyTorch's GPU kernels; not read.
        return_aux: give an :class:`AuxOutput` of what it names too.

    A row that may look nowhere gives zeros. Scores are computed in single precision, or double of doubles; gradients
    flow to query, key, value and what ``score_mod`` uses.
    """
    _check(query, key, value, block_mask, enable_gqa, return_lse and return_aux is not None)
    dtype = query.dtype
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    (batch, heads, rows, features), columns = query.shape, key.shape[-2]
    k, v = (one.repeat_interleave(heads // one.shape[1], 1).expand(batch, *(-1,) * 3) for one in (key, value))
    scores = query.to(wide) @ k.to(wide).transpose(-2, -1) * (1.0 / sqrt(features) if scale is None else scale)
    if score_mod is not None:
        scores = _mapped(score_mod, (0,))(scores, *_places((batch, heads, rows, columns), query.device)).to(wide)
    if block_mask is not None:
        scores = where(block_mask._allowed(), scores, -inf)
    top = scores.detach().amax(-1, True)
    powers = (scores - where(top == -inf, 0.0, top)).exp()
    sums = powers.sum(-1, True)
    made = (powers / where(sums == 0, 1.0, sums)).to(dtype) @ v.to(dtype)
    if not return_lse and return_aux is None:
        return made
    lse = scores.logsumexp(-1)
    if return_aux is None:
        return made, lse
    return made, AuxOutput(lse if return_aux.lse else None, top.squeeze(-1) if return_aux.max_scores else None)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that lets every row look everywhere."""
    return batch.new_ones((), dtype=dtypes.bool_)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The mask of what all of ``mask_mods`` allow."""
    _check_callable("and_masks", mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=dtypes.bool_)
        for one in mask_mods:
            result = result & one(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """The mask of what any of ``mask_mods`` allows."""
    _check_callable("or_masks", mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=dtypes.bool_)
        for one in mask_mods:
            result = result | one(b, h, q_idx, kv_idx)
        return result

    return or_mask


def create_mask(mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = None) -> Tensor:  # fmt: skip
    """The bools (B, H, Q_LEN, KV_LEN) that a mask of four arguments answers, or where a score of five is not -inf."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    at = _places(sizes, device)
    if _positional(mod_fn) == 5:
        return _mapped(mod_fn, (0,))(zeros(sizes, device=device), *at) != -inf
    return _mapped(mod_fn, ())(*at)


def create_block_mask(mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: Any = None, BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
                      separate_full_blocks: bool = True) -> BlockMask:  # fmt: skip
    """The :class:`BlockMask` of ``mask_mod(batch, head, row, column)``, a bool each; None for B or H means all alike."""
    if _positional(mask_mod) != 4:
        raise AssertionError(
            f"create_block_mask: requires a mask_mod function of four arguments, got {mask_mod}; pass a score_mod to "
            f"flex_attention"
        )
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    b, h, rows, columns = mask.shape
    counts = mask.view(b, h, rows // size[0], size[0], columns // size[1], size[1]).sum(dim=[-3, -1])
    whole = counts == prod(size)
    full = _ordered(whole) if separate_full_blocks else (None, None)
    part = (counts > 0) & ~whole if separate_full_blocks else counts > 0
    return BlockMask.from_kv_blocks(*_ordered(part), *full, size, mask_mod, (Q_LEN, KV_LEN))


class BlockMask:
    """Which blocks of columns each block of rows looks at, wholly or as ``mask_mod`` says; see :func:`create_block_mask`.

    Args:
        seq_lengths: how many rows and columns.
        kv_num_blocks: (B, H, row blocks), int32: how many blocks of columns ``mask_mod`` decides about.
        kv_indices: (B, H, row blocks, column blocks), int32: which, in front of the others.
        full_kv_num_blocks, full_kv_indices: the same of those that are looked at wholly.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same the other way round.
        BLOCK_SIZE: rows and columns of a block.
        mask_mod: takes batch, head, row and column, and answers a bool.
    """

    def __init__(self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
                 full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
                 q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
                 BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
                 mask_mod: Callable[..., Any] = noop_mask) -> None:  # fmt: skip
        if kv_indices.dim() < 2:
            raise UsageError(
                f"BlockMask must have at least 2 dimensions, got kv_indices of {kv_indices.dim()}; unsqueeze it"
            )
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
                       full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
                       mask_mod: Callable[..., Any] | None = None, seq_lengths: tuple[int, int] | None = None,
                       compute_q_blocks: bool = True) -> BlockMask:  # fmt: skip
        """The mask of what row blocks look at; the lengths are whole blocks where ``seq_lengths`` is None."""
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "BlockMask: full_kv_num_blocks and full_kv_indices must be both provided or omitted, got one; pass both"
            )
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        turned: tuple[Any, ...] = (None,) * 4
        if compute_q_blocks:
            turned = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            full = None if full_kv_indices is None else _dense(full_kv_num_blocks, full_kv_indices)
            turned += (None, None) if full is None else _ordered(full.transpose(-2, -1))
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *turned, size,
                   noop_mask if mask_mod is None else mask_mod)  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch and heads as given, rows, columns."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are, looked at or not."""
        return prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of scores that lie in blocks nobody looks at."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """1 for each block that is looked at, (B, H, row blocks, column blocks), int32."""
        made = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_indices is not None:
            made = made | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return made.to(dtypes.int32)

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on ``device``."""
        moved = [one if one is None else one.to(device) for one in self._tensors()]
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def __repr__(self) -> str:
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
                 "full_q_num_blocks", "full_q_indices")  # fmt: skip
        lines = [
            f"    {name}={None if one is None else one.shape},\n"
            for name, one in zip(names, self._tensors(), strict=True)
        ]
        return (
            f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )

    def _tensors(self) -> tuple[Any, ...]:
        return (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks,
                self.q_indices, self.full_q_num_blocks, self.full_q_indices)  # fmt: skip

    def _allowed(self) -> Tensor:
        """The bools of all scores."""
        rows, columns = self.seq_lengths
        sizes = (*self.kv_indices.shape[:-2], rows, columns)
        made = _mapped(self.mask_mod, ())(*_places(sizes, self.kv_indices.device))
        made = made & self._each(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_indices is not None:
            made = made | self._each(self.full_kv_num_blocks, self.full_kv_indices)
        return made

    def _each(self, counts: Any, indices: Tensor) -> Tensor:
        rows, columns = self.seq_lengths
        blocks = _dense(counts, indices)
        return blocks.repeat_interleave(self.BLOCK_SIZE[0], -2).repeat_interleave(self.BLOCK_SIZE[1], -1)[
            ..., :rows, :columns
        ]


def _mapped(function: Callable[..., Any], front: tuple[int, ...]) -> Callable[..., Any]:
    """``function`` of scalars over four dims, whose places come as four vectors after what ``front`` names."""
    for i in (3, 2, 1, 0):
        dims = (*front, *[0 if j == i else None for j in range(4)])
        function = vmap(function, in_dims=dims, out_dims=0)
    return function


def _places(sizes: Any, device: Any) -> list[Tensor]:
    return [arange(size, device=device) for size in sizes]


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are marked, and the columns, marked ones first."""
    marked = blocks.to(dtypes.int32)
    order = marked.argsort(dim=-1, descending=True, stable=True)
    return marked.sum(-1).to(dtypes.int32), order.to(dtypes.int32)


def _dense(counts: Any, indices: Tensor) -> Tensor:
    """The other way round: bools, from how many columns are marked and which."""
    first = arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    return first.new_zeros(indices.shape).scatter_(-1, indices.to(dtypes.int64), first)


def _positional(function: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return sum(one.kind in kinds and one.default is inspect.Parameter.empty for one in found)


def _check_callable(op: str, functions: tuple[Any, ...]) -> None:
    if not all(callable(one) for one in functions):
        raise UsageError(f"{op}: All inputs should be callable mask_mods, got {functions}; pass functions")


def _check(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, grouped: bool, twice: bool) -> None:
    op = "flex_attention"
    if any(one.dim() != 4 for one in (query, key, value)):
        raise NotImplementedError(
            f"{op}: query, key, and value must be 4D tensors, got {query.dim()}, {key.dim()} and {value.dim()} dims; "
            f"unsqueeze them"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ArgumentError(
            f"{op}: Expect query and key/value to have the same embedding dimension, got E={query.shape[-1]} and "
            f"E={key.shape[-1]}; give both the same"
        )
    heads, groups = query.shape[1], key.shape[1]
    if heads % groups if grouped else heads != groups:
        raise ArgumentError(
            f"{op}: Expect query and key/value to have the same number of heads (a multiple of it with "
            f"enable_gqa=True), got Hq={heads} and Hkv={groups}; repeat the heads of key and value"
        )
    if query.shape[0] != key.shape[0] and (mask is None or key.shape[0] != 1):
        raise ArgumentError(
            f"{op}: Expect query and key/value to have the same batch size, got Bq={query.shape[0]} and "
            f"Bkv={key.shape[0]}; expand them"
        )
    if mask is not None and mask.shape[-2:] != (query.shape[-2], key.shape[-2]):
        raise ArgumentError(
            f"{op}: block_mask was created for block_mask.shape={mask.shape}, got q_len={query.shape[-2]} and "
            f"kv_len={key.shape[-2]}; create one of these lengths"
        )
    if twice:
        raise ArgumentError(f"{op}: expected return_lse or return_aux, got both; pass return_aux alone")
