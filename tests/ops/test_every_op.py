"""What holds for every op in the registry: it is documented, sampled, and agrees with PyTorch in every respect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import LinAlgError
from tensorcore.ops.define import OPS
from tensorcore.testing.calls import TIED
from tensorcore.testing.invariants import REGULAR
from tests.ops.registry_calls import (
    RANDOM,
    UNDEFINED,
    Call,
    at_specials,
    calls_of,
    counterpart,
    degenerate,
    derivative,
    flat,
    misfits,
    numbers,
    own,
    refused,
    run,
    same,
)

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64")
LAYOUTS = ("contiguous", "transposed", "expanded", "empty")
SAMPLED = sorted(
    name
    for name, op in OPS.items()
    if op.samples is not None and op.function is not None and name not in RANDOM | UNDEFINED
)

# Families whose ops are tried at NaN, infinities and the like besides the elementwise ones.
REDUCING = {
    "bessel",
    "gamma",
    "probability",
    "reduce",
    "scan",
    "statistics",
    "sort",
    "activation",
    "choice",
    "explog",
    "compare",
    "arithmetic",
    "rounding",
}

# Where we differ from PyTorch on purpose: (op, dtype or check) -> why. An entry that is not needed fails the suite.
_TRIGAMMA = "PyTorch's trigamma has an error of 5e-10; test_special.py has ours against exact values"
_0D = "PyTorch returns a 0-d tensor unseen; a dtype is refused here whatever the shape"
_NO_ELEMENTS = (
    "PyTorch does not look at the dtype of a tensor without elements; a dtype is refused here whatever the shape"
)
_UNSET = "PyTorch leaves a part of a matrix of 16 bits unset; it is computed in single precision here"
_FUSED = "PyTorch multiplies and adds in one rounding: a product that overflows may return"
_WELFORD = "PyTorch's running mean is NaN beside an infinity; the mean is infinite"
_COPIED = "PyTorch views an input there that only a copy could give that shape"
_UNWRITTEN = "PyTorch leaves the mean over no samples unwritten; it is NaN"
_NARROW = "PyTorch rounds the weights to the narrow dtype before it takes the values"
_VARARGS = "one function serves as the method too, which takes the numbers one by one"
_SINGLE = "PyTorch computes it in single precision, where squares and angles lose digits; here it is done in double"
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("chebyshev_polynomial_t", "int32"): _SINGLE,
    ("chebyshev_polynomial_t", "int64"): _SINGLE,
    ("chebyshev_polynomial_t", "uint8"): _SINGLE,
    ("cholesky", "no columns"): _NO_ELEMENTS,
    ("cholesky", "no rows"): _NO_ELEMENTS,
    ("erfcx", "float32"): _SINGLE,
    ("erfcx", "special"): _SINGLE,
    ("linalg_cond", "gradient"): "PyTorch writes over a tensor that its own gradient needs",
    ("linalg_cond", "no columns"): _NO_ELEMENTS,
    ("linalg_cond", "no rows"): _NO_ELEMENTS,
    ("linalg_cond", "shape"): "a column that is repeated makes the condition infinite, up to roundoff",
    ("linalg_eigh", "no rows"): _NO_ELEMENTS,
    ("linalg_eigvalsh", "no rows"): _NO_ELEMENTS,
    (
        "linalg_lstsq",
        "shape",
    ): "PyTorch takes one matrix for a whole batch only where it has as many rows as there are matrices",
    ("linalg_lu", "no columns"): _NO_ELEMENTS,
    ("linalg_lu", "no rows"): _NO_ELEMENTS,
    ("linalg_lu_factor", "no columns"): _NO_ELEMENTS,
    ("linalg_lu_factor", "no rows"): _NO_ELEMENTS,
    ("linalg_lu_factor_ex", "no columns"): _NO_ELEMENTS,
    ("linalg_lu_factor_ex", "no rows"): _NO_ELEMENTS,
    ("linalg_matrix_rank", "no columns"): _NO_ELEMENTS,
    ("linalg_matrix_rank", "no rows"): _NO_ELEMENTS,
    ("linalg_tensorsolve", "no columns"): _NO_ELEMENTS,
    ("linalg_tensorsolve", "no dims"): _NO_ELEMENTS,
    ("linalg_tensorsolve", "no rows"): _NO_ELEMENTS,
    ("lu", "no columns"): _NO_ELEMENTS,
    ("lu", "no rows"): _NO_ELEMENTS,
    ("lu_unpack", "shape"): "PyTorch reads beyond the end of the swaps where they have fewer dims than the factors",
    ("matrix_exp", "bfloat16"): _UNSET,
    ("matrix_exp", "float16"): _UNSET,
    ("igamma", "special"): "PyTorch is 0 where both are denormal; the limit is 1",
    ("adaptive_avg_pool1d", "no rows"): _NO_ELEMENTS,
    ("adaptive_avg_pool2d", "no rows"): _NO_ELEMENTS,
    ("adaptive_avg_pool2d", "shape"): "PyTorch takes any number of dims for an output of size 1, and for no other",
    ("adaptive_avg_pool3d", "shape"): "PyTorch takes any number of dims for an output of size 1, and for no other",
    (
        "add",
        "special",
    ): "PyTorch multiplies and adds in one rounding where alpha is not 1: a product that overflows may return",
    ("addcmul", "special"): _FUSED,
    ("linalg_vector_norm", "special"): "squares are summed in double here: of huge numbers they overflow in PyTorch",
    ("norm", "special"): "squares are summed in double here: of huge numbers they overflow in PyTorch",
    ("as_strided_scatter", "gradient"): "PyTorch gives replaced elements a gradient and others none",
    ("batch_norm", "no columns"): _NO_ELEMENTS,
    ("batch_norm", "no rows"): _NO_ELEMENTS,
    ("complex", "float16"): "there is no complex dtype of float16 here",
    ("conv_tbc", "expanded"): _COPIED,
    ("conv_tbc", "transposed"): _COPIED,
    ("conv_transpose2d", "float16"): "PyTorch rounds its partial sums to float16",
    ("cummax", "complex64"): _0D,
    ("cummin", "complex64"): _0D,
    ("digamma", "gradient"): _TRIGAMMA,
    ("flip", "dim"): _VARARGS,
    (
        "fmod",
        "special",
    ): "PyTorch's vectorised fmod is NaN where the quotient overflows, the remainder exists all the same",
    ("fractional_max_pool2d", "no rows"): _NO_ELEMENTS,
    ("fractional_max_pool3d", "no rows"): _NO_ELEMENTS,
    ("gelu", "special"): "PyTorch's vectorised gelu of float32 is NaN at infinity",
    ("grid_sample", "no rows"): _NO_ELEMENTS,
    ("hardsigmoid", "gradient"): "PyTorch has 1 / 6 in single precision there",
    ("ifft2", "uint8"): "numbers up to 255 have few digits left in single precision where they cancel, on both sides",
    ("ifftn", "uint8"): "numbers up to 255 have few digits left in single precision where they cancel, on both sides",
    ("inner", "bool"): "PyTorch refuses bools except where a stride is 0",
    ("instance_norm", "no columns"): _NO_ELEMENTS,
    ("instance_norm", "no rows"): _NO_ELEMENTS,
    ("interpolate", "no rows"): _NO_ELEMENTS,
    ("kthvalue", "complex64"): _0D,
    ("ldexp", "gradient"): "PyTorch's formula takes 2 to an integer power among the integers, where 2**-3 is 0",
    ("lgamma", "gradient"): _TRIGAMMA,
    ("local_response_norm", "transposed"): _COPIED,
    ("log_softmax", "no columns"): _NO_ELEMENTS,
    ("log_softmax", "no rows"): _NO_ELEMENTS,
    ("matmul", "bool"): "PyTorch refuses bools except where there is nothing to multiply",
    ("max_unpool2d", "gradient"): "PyTorch fails where a gradient that is not contiguous is to be flattened",
    ("max_unpool3d", "gradient"): "PyTorch fails where a gradient that is not contiguous is to be flattened",
    ("mode", "complex64"): _0D,
    ("mode", "special"): "PyTorch's count depends on where NaN stands; here all NaN count as one value, the largest",
    ("multi_head_attention_forward", "bfloat16"): _NARROW,
    ("multi_head_attention_forward", "float16"): _NARROW,
    ("multi_head_attention_forward", "no rows"): _NO_ELEMENTS,
    ("multi_margin_loss", "no rows"): _UNWRITTEN,
    ("multilabel_margin_loss", "no rows"): _UNWRITTEN,
    ("mvlgamma", "gradient"): _TRIGAMMA,
    (
        "narrow_copy",
        "dim",
    ): "PyTorch fails in an assertion of its own, with RuntimeError; other ops raise IndexError for it",
    ("permute", "dim"): _VARARGS,
    ("pixel_unshuffle", "no columns"): "PyTorch returns an empty input in its old shape",
    ("pixel_unshuffle", "no rows"): "PyTorch returns an empty input in its old shape",
    ("polygamma", "float64"): _TRIGAMMA,
    ("polygamma", "gradient"): _TRIGAMMA,
    ("polygamma", "no dims"): _TRIGAMMA,
    ("polygamma", "shape"): _TRIGAMMA,
    ("polygamma", "special"): _TRIGAMMA,
    (
        "prod",
        "special",
    ): "whether a product leaves the range depends on the order of its factors, which nobody promises",
    (
        "remainder",
        "special",
    ): "PyTorch's vectorised fmod is NaN where the quotient overflows, the remainder exists all the same",
    ("rsub", "special"): _FUSED,
    ("scaled_dot_product_attention", "no columns"): _NO_ELEMENTS,
    ("scaled_dot_product_attention", "no rows"): _NO_ELEMENTS,
    ("searchsorted", "special"): "of numbers that are out of order nobody says what is found",
    ("softmax", "no columns"): _NO_ELEMENTS,
    ("softmax", "no rows"): _NO_ELEMENTS,
    ("softmin", "no columns"): _NO_ELEMENTS,
    ("softmin", "no rows"): _NO_ELEMENTS,
    ("std_mean", "special"): _WELFORD,
    ("stft", "gradient"): "PyTorch takes the windows of an expanded signal for windows of its memory",
    ("sub", "special"): _FUSED,
    ("tile", "dim"): _VARARGS,
    (
        "triplet_margin_loss",
        "uint8",
    ): "the difference of two distances of 255 has few digits in single precision, on both sides",
    ("vander", "gradient"): "PyTorch writes over what its own backward needs, and fails",
    ("triplet_margin_with_distance_loss", "uint8"): "as of triplet_margin_loss",
    ("var_mean", "special"): _WELFORD,
    ("view_as_complex", "float16"): "there is no complex dtype of float16 here",
    ("view_as_complex_copy", "float16"): "there is no complex dtype of float16 here",
}

# Those of them that depend on the processor that PyTorch finds: by rounding, or by the loops that it has for it. And what NumPy
# does as PyTorch, where our kernels in C were not built.
ROUNDED = {("linalg_vector_norm", "special"), ("conv_transpose2d", "float16"), ("gelu", "special"), ("ifft2", "uint8"), ("ifftn", "uint8"),
           ("triplet_margin_loss", "uint8"), ("triplet_margin_with_distance_loss", "uint8"), ("linalg_cond", "shape")}  # fmt: skip

Difference = tuple[str, str]


def layouts(name: str, every: tuple[str, ...]) -> list[str]:
    """Those of the layouts in which the op is defined."""
    return [one for one in every if one != "expanded" or name not in REGULAR]


def test_every_op_is_documented_and_sampled() -> None:
    """An op without a sentence or without samples cannot be entered unnoticed."""
    assert [name for name, op in OPS.items() if not op.doc.strip()] == []
    assert [name for name, op in OPS.items() if op.samples is None] == []


def test_exceptions_name_ops_that_exist() -> None:
    """An exception for an op that was renamed or removed would otherwise stay unnoticed."""
    assert set(EXCEPTIONS) >= ROUNDED
    assert [name for name, _ in EXCEPTIONS if name not in SAMPLED] == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_op_agrees_with_pytorch(name: str, torch: Any) -> None:
    """Value, dtype and shape, or the kind of error, are PyTorch's for every dtype and layout."""

    def differences(function: Callable[..., Any]) -> Iterator[Difference]:
        for number, call in enumerate(calls_of(name)):
            for dtype in DTYPES:
                for layout in layouts(name, LAYOUTS):
                    loose = name in TIED and (layout == "expanded" or dtype not in ("float64", "float32"))
                    context = f"call {number} {dtype} {layout}"
                    kind = layout if (name, layout) in EXCEPTIONS else dtype
                    yield kind, difference(torch, name, function, call, dtype, context, layout, loose=loose)

    judge(torch, name, DTYPES + LAYOUTS, differences)


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_gradient_agrees_with_pytorch(name: str, torch: Any) -> None:
    """First and second derivatives are PyTorch's, on every layout."""

    def differences(function: Callable[..., Any]) -> Iterator[Difference]:
        for number, call in enumerate(calls_of(name)):
            for layout in layouts(name, ("contiguous", "transposed", "expanded")):
                if name not in TIED or layout != "expanded":
                    yield (
                        "gradient",
                        gradient_difference(torch, name, function, call, layout, f"call {number} {layout}"),
                    )

    judge(torch, name, ("gradient",), differences)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in SAMPLED
        if OPS[name].kind == "elementwise" or str(OPS[name].function.__module__).rpartition(".")[2] in REDUCING
    ],
)
def test_special_values_agree_with_pytorch(name: str, torch: Any) -> None:
    """At NaN, infinities, both zeros, denormal and huge numbers the results are PyTorch's."""

    def differences(function: Callable[..., Any]) -> Iterator[Difference]:
        for number, call in enumerate(calls_of(name)):
            if not 1 <= len(call.floats()) <= 3:
                continue
            for dtype in ("float64", "float32"):
                for what, special in at_specials(call, dtype, OPS[name].kind == "elementwise"):
                    context = f"call {number} {dtype} {what}"
                    yield "special", difference(torch, name, function, special, dtype, context, loose=name in TIED)

    judge(torch, name, ("special",), differences)


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_empty_and_0d_inputs_agree_with_pytorch(name: str, torch: Any) -> None:
    """Tensors without elements or without dims give PyTorch's results wherever PyTorch takes them."""

    def differences(function: Callable[..., Any]) -> Iterator[Difference]:
        for number, call in enumerate(calls_of(name)):
            for what, changed in degenerate(call):
                for dtype in ("float64", "int64"):
                    context = f"call {number} {dtype} {what}"
                    yield what, difference(torch, name, function, changed, dtype, context, errors=False)

    judge(torch, name, ("no rows", "no columns", "no dims"), differences)


@pytest.mark.oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_errors_are_of_the_kind_that_pytorch_raises(name: str, torch: Any) -> None:
    """A dim that does not exist, and shapes that do not fit, raise what an ``except`` for PyTorch catches."""

    loose = name in TIED

    def differences(function: Callable[..., Any]) -> Iterator[Difference]:
        for number, call in enumerate(calls_of(name)):
            far = refused(name, call)
            if far is not None:
                context = f"call {number} dim 99"
                yield "dim", difference(torch, name, function, far, "float64", context, loose=loose, strict=True)
            for what, misfit in misfits(call):
                context = f"call {number} {what}"
                yield "shape", difference(torch, name, function, misfit, "float64", context, loose=loose, strict=True)

    judge(torch, name, ("dim", "shape"), differences)


def judge(
    torch: Any, name: str, kinds: Iterable[str], differences: Callable[[Callable[..., Any]], Iterator[Difference]]
) -> None:
    """Fail for a difference that is no exception, and for an exception without a difference."""
    function = counterpart(torch, name)
    if function is None:
        pytest.skip(f"PyTorch has no function named {name}")
    found: dict[str, str] = {}
    for kind, text in differences(function):
        if text:
            found.setdefault(kind, text)
    excused = {kind for kind in kinds if (name, kind) in EXCEPTIONS}
    unexpected = [f"{name} {kind}: {text}" for kind, text in found.items() if kind not in excused]
    assert not unexpected, "\n".join(unexpected)
    stale = sorted(kind for kind in excused - set(found) if (name, kind) not in ROUNDED)
    assert not stale, f"{name}: agrees with PyTorch for {stale}; strike it off EXCEPTIONS"


def difference(
    torch: Any, name: str, function: Callable[..., Any], call: Call, dtype: str, context: str,
    layout: str = "contiguous", *, loose: bool = False, errors: bool = True, strict: bool = False,
) -> str:  # fmt: skip
    """What one call does otherwise than in PyTorch, or nothing.

    Args:
        loose: compare only the first of several results.
        errors: whether an error in PyTorch must be one here.
        strict: whether every error must be of PyTorch's type, not of some kind of RuntimeError.
    """
    theirs, _ = run(torch, function, call, dtype, layout)
    if isinstance(theirs, Exception) and not errors:
        return ""
    ours, _ = run(tc, own(name), call, dtype, layout)
    if isinstance(theirs, Exception):
        if "not implemented for" in str(theirs) and not isinstance(ours, Exception):
            return ""  # a dtype that PyTorch's CPU kernel lacks may work here
        if not isinstance(ours, Exception):
            return f"{context}: PyTorch raises {theirs!r}, got {ours}"
        kind = LinAlgError if isinstance(theirs, torch.linalg.LinAlgError) else type(theirs)
        if isinstance(ours, kind) or (isinstance(theirs, RuntimeError | NotImplementedError) and not strict):
            return ""
        return f"{context}: {ours!r} for {theirs!r}"
    if isinstance(ours, Exception):
        return f"{context}: {ours!r}"
    try:
        same(*((flat(ours)[0], flat(theirs)[0]) if loose else (ours, theirs)), dtype, context)
    except AssertionError as error:
        return f"{context}: {error}"
    return ""


def gradient_difference(
    torch: Any, name: str, function: Callable[..., Any], call: Call, layout: str, context: str
) -> str:
    """What the first or second derivative of one call is otherwise than in PyTorch, or nothing."""
    theirs, their_inputs = run(torch, function, call, "float64", layout, grad=True)
    ours, our_inputs = run(tc, own(name), call, "float64", layout, grad=True)
    if isinstance(theirs, Exception):
        return ""
    if isinstance(ours, Exception):
        return f"{context}: {ours!r}"
    for order in (1, 2):
        try:
            theirs = derivative(torch, theirs, their_inputs)
        except (RuntimeError, NotImplementedError) as error:
            # PyTorch has no formula here; ours is checked numerically elsewhere.
            return "" if "not implemented" in str(error) else f"{context}: {error!r}"
        ours = derivative(tc, ours, our_inputs)
        if theirs is None or ours is None:
            # A derivative that is zero everywhere may be recorded as such or not at all; so may that of NaN.
            known = ours if theirs is None else theirs
            zero = known is None or all(not np.nan_to_num(numbers(one)).any() for one in flat(known))
            return "" if zero else f"{context} order {order}: only one of the two has a derivative"
        try:
            same(ours, theirs, "float64", f"{context} order {order}")
        except AssertionError as error:
            return f"{context}: {error}"
    return ""
