"""Printed tensors: literal texts for each rule."""

from textwrap import dedent

import numpy as np
import pytest

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.printing import format_number, get_printoptions, printoptions, set_printoptions
from tests.printing import default_options, text, text_without_values  # noqa: F401 - a fixture for every test

nan, inf = float("nan"), float("inf")
DEFAULTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


# The format of floating values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], "tensor([1., 2., 3.])"),
        ([1.5, -2], "tensor([ 1.5000, -2.0000])"),
        ([0.0, -0.0], "tensor([0., -0.])"),
        ([1.0, -0.0, nan, inf], "tensor([1., -0., nan, inf])"),
        ([1.5, nan, -inf], "tensor([1.5000,    nan,   -inf])"),
        ([nan, inf, -inf], "tensor([nan, inf, -inf])"),
        ([1, 1000], "tensor([   1., 1000.])"),
        ([1, 1001], "tensor([1.0000e+00, 1.0010e+03])"),
        ([1e8], "tensor([100000000.])"),
        ([1e8 + 8], "tensor([1.0000e+08])"),
        ([1.0001e-4], "tensor([0.0001])"),
        ([9.9e-5], "tensor([9.9000e-05])"),
        ([0.0, 0.0625, 62.5], "tensor([ 0.0000,  0.0625, 62.5000])"),
        ([0.0, 0.0625, 63.0], "tensor([0.0000e+00, 6.2500e-02, 6.3000e+01])"),
        ([1e-30, nan], "tensor([1.0000e-30,        nan])"),
    ],
)
def test_floats(values, expected):
    """Whole values print as "1.", others with four digits, and far-reaching ones in scientific notation."""
    assert text(values) == expected


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (dtypes.float16, "tensor([0.1000, 2.0000,   -inf], dtype=torch.float16)"),
        (dtypes.bfloat16, "tensor([0.1001, 2.0000,   -inf], dtype=torch.bfloat16)"),
        (dtypes.float64, "tensor([0.1000, 2.0000,   -inf], dtype=torch.float64)"),
    ],
)
def test_other_floating_dtypes(dtype, expected):
    """A floating dtype other than the default one is named, and its values are printed as they were rounded."""
    assert text([0.1, 2, -inf], dtype) == expected


def test_scientific_notation_is_decided_on_the_stored_value():
    """1e-4 is below the limit of scientific notation as float32 and not as float64."""
    assert text([1e-4]) == "tensor([1.0000e-04])"
    assert text([1e-4], dtypes.float64) == "tensor([0.0001], dtype=torch.float64)"


def test_the_whole_range_of_float64():
    """The ratio of the largest to the smallest float64 overflows and still prints."""
    assert text([1.7e308, 5e-324], dtypes.float64) == "tensor([1.7000e+308, 4.9407e-324], dtype=torch.float64)"


# The other kinds


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1 + 2j, -1.5 - 10j], "tensor([ 1.0000+2.j, -1.5000-10.j])"),
        ([complex(nan, -inf), complex(-0.0, -0.0)], "tensor([nan-infj, -0.-0.j])"),
        ([1e9 + 1j, 2 + 0.5j], "tensor([1.0000e+09+1.0000j, 2.0000e+00+0.5000j])"),
        (3j, "tensor(0.+3.j)"),
    ],
)
def test_complex(values, expected):
    """Real and imaginary parts are formatted apart, and only the real ones are padded."""
    assert text(values, dtypes.complex64) == expected


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, -20, 300], dtypes.int64, "tensor([  1, -20, 300])"),
        ([0, 255], dtypes.uint8, "tensor([  0, 255], dtype=torch.uint8)"),
        ([-(2**63), 2**63 - 1], dtypes.int64, "tensor([-9223372036854775808,  9223372036854775807])"),
        ([True, False], dtypes.bool_, "tensor([ True, False])"),
        (-7, dtypes.int16, "tensor(-7, dtype=torch.int16)"),
        (True, dtypes.bool_, "tensor(True)"),
        (1.5, dtypes.float32, "tensor(1.5000)"),
    ],
)
def test_integers_bools_and_no_dims(values, dtype, expected):
    """Integers and bools line up on the right; a tensor of no dims has no brackets."""
    assert text(values, dtype) == expected


def test_the_default_dtype_decides_which_dtypes_are_named():
    """With float64 as default, float32 and complex64 are named, float64 and complex128 are not."""
    named = {
        one.name: text([1], one, default_dtype=dtypes.float64)
        for one in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
    }
    assert named == {
        "float32": "tensor([1.], dtype=torch.float32)",
        "float64": "tensor([1.])",
        "complex64": "tensor([1.+0.j], dtype=torch.complex64)",
        "complex128": "tensor([1.+0.j])",
    }


# Brackets, lines and summaries


def test_a_long_row_breaks_between_elements():
    """A row longer than a line continues under its first element."""
    assert text(range(30), dtypes.int64) == dedent("""\
        tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
                18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])""")


@pytest.mark.parametrize(
    ("linewidth", "values", "dtype", "expected"),
    [
        (16, [[1, 2, 3]], dtypes.int64, "tensor([[1, 2,\n         3]])"),
        (17, [[1, 2, 3]], dtypes.int64, "tensor([[1, 2, 3]])"),
        (27, [1 + 1j] * 3, dtypes.complex64, "tensor([1.+1.j, 1.+1.j,\n        1.+1.j])"),
        (28, [1 + 1j] * 3, dtypes.complex64, "tensor([1.+1.j, 1.+1.j, 1.+1.j])"),
    ],
)
def test_how_many_elements_fill_a_line(linewidth, values, dtype, expected):
    """Each element counts its width and two more, after the indent of its row."""
    with printoptions(linewidth=linewidth):
        assert text(values, dtype) == expected


def test_blank_lines_between_matrices():
    """Matrices are one blank line apart, cubes two."""
    assert text(np.arange(16).reshape(2, 2, 2, 2), dtypes.int64) == dedent("""\
        tensor([[[[ 0,  1],
                  [ 2,  3]],

                 [[ 4,  5],
                  [ 6,  7]]],


                [[[ 8,  9],
                  [10, 11]],

                 [[12, 13],
                  [14, 15]]]])""")


def test_the_prefix_sets_the_indent():
    """A subclass prints its own name, and later lines are indented by its length."""
    printed = text(np.ones((2, 3)), prefix="S(", grad_fn="AliasBackward0", requires_grad=True)
    assert printed == dedent("""\
        S([[1., 1., 1.],
           [1., 1., 1.]], grad_fn=<AliasBackward0>)""")


def test_a_thousand_elements_are_printed_and_one_more_is_summarised():
    """More elements than the threshold leave three at each end."""
    assert "..." not in text(range(1000), dtypes.int64)
    assert text(range(1001), dtypes.int64) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"


def test_a_summary_of_a_matrix():
    """Each dim longer than its two edges is cut."""
    assert text(np.arange(2000).reshape(40, 50), dtypes.int64) == dedent("""\
        tensor([[   0,    1,    2,  ...,   47,   48,   49],
                [  50,   51,   52,  ...,   97,   98,   99],
                [ 100,  101,  102,  ...,  147,  148,  149],
                ...,
                [1850, 1851, 1852,  ..., 1897, 1898, 1899],
                [1900, 1901, 1902,  ..., 1947, 1948, 1949],
                [1950, 1951, 1952,  ..., 1997, 1998, 1999]])""")


def test_a_summary_cuts_only_the_long_dims():
    """A dim that is no longer than its two edges stays whole in a summary."""
    with printoptions(threshold=5, edgeitems=1):
        assert text(np.arange(12).reshape(3, 2, 2), dtypes.int64) == dedent("""\
            tensor([[[ 0,  1],
                     [ 2,  3]],

                    ...,

                    [[ 8,  9],
                     [10, 11]]])""")


def test_a_summary_is_formatted_by_what_it_shows():
    """A value that is not shown changes neither the width nor the notation."""
    values = np.ones(3000)
    values[1500] = 1.23456789e12
    assert text(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_a_summary_reads_only_what_it_shows():
    """A tensor of 8 TB, all one number in memory, prints: its other elements are never copied or formatted."""
    assert text(np.broadcast_to(np.float64(0.5), (10**6, 10**6)), dtypes.float64) == dedent("""\
        tensor([[0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000],
                [0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000],
                [0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000],
                ...,
                [0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000],
                [0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000],
                [0.5000, 0.5000, 0.5000,  ..., 0.5000, 0.5000, 0.5000]],
               dtype=torch.float64)""")


def test_a_view_prints_its_own_order():
    """A transposed, reversed array prints in the order of its dims, not of its memory."""
    assert text(np.arange(6).reshape(2, 3).T[::-1], dtypes.int64) == dedent("""\
        tensor([[2, 5],
                [1, 4],
                [0, 3]])""")


# Suffixes


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"requires_grad": True}, "tensor([2.], requires_grad=True)"),
        ({"grad_fn": "MulBackward0"}, "tensor([2.], grad_fn=<MulBackward0>)"),
        ({"grad_fn": "MulBackward0", "requires_grad": True}, "tensor([2.], grad_fn=<MulBackward0>)"),
        ({"device": "cuda:0"}, "tensor([2.], device='cuda:0')"),
        (
            {"device": "cuda:0", "dtype": dtypes.float16, "requires_grad": True},
            "tensor([2.], device='cuda:0', dtype=torch.float16, requires_grad=True)",
        ),
    ],
)
def test_suffixes(options, expected):
    """Device, dtype and gradient follow the values in this order, and a node hides requires_grad."""
    assert text([2], **options) == expected


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((0,), dtypes.float32, "tensor([])"),
        ((0,), dtypes.int64, "tensor([], dtype=torch.int64)"),
        ((0,), dtypes.complex64, "tensor([], dtype=torch.complex64)"),
        ((0, 3), dtypes.float32, "tensor([], size=(0, 3))"),
        ((2, 0, 3), dtypes.bool_, "tensor([], size=(2, 0, 3), dtype=torch.bool)"),
    ],
)
def test_empty(shape, dtype, expected):
    """A tensor without elements gives its size unless it is (0,), and its dtype unless it is the default one."""
    assert text(np.empty(shape), dtype) == expected


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((2, 3), {}, "tensor(..., device='meta', size=(2, 3))"),
        ((), {}, "tensor(..., device='meta', size=())"),
        ((3,), {"dtype": dtypes.int64}, "tensor(..., device='meta', size=(3,), dtype=torch.int64)"),
        ((0,), {"requires_grad": True}, "tensor(..., device='meta', size=(0,), requires_grad=True)"),
        ((2,), {"device": None, "grad_fn": "MulBackward0"}, "tensor(..., size=(2,), grad_fn=<MulBackward0>)"),
    ],
)
def test_no_values(shape, options, expected):
    """A meta or lazy tensor prints dots, its size, and any dtype that is not the default one."""
    assert text_without_values(shape, **options) == expected


def test_a_suffix_that_does_not_fit_starts_a_line():
    """Suffixes fill the last line of the values and go on below it."""
    with printoptions(linewidth=40):
        assert text([1, 1, 1], dtypes.float64, requires_grad=True) == dedent("""\
            tensor([1., 1., 1.],
                   dtype=torch.float64,
                   requires_grad=True)""")
        assert text([1, 1], dtypes.float64, grad_fn="MulBackward0") == dedent("""\
            tensor([1., 1.], dtype=torch.float64,
                   grad_fn=<MulBackward0>)""")


def test_the_last_suffix_that_fits():
    """One more character in the line moves the suffix to the next."""
    with printoptions(linewidth=40):
        assert text([1], tensor_contents="x" * 11, requires_grad=True) == "tensor(xxxxxxxxxxx, requires_grad=True)"
        assert text([1], tensor_contents="x" * 12, requires_grad=True) == dedent("""\
            tensor(xxxxxxxxxxxx,
                   requires_grad=True)""")


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1], "tensor(here)"), (np.empty((0, 2)), "tensor(here, size=(0, 2))")],
)
def test_other_contents(values, expected):
    """Contents that are given replace the elements and leave the suffixes."""
    assert text(values, tensor_contents="here") == expected
    assert text_without_values((2,), tensor_contents="here") == "tensor(here, device='meta', size=(2,))"


# Options


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("default", DEFAULTS),
        ("short", DEFAULTS | {"precision": 2, "edgeitems": 2}),
        ("full", DEFAULTS | {"threshold": inf}),
        ("SHORT", DEFAULTS | {"precision": 2, "edgeitems": 2}),
    ],
)
def test_profiles(profile, expected):
    """A profile, in any case, sets all options."""
    set_printoptions(precision=9, threshold=7, edgeitems=5, linewidth=3, sci_mode=True)
    set_printoptions(profile=profile)
    assert get_printoptions() == expected


def test_an_option_beside_a_profile_wins():
    """The profile is where the other options start from."""
    set_printoptions(profile="short", precision=7)
    assert get_printoptions() == DEFAULTS | {"precision": 7, "edgeitems": 2}


def test_an_unknown_profile_is_ignored():
    """PyTorch ignores the name of a profile that it does not have, so programs that pass one keep running."""
    set_printoptions(profile="sparse", precision=3)
    assert get_printoptions() == DEFAULTS | {"precision": 3}


def test_every_call_sets_sci_mode():
    """A call that does not name sci_mode puts it back to automatic."""
    set_printoptions(sci_mode=True)
    assert get_printoptions()["sci_mode"] is True
    set_printoptions(precision=2)
    assert get_printoptions() == DEFAULTS | {"precision": 2}


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"precision": 2}, [1.25, 3.754], "tensor([1.25, 3.75])"),
        ({"precision": 0}, [1.25, 3.75], "tensor([1, 4])"),
        ({"sci_mode": True}, [1, 2], "tensor([1.0000e+00, 2.0000e+00])"),
        ({"sci_mode": True}, [0, 0], "tensor([0., 0.])"),
        ({"sci_mode": False}, [1, 1e9], "tensor([         1., 1000000000.])"),
        ({"sci_mode": False}, [0.5, 1e9, 1e-9], "tensor([         0.5000, 1000000000.0000,          0.0000])"),
        ({"linewidth": 20}, [1.5, 2], "tensor([1.5000,\n        2.0000])"),
        ({"linewidth": -5}, [1, 2], "tensor([1.,\n        2.])"),
        ({"threshold": 2, "edgeitems": 1}, [1, 2, 3], "tensor([1.,  ..., 3.])"),
        ({"threshold": 2, "edgeitems": 0}, [1, 2, 3], "tensor([...], size=(3,))"),
        ({"edgeitems": 0}, [1, 2], "tensor([1., 2.], size=(2,))"),
        ({"edgeitems": 0}, 1, "tensor(1., size=())"),
        ({"edgeitems": 0}, [], "tensor([])"),
    ],
)
def test_options_change_the_text(options, values, expected):
    """Each option has the effect it has in PyTorch."""
    with printoptions(**options):
        assert text(values) == expected


def test_printoptions_ends_with_its_block():
    """The options of a with block are gone after it, and after an error in it."""
    set_printoptions(precision=6, sci_mode=True)
    with pytest.raises(ZeroDivisionError), printoptions(profile="short"):  # noqa: PT012 - the error ends the block
        assert get_printoptions() == DEFAULTS | {"precision": 2, "edgeitems": 2}
        _ = 1 / 0
    assert get_printoptions() == DEFAULTS | {"precision": 6, "sci_mode": True}


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ({"precision": -1}, ArgumentError, "expected precision to be 0 or more, got -1; pass e.g. 0"),
        ({"edgeitems": -1}, ArgumentError, "expected edgeitems to be 0 or more, got -1; pass e.g. 0"),
        ({"precision": 2.5}, ArgumentTypeError, "expected precision to be an int, got 2.5; pass e.g. 4"),
        ({"edgeitems": "3"}, ArgumentTypeError, "expected edgeitems to be an int, got '3'; pass e.g. 3"),
        ({"threshold": "a"}, ArgumentTypeError, "expected threshold to be a number, got 'a'; pass e.g. 1000"),
        (
            {"linewidth": inf},
            ArgumentError,
            "expected linewidth to be finite, got inf; pass a large number of characters",
        ),
    ],
)
def test_options_that_no_tensor_could_be_printed_with(option, error, message):
    """A bad value is an error where it is set, not at the next print, and changes nothing."""
    with pytest.raises(error) as caught:
        set_printoptions(sci_mode=True, **option)
    assert str(caught.value) == f"set_printoptions: {message}"
    assert get_printoptions() == DEFAULTS


def test_an_unknown_option():
    """An option that does not exist is a TypeError, in the with block too."""
    with pytest.raises(TypeError, match="colour"):
        set_printoptions(colour="red")
    with pytest.raises(TypeError, match="colour"), printoptions(colour="red"):
        pass


# One number


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [
        (np.array(3.14159, dtype=np.float32), ".3f", "3.142"),
        (np.array(1.5, dtype=dtypes.bfloat16.numpy), ".3f", "1.500"),
        (np.array(255, dtype=np.uint8), "x", "ff"),
        (np.array(True), "", "True"),
        (np.array(1 - 2j), ".1f", "1.0-2.0j"),
        (2.5, ">6", "   2.5"),
    ],
)
def test_format_number(value, spec, expected):
    """A number formats as Python formats its value, in every dtype."""
    assert format_number(value, spec) == expected
