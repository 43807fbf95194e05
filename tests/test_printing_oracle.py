"""The text of random tensors, under random options, is PyTorch's."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorcore import dtypes
from tensorcore.printing import get_printoptions, printoptions, set_printoptions
from tests.printing import default_options, text, text_without_values  # noqa: F401 - a fixture for every test

nan, inf = float("nan"), float("inf")
FINITE = [0.0, -0.0, 0.5, 1.0, -3.0, 12.0, 999.0, 1000.0, 1001.0, 0.1, 33.3333, 1e-4, 9.9e-5, 1e8, 1e8 + 8, 1e-12, 1e12]
SPECIAL = [nan, inf, -inf]
SHAPES = st.one_of(
    hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
    hnp.array_shapes(min_dims=1, max_dims=2, min_side=5, max_side=40),
    st.tuples(st.integers(900, 1100)),
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 9),
        "threshold": st.sampled_from([-1, 0, 1, 5, 20, 100, inf]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.sampled_from([-3, 1, 10, 20, 33.5, 40, 60, 100, 200]),
        "profile": st.sampled_from(["default", "short", "full", "none of them"]),
        "sci_mode": st.sampled_from([True, False, None]),
    },
)
ORACLE = settings(
    max_examples=300, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def floats(draw, shape):
    """A float64 array of one character: whole, ordinary, far-reaching, or anything."""
    elements = draw(
        st.sampled_from(
            [
                st.integers(-20, 2000).map(float),
                st.floats(-30, 30, width=32),
                st.sampled_from(FINITE),
                st.sampled_from(FINITE + SPECIAL),
                st.sampled_from([0.0, -0.0, *SPECIAL]),
                st.floats(width=32),
            ]
        )
    )
    return draw(hnp.arrays(np.float64, shape, elements=elements))


@st.composite
def tensors(draw, kinds=("bool", "integer", "floating", "complex")):
    """An array of values and the dtype that it is to have."""
    dtype = draw(st.sampled_from([one for one in dtypes.ALL if one.kind in kinds]))
    shape = draw(SHAPES)
    if dtype.kind == "floating":
        values = draw(floats(shape))
    elif dtype.kind == "complex":
        values = np.empty(shape, np.complex128)
        values.real, values.imag = draw(floats(shape)), draw(floats(shape))
    else:
        values = draw(hnp.arrays(dtype.numpy, shape))
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy), dtype


def as_torch(torch, values, dtype):
    """The same values in PyTorch."""
    if dtype is dtypes.bfloat16:
        return torch.from_numpy(values.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(values)


def torch_text(torch, tensor, options, default_dtype=dtypes.float32):
    """What PyTorch prints with these options, which it forgets again."""
    torch.set_default_dtype(getattr(torch, default_dtype.name))
    torch.set_printoptions(**options)
    try:
        return repr(tensor)
    finally:
        torch.set_printoptions(profile="default")
        torch.set_default_dtype(torch.float32)


@pytest.mark.oracle
@ORACLE
@given(tensor=tensors(), options=OPTIONS, default=st.sampled_from([dtypes.float32, dtypes.float64, dtypes.bfloat16]))
def test_the_text_is_that_of_torch(torch, tensor, options, default):
    """Any values of any dtype and shape print as in PyTorch under any options and default dtype."""
    values, dtype = tensor
    expected = torch_text(torch, as_torch(torch, values, dtype), options, default)
    with printoptions(**options):
        assert text(values, dtype, default_dtype=default) == expected


@pytest.mark.oracle
@ORACLE
@given(tensor=tensors(kinds=("floating", "complex")), options=OPTIONS, recorded=st.sampled_from(["mul", "clone", None]))
def test_gradient_suffixes_are_those_of_torch(torch, tensor, options, recorded):
    """requires_grad and grad_fn are placed and wrapped as in PyTorch."""
    values, dtype = tensor
    theirs = as_torch(torch, values, dtype).requires_grad_()
    node = None
    if recorded is not None:
        theirs = theirs.mul(1) if recorded == "mul" else theirs.clone()
        node = type(theirs.grad_fn).__name__
    expected = torch_text(torch, theirs, options)
    # Complex multiplication by one may turn an infinity into a nan, so the values come from there.
    host = theirs.detach().float().numpy() if dtype is dtypes.bfloat16 else theirs.detach().numpy()
    with printoptions(**options):
        assert text(host, dtype, requires_grad=True, grad_fn=node) == expected


@pytest.mark.oracle
@ORACLE
@given(shape=SHAPES, dtype=st.sampled_from(dtypes.ALL), options=OPTIONS)
def test_meta_tensors_are_those_of_torch(torch, shape, dtype, options):
    """A tensor without values prints as a meta tensor does."""
    theirs = torch.empty(shape, dtype=getattr(torch, dtype.name), device="meta")
    expected = torch_text(torch, theirs, options)
    with printoptions(**options):
        assert text_without_values(shape, dtype) == expected


@pytest.mark.oracle
@settings(ORACLE, max_examples=100)
@given(calls=st.lists(OPTIONS, min_size=1, max_size=4))
def test_options_add_up_as_in_torch(torch, calls):
    """After any calls of set_printoptions the options are those PyTorch has."""
    set_printoptions(profile="default")
    try:
        for options in calls:
            torch.set_printoptions(**options)
            set_printoptions(**options)
        assert get_printoptions() == vars(torch._tensor_str.PRINT_OPTS)
    finally:
        torch.set_printoptions(profile="default")
