"""Each layer beside PyTorch's: text, names and numbers of its state, result, and gradients."""

import io
import warnings

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tests.nn.layers import LOSSES, ROWS, numbers

EVERY = ROWS | LOSSES
# Of PyTorch's list: deprecated ones, bases, what needs several devices, and no layer at all.
LEFT_OUT = {
    "Container", "DataParallel", "LinearCrossEntropyOptions", "Module", "NLLLoss2d", "RNNBase", "RNNCellBase",
}  # fmt: skip


def built(lib, row):
    """The layer from a fixed seed, and its arguments."""
    lib.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = row.make(lib.nn)
    seeds = iter(range(100, 200))

    def argument(value):
        if isinstance(value, tuple):
            return lib.tensor(numbers(*value, seed=next(seeds)), requires_grad=True)
        if isinstance(value, list) and isinstance(value[0], tuple):
            return tuple(argument(one) for one in value)
        return lib.tensor(value) if isinstance(value, np.ndarray) else value

    return layer, [argument(one) for one in row.inputs], {key: argument(one) for key, one in row.kwargs.items()}


def called(lib, row, layer, args, kwargs):
    """What the layer answers, as a flat list, with the numbers that a fixed seed draws."""
    lib.manual_seed(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = layer(*args, **kwargs) if row.call is None else row.call(lib, layer, *args, **kwargs)
    return flat(made)


def flat(value):
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in flat(part)]
    return [] if value is None else [value]


def close(ours, theirs, what):
    """Fail unless two tensors are alike."""
    assert str(ours.dtype) == str(theirs.dtype), what
    assert tuple(ours.shape) == tuple(theirs.shape), what
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=f"{what} differs"
    )


def same_state(ours, theirs):
    """Fail unless two modules have the same names with bit-equal numbers, or equal text where there are none yet."""
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(other)
    for key, value in other.items():
        if "Uninitialized" in type(value).__name__:
            assert repr(mine[key]) == repr(value)
        else:
            assert str(mine[key].dtype) == str(value.dtype), key
            np.testing.assert_array_equal(mine[key].numpy(), value.detach().numpy(), err_msg=key)


@pytest.mark.oracle
@pytest.mark.parametrize("name", EVERY)
def test_layer_starts_as_pytorchs(name, torch):
    """From the same seed a layer has PyTorch's text, names and, to the bit, numbers."""
    ours, theirs = built(tc, EVERY[name])[0], built(torch, EVERY[name])[0]
    assert repr(ours) == repr(theirs)
    if name.split()[0] in ("weight_norm", "spectral_norm", "orthogonal"):  # computed, not drawn
        assert list(ours.state_dict()) == list(theirs.state_dict())
    else:
        same_state(ours, theirs)
    assert [key for key, _ in ours.named_parameters()] == [key for key, _ in theirs.named_parameters()]
    assert [key for key, _ in ours.named_modules()] == [key for key, _ in theirs.named_modules()]


@pytest.mark.oracle
@pytest.mark.parametrize("name", EVERY)
def test_layer_computes_as_pytorchs(name, torch):
    """In training and in evaluation a layer gives PyTorch's results and gradients, and its buffers move alike."""
    row = EVERY[name]
    answers = []
    for lib in (tc, torch):
        layer, args, kwargs = built(lib, row)
        made = called(lib, row, layer, args, kwargs)
        total = sum((one * one).sum() for one in made if one.requires_grad)
        if not isinstance(total, int):
            total.backward()
        grads = {f"argument {i}": one.grad for i, one in enumerate(flat(args)) if one.is_floating_point()}
        grads |= {f"parameter {key}": one.grad for key, one in layer.named_parameters()}
        layer.eval()
        with lib.no_grad():
            last = called(lib, row, layer, args, kwargs)
        answers.append((layer, made, grads, last))
    (ours, made, grads, last), (theirs, expected, wanted, after) = answers
    assert len(made) == len(expected)
    for i, (one, other) in enumerate(zip(made, expected, strict=True)):
        close(one, other, f"result {i}")
    for key, other in wanted.items():
        assert (grads[key] is None) is (other is None), key
        if other is not None:
            close(grads[key], other, f"gradient of {key}")
    for key, other in theirs.named_buffers():
        close(dict(ours.named_buffers())[key], other, key)
    for i, (one, other) in enumerate(zip(last, after, strict=True)):
        close(one, other, f"evaluated result {i}")
    assert repr(ours) == repr(theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("name", EVERY)
def test_layer_exchanges_its_state_with_pytorchs(name, torch):
    """A file that PyTorch wrote loads here, and the other way round; the state that comes back is the one that went."""
    row = EVERY[name]
    (ours, *given), (theirs, *others) = built(tc, row), built(torch, row)
    called(tc, row, ours, *given), called(torch, row, theirs, *others)
    with torch.no_grad():
        for one in theirs.state_dict().values():
            one.copy_(one * 2 + 1)
    for giver, taker, write, read in ((theirs, ours, torch, tc), (ours, theirs, tc, torch)):
        file = io.BytesIO()
        write.save(giver.state_dict(), file)
        file.seek(0)
        assert str(taker.load_state_dict(read.load(file))) == "<All keys matched successfully>"
        same_state(ours, theirs)
        with tc.no_grad():  # so that the way back has something to bring
            for one in ours.state_dict().values():
                one.add_(1)


@pytest.mark.oracle
def test_every_layer_of_pytorchs_is_compared(torch):
    """The table makes each class in PyTorch's list."""
    made = set()

    class Recorder:
        def __getattr__(self, name):
            made.add(name)
            return getattr(nn, name)

    for row in EVERY.values():
        row.make(Recorder())
    assert sorted(set(torch.nn.modules.__all__) - made - LEFT_OUT) == []


def test_linear_computes():
    """``x @ weight.T + bias`` of known weights."""
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": tc.tensor([[2.0, 3.0]]), "bias": tc.tensor([1.0])})
    assert layer(tc.tensor([[1.0, 1.0]])).tolist() == [[6.0]]


def test_batch_norm_counts_and_tracks():
    """A training batch moves the running statistics by the momentum and is counted; evaluation leaves them alone."""
    layer = nn.BatchNorm1d(1)
    layer(tc.tensor([[1.0], [3.0]]))
    assert layer.num_batches_tracked.item() == 1
    assert layer.running_mean.tolist() == pytest.approx([0.2])
    assert layer.running_var.tolist() == pytest.approx([1.1])
    layer.eval()(tc.tensor([[9.0], [3.0]]))
    assert layer.num_batches_tracked.item() == 1


def test_batch_norm_reads_old_files():
    """A state from before batches were counted loads, with the count as it is."""
    layer = nn.BatchNorm1d(1)
    state = {key: one for key, one in layer.state_dict().items() if key != "num_batches_tracked"}
    assert str(layer.load_state_dict(state)) == "<All keys matched successfully>"


def test_dropout_ends_with_training():
    """Dropout scales what it keeps in training and does nothing in evaluation."""
    layer = nn.Dropout(0.5)
    tc.manual_seed(8)
    assert set(layer(tc.ones(100)).tolist()) == {0.0, 2.0}
    assert layer.eval()(tc.ones(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: nn.Dropout(1.5), ValueError, "between 0 and 1"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(3, 4, 3, padding="some"), ValueError, "Invalid padding string"),
        (lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2), ValueError, "not supported for strided"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "divisible by num_groups"),
        (lambda: nn.BatchNorm2d(3)(tc.ones(2, 3)), ValueError, "expected 4D input (got 2D input)"),
        (lambda: nn.Linear(2, 3)(tc.ones(1, 4)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
    ],
)
def test_bad_arguments_are_refused(make, error, text):
    """Bad arguments raise PyTorch's exception with its words."""
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "fill",
    [
        lambda init, w: init.uniform_(w, -1, 2),
        lambda init, w: init.normal_(w, 1, 2),
        lambda init, w: init.trunc_normal_(w, std=0.5),
        lambda init, w: init.trunc_normal_(w, mean=3, std=1.5, a=0, b=1),
        lambda init, w: init.constant_(w, 3),
        lambda init, w: init.eye_(w),
        lambda init, w: init.xavier_uniform_(w, gain=2),
        lambda init, w: init.xavier_normal_(w),
        lambda init, w: init.kaiming_uniform_(w, mode="fan_out", nonlinearity="relu"),
        lambda init, w: init.kaiming_normal_(w, a=0.1),
        lambda init, w: init.sparse_(w, 0.3),
    ],
)
def test_initialisers_draw_pytorchs_numbers(fill, torch):
    """From the same seed each initialiser fills with PyTorch's numbers, to the bit, in each dtype."""
    for dtype in ("float32", "float64", "bfloat16"):
        made = []
        for lib in (tc, torch):
            lib.manual_seed(5)
            tensor = lib.empty(6, 9, dtype=getattr(lib, dtype))
            fill(lib.nn.init, tensor)
            made.append(tensor.double().numpy())
        np.testing.assert_array_equal(*made, err_msg=dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (3, 4, 2)])
def test_orthogonal_initialisation_is_pytorchs(shape, torch):
    """The same matrix, up to the rounding of another LAPACK."""
    made = []
    for lib in (tc, torch):
        lib.manual_seed(5)
        made.append(lib.nn.init.orthogonal_(lib.empty(*shape), gain=1.5).numpy())
    np.testing.assert_allclose(*made, rtol=1e-5, atol=1e-6)


@pytest.mark.oracle
def test_dirac_equals_pytorchs(torch):
    """A convolution whose weights pass the input on."""
    ours, theirs = tc.empty(4, 2, 3, 3), torch.empty(4, 2, 3, 3)
    nn.init.dirac_(ours, 2)
    torch.nn.init.dirac_(theirs, 2)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name, gain", [("relu", 2**0.5), ("tanh", 5 / 3), ("linear", 1), ("selu", 0.75)])
def test_gains(name, gain):
    """The gain of each nonlinearity."""
    assert nn.init.calculate_gain(name) == pytest.approx(gain)


def test_clipping_scales_to_the_norm():
    """``clip_grad_norm_`` gives the norm from before and scales the gradients to the wanted one."""
    one = nn.Parameter(tc.zeros(2))
    one.grad = tc.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_([one], 1.0).item() == pytest.approx(5.0)
    assert one.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)
    nn.utils.clip_grad_value_([one], 0.7)
    assert one.grad.tolist() == pytest.approx([0.6, 0.7], rel=1e-5)


def test_parameters_as_one_vector():
    """All parameters in one row, and back from another row."""
    layer = nn.Linear(2, 1)
    nn.utils.vector_to_parameters(tc.tensor([1.0, 2.0, 3.0]), layer.parameters())
    assert nn.utils.parameters_to_vector(layer.parameters()).tolist() == [1, 2, 3]
    assert layer.weight.tolist() == [[1, 2]]
