"""What holds for every op inside an autocast region: its category, its result and its gradients are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import amp, fft
from tensorcore.amp.lists import ACCELERATOR, CPU, INHERITED, category
from tensorcore.ops.define import OPS
from tests.ops.registry_calls import calls_of, counterpart, derivative, flat, numbers, own, run
from tests.ops.test_every_op import RANDOM, SAMPLED, UNDEFINED

NAMES = [name for name in SAMPLED if name not in RANDOM | UNDEFINED]
# The names of PyTorch's own ops behind some of ours.
OVERLOADS = {
    **{name: f"fft_{name}" for name in fft.__all__},
    "cross_entropy": "cross_entropy_loss",
    "grid_sample": "grid_sampler",
    "interpolate": "upsample_nearest2d",
    "lu": "_lu_with_info",
    "pad": "reflection_pad2d",
}

# Where a region gives another result than PyTorch's on purpose: name -> why.
EXCEPTIONS = {
    "as_strided_scatter": "PyTorch gives replaced elements a gradient and others none",
    "complex": "there is no complex dtype of float16 here",
    **dict.fromkeys(
        ["gru", "gru_cell", "lstm_cell"],
        "PyTorch adds narrow gates to a state of single precision; a cell here has one dtype",
    ),
    "matrix_exp": "PyTorch leaves a part of a matrix of 16 bits unset",
    "matrix_power": "negative powers of narrow matrices are refused here",
}

# Composites in PyTorch too, whose parts autocast sees there.
MADE_OF_LISTED = {
    "_chance_loss", "_euclidean_dist", "affine_grid", "corrcoef", "cov", "cross_entropy", "cumulative_trapezoid", "gaussian_nll_loss",
    "gru", "gumbel_softmax", "ldexp", "linalg_norm", "linalg_pinv", "linear_cross_entropy", "local_response_norm",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "lstm", "matrix_power", "multi_head_attention_forward",
    "multilabel_soft_margin_loss", "normalize", "pairwise_distance", "pca_lowrank", "pinverse", "rnn_relu", "rnn_tanh",
    "softmin", "svd_lowrank", "trace", "trapezoid", "trapz", "triplet_margin_with_distance_loss", "vander",
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_lists_are_pytorchs(kind: str, torch: Any) -> None:
    """Autocast looks at exactly those of our ops that PyTorch registers a cast for."""
    key = f"Autocast{kind.upper()}"
    registered = {
        one.removeprefix("aten::").split(".")[0]
        for one in torch._C._dispatch_get_all_op_names()
        if one.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(one, key)
    }
    listed = {name for name, what in (CPU if kind == "cpu" else ACCELERATOR).items() if what != "shielded"}
    for name in OPS:
        assert (OVERLOADS.get(name, name) in registered) == (
            name in listed - (INHERITED if kind == "cpu" else set())
        ), name


def test_every_op_has_a_category() -> None:
    """Whatever the device, there is one of the known answers for each op."""
    kinds = {"lower_precision", "float32", "float32_result", "promote", "banned", "as_is", "shielded"}
    for device in ("cpu", "cuda", "another"):
        assert {category(name, device, tc.ones(1), tc.ones(1)) for name in OPS} <= kinds


@pytest.mark.oracle
@pytest.mark.parametrize("chosen", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_pytorchs(name: str, chosen: str, torch: Any) -> None:
    """Inside a region dtypes are PyTorch's, values to the rounding of the narrow dtype, and gradients too."""
    function, theirs = own(name), counterpart(torch, name)
    if theirs is None or name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS.get(name, "PyTorch has no function of this name"))
    if (name, chosen) == ("lstm", "bfloat16") and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("on processors with AVX-512 PyTorch's states are narrow too, on others they are not")
    for number, call in enumerate(calls_of(name)):
        for dtype in ("float32", chosen):
            context = f"call {number} of {dtype}"
            found = []
            for library, one in ((tc, function), (torch, theirs)):
                with library.autocast("cpu", dtype=getattr(library, chosen)):
                    found.append(run(library, one, call, dtype, grad=True))
            (mine, inputs), (other, arguments) = found
            if isinstance(other, Exception):
                continue
            assert not isinstance(mine, Exception), f"{context}: {mine}"
            for a, b in zip(flat(mine), flat(other), strict=True):
                if not hasattr(b, "dtype"):
                    continue
                assert str(a.dtype) == str(b.dtype), f"{context}: expected {b.dtype}, got {a.dtype}"
                if b.dtype.is_floating_point:
                    near(a, b, context)
            try:
                expected = derivative(torch, other, arguments)
            except RuntimeError:  # without a derivative there
                continue
            for a, b in zip(derivative(tc, mine, inputs) or [], expected, strict=True) if expected else ():
                assert str(a.dtype) == str(b.dtype)
                near(a, b, f"gradient of {context}", 4)


def near(a: Any, b: Any, context: str, times: int = 1) -> None:
    """Fail unless two results agree to a few units of bfloat16."""
    x, y = numbers(a).astype(np.float64), numbers(b).astype(np.float64)
    size = np.abs(y[np.isfinite(y)]).max(initial=1.0)
    np.testing.assert_allclose(x, y, rtol=0.05 * times, atol=0.02 * times * size, err_msg=context)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {*ACCELERATOR, *MADE_OF_LISTED}])
def test_accelerators_leave_the_others_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the list of accelerators, ops that are not in it answer in the dtype that they have outside of regions."""
    monkeypatch.setattr(amp.state, "CPU", ACCELERATOR)
    for call in calls_of(name):
        for dtype in ("float32", "float16"):
            outside, _ = run(tc, OPS[name].function, call, dtype)
            with tc.autocast("cpu", dtype=tc.float16):
                inside, _ = run(tc, OPS[name].function, call, dtype)
            assert type(inside) is type(outside), f"{dtype}: {inside}"
            for a, b in zip(flat(inside), flat(outside), strict=True):
                assert not hasattr(b, "dtype") or a.dtype is b.dtype, f"{dtype}: {a.dtype} instead of {b.dtype}"
