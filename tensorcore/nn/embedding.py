"""Embedding: a table of vectors, looked up by index."""

from __future__ import annotations

from typing import Any, Self

from tensorcore.nn import functional as F
from tensorcore.nn import init
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.ops.creation.create import empty
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class _Rows(Module):
    """A table of vectors as a parameter, one row of which may be padding."""

    weight: Tensor
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _make_rows(self, padding_idx: int | None, given: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        shape = self.num_embeddings, self.embedding_dim
        if padding_idx is not None:
            if not -shape[0] <= padding_idx < shape[0]:
                raise AssertionError(f"padding_idx must be within num_embeddings, got {padding_idx} for {shape[0]}")
            padding_idx %= shape[0]
        self.padding_idx = padding_idx
        if given is None:
            self.weight = Parameter(empty(*shape, device=device, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
        else:
            if tuple(given.shape) != shape:
                raise AssertionError(
                    f"Shape of weight does not match num_embeddings and embedding_dim, got {list(given.shape)}"
                )
            self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the rows anew, normally distributed; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)  # type: ignore[index]


def _rows_of(embeddings: Tensor) -> tuple[int, ...]:
    if embeddings.dim() != 2:
        raise AssertionError(f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} dims")
    return tuple(embeddings.shape)


class Embedding(_Rows):
    """Row ``i`` of the weights for each index ``i``: (*) to (*, embedding_dim).

    Args:
        num_embeddings: the number of rows.
        embedding_dim: their length.
        padding_idx: a row that starts as zeros and gets no gradient.
        max_norm: rows that are looked up are scaled down to this ``norm_type`` norm.
        scale_grad_by_freq: divide each row's gradient by how often the batch looked it up.
        sparse: let the gradient of the weights be a sparse tensor of the rows that were looked up; see ``optim.SparseAdam``.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_rows(padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An Embedding of these rows; with ``freeze`` they are not trained."""
        return cls(
            *_rows_of(embeddings), padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


class EmbeddingBag(_Rows):
    """The sum, mean or maximum of several rows of the weights: (B, N) indices to (B, embedding_dim).

    Args:
        mode: ``sum``, ``mean`` or ``max``.
        include_last_offset: whether ``offsets`` ends with the number of indices.
        padding_idx: a row that starts as zeros, counts in no bag and gets no gradient.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for Embedding.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_rows(padding_idx, _weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """One vector for each bag.

        Args:
            offsets: for an input of one dim, where each bag starts in it.
            per_sample_weights: what each row is multiplied by, of the input's shape; for ``mode="sum"``.
        """
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """An EmbeddingBag of these rows; with ``freeze`` they are not trained."""
        made = cls(
            *_rows_of(embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
