"""Files that go to PyTorch and come from it."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import serialization
from tensorcore.parameter import Parameter

pytestmark = pytest.mark.oracle


class Stranger:
    """A class that no file may build unasked."""


def written(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    tc.save(value, file, **options)
    return file.getvalue()


def values_of(m: Any) -> dict[str, Any]:
    x = m.arange(12.0).reshape(3, 4)
    parameter = m.nn.Parameter(m.ones(2), requires_grad=False)
    leaf = m.ones(2, requires_grad=True)
    leaf.note = "kept"
    values = {
        "x": x,
        "view": x[1:, ::2],
        "turned": x.t(),
        "wide": x[0].expand(5, 4),
        "empty": m.zeros(0, 3),
        "0d": m.tensor(3),
        "p": parameter,
        "q": m.nn.Parameter(m.ones(1)),
        "leaf": leaf,
        "meta": m.empty(2, 3, device="meta"),
        "dtype": m.bfloat16,
        "layout": m.strided,
        "size": x.shape,
        "device": x.device,
        "none": None,
        "flag": True,
        "n": 1 << 40,
        "huge": 1 << 80,
        "f": 1.5,
        "c": 1 + 2j,
        "text": "ä",
        "bytes": b"\0\xff",
        "set": {1, 2},
        "tuple": (1, [2, {"a": 3}]),
        "deep": [[[[x]]]],
    }
    values.update(
        {
            name: m.tensor([0, 1, 2]).to(getattr(m, name))
            for name in (
                "bool",
                "uint8",
                "int8",
                "int16",
                "int32",
                "int64",
                "float16",
                "bfloat16",
                "float32",
                "float64",
                "complex64",
                "complex128",
            )
        }
    )
    return values  # fmt: skip


def check_same(ours: Any, theirs: Any) -> None:
    assert ours.keys() == theirs.keys()
    for name, one in theirs.items():
        mine = ours[name]
        if not hasattr(one, "stride"):
            assert repr(mine) == repr(one), name
            continue
        assert str(mine.dtype) == str(one.dtype)
        assert (mine.stride(), mine.storage_offset(), tuple(mine.shape)) == (
            one.stride(),
            one.storage_offset(),
            tuple(one.shape),
        ), name
        assert mine.requires_grad == one.requires_grad
        assert (type(one).__name__ == "Parameter") == isinstance(mine, Parameter)
        assert getattr(mine, "note", None) == getattr(one, "note", None)
        if not one.is_meta:
            assert mine.tolist() == one.tolist(), name
            assert mine.untyped_storage().nbytes() == one.untyped_storage().nbytes()


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}])
def test_from_there(torch: Any, options: Any) -> None:
    """What PyTorch wrote is read, in either format and safely."""
    file = io.BytesIO()
    torch.save(values_of(torch), file, **options)
    file.seek(0)
    back = tc.load(file)
    check_same(back, values_of(torch))
    assert back["view"].untyped_storage() is back["x"].untyped_storage() is back["deep"][0][0][0][0].untyped_storage()


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_to_there(torch: Any, options: Any) -> None:
    """What is written here PyTorch reads, with its safe unpickler."""
    back = torch.load(io.BytesIO(written(values_of(tc), **options)), weights_only=True)
    check_same(values_of(tc), back)
    assert back["view"].untyped_storage().data_ptr() == back["x"].untyped_storage().data_ptr()


def test_the_bytes_are_pytorchs(torch: Any) -> None:
    """Record for record the files are equal, alignment included, but for the number that names the file."""
    for value in (lambda m: [m.arange(5.0), m.zeros(0)], lambda m: {"weight": m.nn.Parameter(m.ones(100))}):
        file = io.BytesIO()
        torch.save(value(torch), file)
        ours, theirs = written(value(tc)), file.getvalue()
        end = theirs.index(b"archive/.data/serialization_id")
        assert ours[:end] == theirs[:end]
        assert len(ours) == len(theirs)


def test_pytorchs_own_ways_to_find_values(torch: Any, tmp_path: Path) -> None:
    """PyTorch maps the file, also when it computes the places of records."""
    from torch.utils.serialization import config

    tc.save({"a": tc.arange(5.0), "e": tc.zeros(0), "b": tc.arange(3)}, tmp_path / "näme.pt")
    with config.patch({"load.calculate_storage_offsets": True}):
        back = torch.load(tmp_path / "näme.pt", mmap=True)
    assert (back["a"].tolist(), back["b"].tolist()) == ([0, 1, 2, 3, 4], [0, 1, 2])


def test_views_of_other_dtypes(torch: Any) -> None:
    """One storage of two dtypes, which PyTorch cannot write, it can read."""
    x = tc.arange(2.0)
    a, b = torch.load(io.BytesIO(written([x, x.view(tc.int32)])))
    assert (a.tolist(), b.tolist()) == ([0.0, 1.0], [0, 1065353216])
    assert a.data_ptr() == b.data_ptr()


def test_without_checksums(torch: Any) -> None:
    """A file that PyTorch wrote without checksums is read."""
    torch.serialization.set_crc32_options(False)
    try:
        file = io.BytesIO()
        torch.save(torch.arange(3), file)
    finally:
        torch.serialization.set_crc32_options(True)
    file.seek(0)
    assert tc.load(file).tolist() == [0, 1, 2]


def test_lazy_conjugates_and_negatives(torch: Any) -> None:
    """Values that PyTorch left to be conjugated or negated are."""
    file = io.BytesIO()
    torch.save([torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag], file)
    file.seek(0)
    conjugate, negative = tc.load(file)
    assert (conjugate.tolist(), negative.tolist()) == ([1 - 2j], [-2.0])


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_what_is_missing_here_is_said(torch: Any) -> None:
    """Dtypes that are not here are refused by name."""
    file = io.BytesIO()
    torch.save(torch.ones(2, dtype=torch.complex32), file)
    file.seek(0)
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="complex32"):
        tc.load(file)


def test_unsafe_names(torch: Any, tmp_path: Path) -> None:
    """The names that a safe load refuses are found without building anything."""
    tc.save([Stranger(), np.float64(3), tc.ones(1)], tmp_path / "x.pt")
    theirs = torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt")
    assert serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt") == sorted(theirs)


def test_a_whole_module(torch: Any) -> None:
    """A module that PyTorch pickled whole is one here where its layers are."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.BatchNorm1d(2)).eval()
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    back = tc.load(file, weights_only=False)
    assert back(tc.ones(1, 3)).tolist()[0] == pytest.approx(model(torch.ones(1, 3)).tolist()[0])


# How each kind of layer with a state is made; those that tensorcore.nn has are tested.
LAYERS: dict[str, Any] = {
    "Linear": (3, 2), "Bilinear": (2, 3, 2), "Conv1d": (2, 3, 2), "Conv2d": (2, 3, 2), "Conv3d": (2, 3, 2),
    "ConvTranspose1d": (2, 3, 2), "ConvTranspose2d": (2, 3, 2), "ConvTranspose3d": (2, 3, 2), "BatchNorm1d": (3,),
    "BatchNorm2d": (3,), "BatchNorm3d": (3,), "SyncBatchNorm": (3,), "LayerNorm": (3,), "GroupNorm": (2, 4), "RMSNorm": (3,),
    "InstanceNorm1d": (3, 1e-5, 0.1, True, True), "InstanceNorm2d": (3, 1e-5, 0.1, True, True),
    "InstanceNorm3d": (3, 1e-5, 0.1, True, True), "Embedding": (5, 2), "EmbeddingBag": (5, 2), "PReLU": (3,), "RNN": (2, 3, 2),
    "LSTM": (2, 3, 2), "GRU": (2, 3, 2), "RNNCell": (2, 3), "LSTMCell": (2, 3), "GRUCell": (2, 3), "MultiheadAttention": (4, 2),
    "TransformerEncoderLayer": (4, 2, 8), "TransformerDecoderLayer": (4, 2, 8), "Transformer": (4, 2, 1, 1, 8),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", [name for name in LAYERS if hasattr(tc.nn, name)])
def test_states_of_layers(torch: Any, name: str) -> None:
    """The state of a layer goes there and back, with names, values and the versions that it was written with."""
    theirs, ours = getattr(torch.nn, name)(*LAYERS[name]), getattr(tc.nn, name)(*LAYERS[name])
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    file.seek(0)
    state = tc.load(file)
    ours.load_state_dict(state)
    assert state._metadata == theirs.state_dict()._metadata
    back = torch.load(io.BytesIO(written(ours.state_dict())))
    theirs.load_state_dict(back)
    assert list(back) == list(theirs.state_dict())
    for key, one in theirs.state_dict().items():
        assert ours.state_dict()[key].tolist() == one.tolist()


def test_states_of_optimizers(torch: Any) -> None:
    """What Adam has gathered goes there, and back."""

    def stepped(m: Any) -> Any:
        p = m.nn.Parameter(m.ones(2))
        optimizer = m.optim.Adam([p], lr=0.5)
        (p * m.tensor([1.0, 2.0])).sum().backward()
        optimizer.step()
        return p, optimizer

    (p, ours), (q, theirs) = stepped(tc), stepped(torch)
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    file.seek(0)
    ours.load_state_dict(tc.load(file))
    theirs.load_state_dict(torch.load(io.BytesIO(written(ours.state_dict()))))
    ours.step()
    theirs.step()
    assert p.tolist() == pytest.approx(q.tolist(), abs=1e-6)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # PyTorch's, of its own layouts
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_is_computed_of_values_that_come_later(weights_only: bool) -> None:
    """In a file of before PyTorch 1.6 conjugates and sparse tensors are made of the values behind the pickle."""
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    z = torch.tensor([1 + 2j, 3 - 1j])
    values = [z, z.conj(), torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse()]
    file = io.BytesIO()
    torch.save(values, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    made = tc.load(file, weights_only=weights_only)
    for ours, theirs in zip(made, values, strict=True):
        np.testing.assert_array_equal(ours.to_dense().numpy(), theirs.to_dense().resolve_conj().resolve_neg().numpy())


def test_bad_indices_that_come_later_are_refused() -> None:
    """The indices of a sparse tensor in such a file are checked once they are read."""
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    for made in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()):
        (made._indices() if made.is_sparse else made.col_indices()).fill_(7)
        file = io.BytesIO()
        torch.save(made, file, _use_new_zipfile_serialization=False)
        file.seek(0)
        with pytest.raises(RuntimeError, match="sparse_"):
            tc.load(file)
