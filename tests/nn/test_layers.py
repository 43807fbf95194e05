"""Each layer beside PyTorch's: text, names and numbers of its state, result, and gradients."""

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn


def numbers(*shape, seed=8):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


LAYERS = {
    "Identity": (lambda nn: nn.Identity(), (3, 4)),
    "Linear": (lambda nn: nn.Linear(5, 3), (4, 5)),
    "Linear without bias": (lambda nn: nn.Linear(5, 3, bias=False), (2, 4, 5)),
    "Conv1d": (lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)),
    "Conv2d": (lambda nn: nn.Conv2d(3, 4, (3, 2), padding=(1, 0), dilation=(1, 2)), (2, 3, 7, 8)),
    "Conv2d same": (lambda nn: nn.Conv2d(3, 4, (3, 5), padding="same", bias=False), (2, 3, 7, 8)),
    "Conv2d reflect": (lambda nn: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), (2, 3, 7, 8)),
    "Conv3d": (lambda nn: nn.Conv3d(2, 3, 2), (1, 2, 4, 5, 3)),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 4, 5)),
    "MaxPool1d": (lambda nn: nn.MaxPool1d(2), (2, 3, 8)),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(3, stride=2, padding=1), (2, 3, 8, 9)),
    "AvgPool1d": (lambda nn: nn.AvgPool1d(3, 2, 1), (2, 3, 8)),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(2, ceil_mode=True), (2, 3, 7, 9)),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 9)),
    "AdaptiveMaxPool2d": (lambda nn: nn.AdaptiveMaxPool2d(2), (2, 3, 7, 9)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(4), (6, 4)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3, momentum=None), (4, 3, 5, 5)),
    "BatchNorm2d of the batch": (lambda nn: nn.BatchNorm2d(3, affine=False, track_running_stats=False), (4, 3, 5, 5)),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(3, affine=True), (4, 3, 5, 5)),
    "LayerNorm": (lambda nn: nn.LayerNorm((4, 5)), (3, 4, 5)),
    "RMSNorm": (lambda nn: nn.RMSNorm(5), (3, 4, 5)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "ReLU": (lambda nn: nn.ReLU(), (3, 4)),
    "LeakyReLU": (lambda nn: nn.LeakyReLU(0.1), (3, 4)),
    "PReLU": (lambda nn: nn.PReLU(4), (3, 4)),
    "GELU": (lambda nn: nn.GELU(), (3, 4)),
    "GELU by tanh": (lambda nn: nn.GELU("tanh"), (3, 4)),
    "SiLU": (lambda nn: nn.SiLU(), (3, 4)),
    "Mish": (lambda nn: nn.Mish(), (3, 4)),
    "ELU": (lambda nn: nn.ELU(0.7), (3, 4)),
    "CELU": (lambda nn: nn.CELU(0.7), (3, 4)),
    "SELU": (lambda nn: nn.SELU(), (3, 4)),
    "Hardtanh": (lambda nn: nn.Hardtanh(-0.5, 0.5), (3, 4)),
    "ReLU6": (lambda nn: nn.ReLU6(), (3, 4)),
    "Hardsigmoid": (lambda nn: nn.Hardsigmoid(), (3, 4)),
    "Hardswish": (lambda nn: nn.Hardswish(), (3, 4)),
    "Hardshrink": (lambda nn: nn.Hardshrink(), (3, 4)),
    "Softshrink": (lambda nn: nn.Softshrink(), (3, 4)),
    "Softplus": (lambda nn: nn.Softplus(2.0), (3, 4)),
    "Softsign": (lambda nn: nn.Softsign(), (3, 4)),
    "Tanhshrink": (lambda nn: nn.Tanhshrink(), (3, 4)),
    "Threshold": (lambda nn: nn.Threshold(0.1, 20.0), (3, 4)),
    "LogSigmoid": (lambda nn: nn.LogSigmoid(), (3, 4)),
    "Sigmoid": (lambda nn: nn.Sigmoid(), (3, 4)),
    "Tanh": (lambda nn: nn.Tanh(), (3, 4)),
    "Softmax": (lambda nn: nn.Softmax(dim=-1), (3, 4)),
    "Softmin": (lambda nn: nn.Softmin(dim=0), (3, 4)),
    "LogSoftmax": (lambda nn: nn.LogSoftmax(dim=1), (3, 4)),
    "GLU": (lambda nn: nn.GLU(), (3, 4)),
    "Flatten": (lambda nn: nn.Flatten(), (3, 4, 2)),
    "Unflatten": (lambda nn: nn.Unflatten(1, (2, 2)), (3, 4)),
    "Dropout": (lambda nn: nn.Dropout(0.4), (30, 4)),
    "Dropout2d": (lambda nn: nn.Dropout2d(0.4), (3, 8, 2, 2)),
    "ReLU in place": (lambda nn: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), (3, 4)),
}

CLASSES = np.array([1, 0, 3, 2, 1])
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0], np.float32)
LOSSES = {
    "L1Loss": (lambda nn: nn.L1Loss(), (numbers(5, 4, seed=1), numbers(5, 4, seed=2))),
    "MSELoss": (lambda nn: nn.MSELoss(reduction="sum"), (numbers(5, 4, seed=3), numbers(5, 4, seed=4))),
    "SmoothL1Loss": (lambda nn: nn.SmoothL1Loss(beta=0.5), (numbers(5, 4, seed=5), numbers(5, 4, seed=6))),
    "HuberLoss": (lambda nn: nn.HuberLoss(delta=0.5), (numbers(5, 4, seed=7), numbers(5, 4, seed=8))),
    "CrossEntropyLoss": (
        lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=3),
        (numbers(5, 4, seed=9), CLASSES),
    ),
    "NLLLoss": (lambda nn: nn.NLLLoss(), (numbers(5, 4, seed=10), CLASSES)),
    "BCELoss": (lambda nn: nn.BCELoss(), (1 / (1 + np.exp(-numbers(5, seed=11))), (SIGNS > 0).astype(np.float32))),
    "BCEWithLogitsLoss": (lambda nn: nn.BCEWithLogitsLoss(), (numbers(5, seed=12), (SIGNS > 0).astype(np.float32))),
    "KLDivLoss": (
        lambda nn: nn.KLDivLoss(reduction="batchmean"),
        (numbers(5, 4, seed=13), np.abs(numbers(5, 4, seed=14))),
    ),
    "PoissonNLLLoss": (lambda nn: nn.PoissonNLLLoss(), (numbers(5, seed=15), np.abs(numbers(5, seed=16)))),
    "GaussianNLLLoss": (
        lambda nn: nn.GaussianNLLLoss(),
        (numbers(5, 2, seed=17), numbers(5, 2, seed=18), np.abs(numbers(5, 2, seed=19)) + 0.5),
    ),
    "HingeEmbeddingLoss": (lambda nn: nn.HingeEmbeddingLoss(), (numbers(5, seed=20), SIGNS)),
    "SoftMarginLoss": (lambda nn: nn.SoftMarginLoss(), (numbers(5, seed=21), SIGNS)),
    "MarginRankingLoss": (lambda nn: nn.MarginRankingLoss(0.1), (numbers(5, seed=22), numbers(5, seed=23), SIGNS)),
    "CosineEmbeddingLoss": (
        lambda nn: nn.CosineEmbeddingLoss(0.1),
        (numbers(5, 3, seed=24), numbers(5, 3, seed=25), SIGNS),
    ),
    "TripletMarginLoss": (
        lambda nn: nn.TripletMarginLoss(),
        (numbers(5, 3, seed=26), numbers(5, 3, seed=27), numbers(5, 3, seed=28)),
    ),
}


def pair(make, torch, seed=3):
    """The layer here and in PyTorch, made from the same seed."""
    tc.manual_seed(seed)
    torch.manual_seed(seed)
    return make(nn), make(torch.nn)


def close(a, b, name):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYERS)
def test_layer_equals_pytorchs(name, torch):
    """Text, state and initial numbers are equal; results and gradients agree in training and evaluation."""
    make, shape = LAYERS[name]
    ours, theirs = pair(make, torch)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, one in theirs.state_dict().items():
        np.testing.assert_array_equal(ours.state_dict()[key].numpy(), one.numpy(), err_msg=key)
    x = numbers(*shape)
    for training in (True, False):
        mine, other = tc.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        ours.train(training)
        theirs.train(training)
        result, expected = ours(mine), theirs(other)
        close(result, expected, f"result, training={training}")
        (result * result).sum().backward()
        (expected * expected).sum().backward()
        close(mine.grad, other.grad, f"input, training={training}")
    for (key, one), (_, two) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy(), rtol=1e-4, atol=2e-5, err_msg=key)
    for (key, one), (_, two) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.oracle
@pytest.mark.parametrize("name", LOSSES)
def test_loss_equals_pytorchs(name, torch):
    """Text, value and gradient of each loss agree."""
    make, arrays = LOSSES[name]
    ours, theirs = make(nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    mine, other = [tc.tensor(one) for one in arrays], [torch.tensor(one) for one in arrays]
    mine[0].requires_grad_()
    other[0].requires_grad_()
    loss, expected = ours(*mine), theirs(*other)
    close(loss, expected, "loss")
    loss.backward()
    expected.backward()
    close(mine[0].grad, other[0].grad, "gradient")


@pytest.mark.oracle
def test_embedding_equals_pytorchs(torch):
    """The same seed draws the same rows, and the padding row is zero and gets no gradient."""
    ours, theirs = pair(lambda nn: nn.Embedding(10, 3, padding_idx=2), torch)
    assert repr(ours) == repr(theirs)
    np.testing.assert_array_equal(ours.weight.detach().numpy(), theirs.weight.detach().numpy())
    at = np.array([[1, 2], [2, 7]])
    ours(tc.tensor(at)).sum().backward()
    theirs(torch.tensor(at)).sum().backward()
    close(ours.weight.grad, theirs.weight.grad, "gradient")


@pytest.mark.oracle
def test_bilinear_equals_pytorchs(torch):
    """Two inputs, one result."""
    ours, theirs = pair(lambda nn: nn.Bilinear(3, 4, 2), torch)
    assert repr(ours) == repr(theirs)
    a, b = numbers(5, 3), numbers(5, 4)
    close(ours(tc.tensor(a), tc.tensor(b)), theirs(torch.tensor(a), torch.tensor(b)), "result")


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
        lambda init, w: init.orthogonal_(w, gain=1.5),
        lambda init, w: init.sparse_(w, 0.3),
    ],
)
def test_initialisers_draw_pytorchs_numbers(fill, torch):
    """From the same seed each initialiser fills with PyTorch's numbers."""
    tc.manual_seed(5)
    torch.manual_seed(5)
    ours, theirs = tc.empty(6, 9), torch.empty(6, 9)
    fill(nn.init, ours)
    fill(torch.nn.init, theirs)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


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
