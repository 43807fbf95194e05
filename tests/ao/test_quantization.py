"""Models with packed weights: values, sizes, names, and what is refused."""

from __future__ import annotations

import io

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.ao.quantization import (
    QConfig,
    default_dynamic_qconfig,
    per_channel_dynamic_qconfig,
    quantize_dynamic,
    quantize_weight_only,
)
from tensorcore.errors import ArgumentError, ArgumentTypeError, ShapeError


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3, bias=False)).eval()


def test_weights_are_eight_bits_and_a_scale() -> None:
    """The largest magnitude is 127.5 steps of the scale; a buffer each, no parameters."""
    layer = nn.Linear(2, 2)
    layer.load_state_dict({"weight": tc.tensor([[1.275, -0.5], [0.0, 0.004]]), "bias": tc.tensor([1.0, 2.0])})
    packed = quantize_dynamic(nn.Sequential(layer))[0]
    assert packed.packed.data.tolist() == [[127, -50], [0, 0]]
    assert packed.packed.data.dtype is tc.int8
    assert packed.packed.scale.item() == pytest.approx(0.01)
    assert list(packed.state_dict()) == ["packed.bias", "packed.data", "packed.scale"]
    assert list(packed.parameters()) == []
    assert packed.weight().tolist()[0] == pytest.approx([1.27, -0.5])


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:torch.quantize_per")
@pytest.mark.parametrize("config", ["default_dynamic_qconfig", "per_channel_dynamic_qconfig"])
def test_linear_gives_pytorch_s_numbers(torch, config) -> None:
    """To rounding, for batches of any shape, with one scale for a weight and with one for each output."""
    theirs, mine = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)), net()
    mine[2] = nn.Linear(8, 3)
    mine.load_state_dict({name: tc.tensor(one.detach().numpy()) for name, one in theirs.state_dict().items()})
    with pytest.warns(DeprecationWarning, match="deprecated"):
        theirs = torch.ao.quantization.quantize_dynamic(
            theirs, {torch.nn.Linear: getattr(torch.ao.quantization, config)}
        )
    mine = quantize_dynamic(mine, {nn.Linear: getattr(tc.ao.quantization, config)})
    for shape in ((5, 16), (2, 3, 16), (1, 16)):
        x = torch.randn(shape)
        assert tc.allclose(mine(tc.tensor(x.numpy())), tc.tensor(theirs(x).numpy()), 1e-5, 1e-6)
    assert repr(mine[0]).replace("channel", "tensor") == repr(theirs[0]).replace("channel", "tensor")


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:torch.quantize_per")
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}])
def test_recurrent_layers_give_pytorch_s_numbers(torch, kind, options) -> None:
    """All states and the last one, from zeros and from given ones."""
    layer = getattr(torch.nn, kind)(6, 5, **options)
    mine = nn.Sequential(getattr(nn, kind)(6, 5, **options))
    mine[0].load_state_dict({name: tc.tensor(one.detach().numpy()) for name, one in layer.state_dict().items()})
    with pytest.warns(DeprecationWarning, match="deprecated"):
        theirs = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(layer))[0]
    mine = quantize_dynamic(mine)[0]
    x = torch.randn(4, 3, 6)
    batch = 4 if options.get("batch_first") else 3
    state = torch.randn(theirs.num_layers * (2 if theirs.bidirectional else 1), batch, 5)
    for given in (None, (state, state) if kind == "LSTM" else state):
        wanted = theirs(x, given)
        ours = (
            None if given is None else (tc.tensor(state.numpy()),) * 2 if kind == "LSTM" else tc.tensor(state.numpy())
        )
        found = mine(tc.tensor(x.numpy()), ours)
        for one, its in zip(flat(found), flat(wanted), strict=True):
            assert tc.allclose(one, tc.tensor(its.detach().numpy()), 1e-5, 1e-6)


def flat(value) -> list:
    return [one for each in value for one in (flat(each) if isinstance(each, tuple) else [each])]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_packed_sequences_and_single_ones(kind) -> None:
    """Sequences of several lengths give what each gives alone, to what rounding whole batches costs."""
    layer = quantize_weight_only(nn.Sequential(kind(3, 4, bidirectional=True)))[0]
    parts = [tc.randn(n, 3) for n in (5, 2, 4)]
    rows = nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
    padded, _ = nn.utils.rnn.pad_packed_sequence(layer(rows)[0])
    for i, one in enumerate(parts):
        assert tc.allclose(padded[: len(one), i], layer(one)[0], 1e-5, 1e-6)


def test_weight_only_hardly_changes_the_result() -> None:
    """Each kind of layer stays within a step of its weights; what is stored is less than a third, scales included."""
    model = nn.ModuleDict({"words": nn.Embedding(50, 32), "rnn": nn.GRU(32, 32), "out": nn.Linear(32, 50)}).eval()
    packed = quantize_weight_only(model)

    def run(m):
        return m["out"](m["rnn"](m["words"](tc.arange(50).view(10, 5)))[0])

    def size(m) -> int:
        return sum(one.nbytes for one in m.state_dict().values())

    with tc.no_grad():
        assert (run(packed) - run(model)).abs().max().item() < 0.02
    assert size(packed) < size(model) / 3.3


def test_a_packed_model_is_saved_and_loaded() -> None:
    """Its state goes into a file and into another packed model, and it is copied and pickled whole."""
    first, second = quantize_dynamic(net()), quantize_dynamic(net())
    x, file = tc.randn(2, 16), io.BytesIO()
    tc.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(tc.load(file))
    assert tc.equal(first(x), second(x))


def test_what_is_packed_is_chosen() -> None:
    """By class, by name with all below it, by a dict with a QConfig or None; the model itself stays unless asked."""
    model = nn.Sequential(net(), nn.Linear(3, 3))

    def kinds(m) -> list[str]:
        return [type(one).__module__.split(".")[1] for one in (m[0][0], m[0][2], m[1])]

    assert kinds(quantize_dynamic(model, {"0"})) == ["ao", "ao", "nn"]
    assert kinds(quantize_dynamic(model, {"0.2", "1"})) == ["nn", "ao", "ao"]
    assert kinds(quantize_dynamic(model, {nn.Linear: default_dynamic_qconfig, "1": None})) == ["ao", "ao", "nn"]
    assert kinds(quantize_dynamic(model, {nn.LSTM})) == ["nn", "nn", "nn"]
    assert kinds(model) == ["nn", "nn", "nn"]
    assert quantize_dynamic(model, inplace=True) is model
    assert kinds(model) == ["ao", "ao", "ao"]


def test_half_floats_and_shared_layers() -> None:
    """float16 weights and inputs as they are; a layer that is used twice is packed once."""
    layer = nn.Linear(4, 4)
    packed = quantize_dynamic(nn.Sequential(layer, layer), dtype=tc.float16)
    assert packed[0] is packed[1]
    assert packed[0].packed.data.dtype is tc.float16
    x = tc.randn(3, 4)
    assert tc.allclose(packed[0](x), layer(x), 1e-2, 1e-3)
    assert repr(packed[0]) == "DynamicQuantizedLinear(in_features=4, out_features=4, dtype=torch.float16)"


def test_zeros_and_nothing() -> None:
    """An input of zeros, a weight of zeros and a batch of none."""
    layer = nn.Linear(3, 2)
    with tc.no_grad():
        layer.weight.zero_()
    packed = quantize_dynamic(nn.Sequential(layer))
    assert tc.equal(packed(tc.zeros(1, 3))[0], layer.bias)
    assert packed(tc.ones(0, 3)).shape == (0, 2)


@pytest.mark.parametrize(
    "error, call",
    [
        (ArgumentTypeError, lambda: quantize_dynamic(3)),
        (ArgumentError, lambda: quantize_dynamic(net(), dtype=tc.int8)),
        (ArgumentError, lambda: quantize_dynamic(net(), {"none"})),
        (ArgumentError, lambda: quantize_dynamic(net(), {nn.ReLU})),
        (ArgumentTypeError, lambda: quantize_dynamic(net(), {nn.Linear: "int8"})),
        (ArgumentError, lambda: quantize_dynamic(nn.Sequential(nn.LSTM(3, 4, proj_size=2)))),
        (ArgumentError, lambda: quantize_weight_only(nn.Sequential(nn.Embedding(3, 4, max_norm=1.0)))),
        (ArgumentTypeError, lambda: tc.ao.nn.quantized.dynamic.Linear.from_float(nn.ReLU())),
        (ShapeError, lambda: quantize_dynamic(nn.Sequential(nn.LSTM(3, 4)))(tc.ones(2, 5))),
    ],
)
def test_what_cannot_be_packed_is_refused(error, call) -> None:
    """No model, dtypes and classes that are not packed, names that are not there."""
    with pytest.raises(error):
        call()


def test_weights_that_are_not_finite_are_refused() -> None:
    """A NaN would make a scale of NaN."""
    layer = nn.Linear(1, 1)
    with tc.no_grad():
        layer.weight.fill_(float("nan"))
    with pytest.raises(ArgumentError, match="finite"):
        quantize_dynamic(nn.Sequential(layer))


def test_names_of_quantised_dtypes_print_as_in_pytorch() -> None:
    """``torch.qint8`` is a name that is passed on; the older module has the same functions."""
    assert repr(tc.qint8) == "torch.qint8"
    assert tc.quantization.quantize_dynamic is quantize_dynamic
    assert QConfig(tc.qint8, True) == per_channel_dynamic_qconfig
