"""Creation: numbers, nested data and fillings give what PyTorch gives, or the error that it gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

DATA = [
    '3', '3.5', 'True', '1j', '[]', '[[]]', '[1,2]', '[1,2.5]', '[True,False]', '[True,2]', '[1,2j]',
    '[[1,2],[3,4]]', '((1,2),(3,4))', '[[1,2],[3]]', '[[1],2]', '[1,[2]]', "['a']", "'abc'", 'None', '[None]',
    '{}', '{1:2}', 'range(3)', '[range(2),range(2)]', 'np.arange(3)', 'np.int8(2)', '[np.int32(1)]',
    '[np.arange(2),np.arange(2)]', 'np.array([[1,2]],dtype=np.float16)', "np.array(['a'])", 'np.arange(3)[::-1]',
    'np.array(3.)', '2**63', '2**64', '-2**63', '[2**63]', '[2**63-1]', '[1e400]', 'nan', '[nan,1]',
    '[t.tensor(1),t.tensor(2)]', '[t.tensor([1]),t.tensor([2])]', 't.tensor([1,2])',
    't.ones(2,requires_grad=True)', "b'ab'", "bytearray(b'ab')", 'object()', '[[[]]]', '[[1,2],[3,4],[5,6]]',
    'set([1])', '[1,None]', '[[1,2],None]', '(1,2)', '[True,1.5]', '[True,False,1j]', '[0.1]*3',
    "np.arange(3).astype('>i4')", '[[],[]]', 'np.array([1,None])',
]  # fmt: skip
VALUES = ["300", "-1", "-129", "-256", "1e10", "1.7", "-1.7", "-0.5", "255.9", "inf", "nan", "2**40", "-2**40", "70000.", "1e39",
          "1+2j", "3+0j", "True", "2**63", "-2**63"]  # fmt: skip
RANGES = [
    '5', '0', '-1', '5.', '1,5', '1,5,2', '0,1,0.1', '5,0,-1', '5,0', '0,5,-1', '0,5,0', '0,5,0.', '0,0', '1,1',
    '2,5,0.5', '0,10,3', '1.5', '0.5,3.5', '-2,2', '0,-5,-2', '0,1,0.3', '1,2.5', '5,dtype=t.float64',
    '5,dtype=t.int8', '5.5,dtype=t.int64', '0,5,2,dtype=t.float32', '5,dtype=t.float16', '3,dtype=t.bfloat16',
    '3,dtype=t.bool', '2,dtype=t.bool', '3,dtype=t.complex64', 'nan', 'inf', '0,inf', "'a'", 'None',
    't.tensor(5)', 't.tensor(5.)', 't.tensor([5])', 'np.int64(5)', 'np.float64(5)', 'np.float32(2)', 'end=5',
    'start=1,end=5', 'start=1,end=5,step=2', '5,requires_grad=True', '5.,requires_grad=True', '1j',
    '0,1e18,1e17', '2**62,2**62+3', '0,2**63', '0.1,0.4,0.1', '0,1,1/3', '1,0,-0.25', '250,260,dtype=t.uint8',
    '-3,3,dtype=t.uint8', '0,1,1e-20', "5,device='meta'", '0,3.,1', '0,3,1.', '1,5,dtype=t.int64,step=2',
    '2.5,dtype=t.int32', '0.9,5,1,dtype=t.int64', '0.5,5.5,1.5,dtype=t.int64',
]  # fmt: skip
CALLS = [
    't.tensor([1,2],requires_grad=True)', 't.tensor([1.,2],requires_grad=True)', "t.tensor(1,dtype='float32')",
    't.tensor(1,dtype=float)', 't.tensor(1,dtype=int)', 't.tensor(1,dtype=np.float32)', 't.tensor(1,dtype=3)',
    "t.tensor(1,device='bogus')", 't.tensor(1,device=3.5)', 't.tensor()', 't.tensor(1,2)',
    "t.zeros(2,dtype='x')", 't.zeros(-1)', 't.zeros(2,-3)', 't.zeros(2.5)', "t.zeros('a')", 't.zeros()',
    't.zeros(())', 't.zeros([])', 't.zeros((2,3))', 't.zeros([2,3])', 't.zeros(2,3)', 't.zeros(t.tensor(2))',
    't.zeros(np.int64(3))', 't.zeros((2,t.tensor(3)))', 't.zeros(None)', "t.zeros((2,'a'))",
    't.zeros(2**40,2**40)', 't.ones(2,3,dtype=t.int8)', 't.ones(2,dtype=t.bool)', 't.ones(2,requires_grad=True)',
    't.ones(2,dtype=t.int32,requires_grad=True)', 't.zeros(2,out=t.ones(5))',
    't.zeros(2,out=t.ones(2,dtype=t.int32))', 't.zeros(2,dtype=t.float32,out=t.ones(2,dtype=t.int32))',
    't.ones(2,out=t.zeros(3,3))', 't.full((2,),True)', 't.full((2,),1)', 't.full((2,),1.)', 't.full((2,),1j)',
    't.full((),3)', 't.full(2,3)', 't.full((2,),t.tensor(3))', 't.full((2,),t.tensor([3]))', "t.full((2,),'a')",
    't.full((2,),None)', 't.full([2,2],7,dtype=t.float64)', 't.full((-1,),1)', 't.full((2,),1,out=t.zeros(2))',
    't.full((2,),np.float32(2))', 't.full((2,),np.int32(2))', 't.full(fill_value=1,size=(2,))',
    't.full((2,),1.5,requires_grad=True)', 't.zeros_like(t.ones(2,3).t())',
    't.zeros_like(t.ones(2,3),dtype=t.int64)', 't.zeros_like(t.ones(2,3,4).permute(2,0,1))',
    't.zeros_like(t.ones(1,3).expand(2,3))', 't.zeros_like([1])', 't.zeros_like(t.ones(2),requires_grad=True)',
    't.zeros_like(t.ones(2,requires_grad=True))', "t.zeros_like(t.ones(2),device='meta').device.type",
    't.ones_like(t.ones(2,3).t())', 't.ones_like(t.ones(2,3),dtype=t.int64)',
    't.ones_like(t.ones(2,3,4).permute(2,0,1))', 't.ones_like(t.ones(1,3).expand(2,3))', 't.ones_like([1])',
    't.ones_like(t.ones(2),requires_grad=True)', 't.ones_like(t.ones(2,requires_grad=True))',
    "t.ones_like(t.ones(2),device='meta').device.type", 't.empty_like(t.ones(2,3).t())',
    't.empty_like(t.ones(2,3),dtype=t.int64)', 't.empty_like(t.ones(2,3,4).permute(2,0,1))',
    't.empty_like(t.ones(1,3).expand(2,3))', 't.empty_like([1])', 't.empty_like(t.ones(2),requires_grad=True)',
    't.empty_like(t.ones(2,requires_grad=True))', "t.empty_like(t.ones(2),device='meta').device.type",
    't.full_like(t.ones(2,3).t(),5)', 't.full_like(t.ones(2,dtype=t.int32),2.7)',
    't.full_like(t.ones(2),5,dtype=t.int64)', 't.full_like(t.ones(2),True)',
    't.full_like(t.ones(2,dtype=t.bool),3)', 't.ones(2,dtype=t.int32).new_zeros(3)',
    't.ones(2).new_zeros((2,2))', 't.ones(2).new_ones(2,3,dtype=t.int8)', 't.ones(2).new_full((2,),3)',
    't.ones(2,dtype=t.int64).new_full((2,),3.7)', 't.ones(2).new_tensor([1,2])',
    't.ones(2,dtype=t.int64).new_tensor([1.5,2])', 't.ones(2).new_tensor(3)', 't.ones(2).new_empty(2,3).shape',
    't.ones(2).new_empty((0,))', 't.ones(2).new_zeros(-1)', 't.ones(2).new_tensor([1.],requires_grad=True)',
    't.ones(2).new_empty_strided((2,3),(1,2)).stride()', 't.empty_strided((2,3),(1,2)).stride()',
    't.empty_strided((2,3),(1,))', 't.empty_strided((2,3),(-1,2))', 't.empty_strided((-2,3),(1,2))',
    't.empty_strided((),()).shape', 't.ones(2).fill_(3)', 't.ones(2).fill_(t.tensor(3))',
    't.ones(2).fill_(t.tensor([3]))', "t.ones(2).fill_('a')", 't.ones(2,dtype=t.int32).fill_(2.7)',
    't.ones(2,dtype=t.uint8).fill_(300)', 't.ones(2,dtype=t.uint8).fill_(-1)',
    't.ones(2,dtype=t.int32).fill_(1j)', 't.ones(2).fill_(1j)', 't.ones(2,dtype=t.bool).fill_(2)',
    't.ones(2).zero_()', 't.ones(2,dtype=t.int64).fill_(nan)', 't.ones(2,requires_grad=True).fill_(1)',
    't.ones(2,dtype=t.int32).fill_(t.tensor(2.7))',
]  # fmt: skip
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


def result(module: Any, call: str) -> Any:
    """What an expression gives in a library: what a tensor is, or the exception."""
    scope = {"t": module, "np": np, "nan": math.nan, "inf": math.inf}
    try:
        found = eval(call, scope)
    except Exception as error:
        return error
    if not hasattr(found, "is_meta"):
        return found
    values = "nothing" if found.is_meta or "empty" in call else str(found.tolist())
    strides = found.stride() if found.numel() else None
    return tuple(found.shape), str(found.dtype), strides, found.requires_grad, values


def agree(torch: Any, call: str) -> None:
    """Assert that both libraries answer alike, or refuse with an error that the same clause catches."""
    expected, found = result(torch, call), result(tc, call)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), f"{call}: {found!r}"
    else:
        assert found == expected, call


class TestAsPyTorch:
    """Every call beside PyTorch's."""

    @pytest.mark.filterwarnings("ignore:Creating a tensor from a list", "ignore:To copy construct")
    @pytest.mark.parametrize("data", DATA)
    def test_data(self, torch: Any, data: str) -> None:
        """``tensor`` and ``as_tensor`` read data alike, in the inferred and in every named dtype."""
        agree(torch, f"t.tensor({data})")
        agree(torch, f"t.as_tensor({data})")
        for name in ("float32", "int64", "uint8", "bool", "bfloat16", "complex64"):
            agree(torch, f"t.tensor({data}, dtype=t.{name})")

    @pytest.mark.parametrize("value", VALUES)
    def test_values_that_may_not_fit(self, torch: Any, value: str) -> None:
        """A number fits into a dtype, wraps, overflows to infinity or is refused, as there."""
        for name in DTYPES:
            agree(torch, f"t.tensor({value}, dtype=t.{name})")
            agree(torch, f"t.full((2,), {value}, dtype=t.{name})")
            agree(torch, f"t.full((), {value}, dtype=t.{name})")
            agree(torch, f"t.zeros(2, dtype=t.{name}).fill_({value})")

    @pytest.mark.parametrize("bounds", RANGES)
    def test_ranges(self, torch: Any, bounds: str) -> None:
        """``arange`` counts alike."""
        agree(torch, f"t.arange({bounds})")

    @pytest.mark.parametrize("call", CALLS)
    def test_calls(self, torch: Any, call: str) -> None:
        """Sizes, fillings, likenesses, strides."""
        agree(torch, call)


class TestRefusals:
    """Errors without PyTorch at hand."""

    @pytest.mark.parametrize(
        "call, error, text",
        [
            ("t.tensor([[1, 2], [3]])", ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
            ("t.tensor('abc')", TypeError, "invalid data type 'str'"),
            ("t.tensor(['a'])", ValueError, "too many dimensions 'str'"),
            ("t.tensor([None])", RuntimeError, "Could not infer dtype of NoneType"),
            ("t.tensor([nan], dtype=t.int64)", RuntimeError, "without overflow"),
            ("t.zeros(-1)", RuntimeError, "negative dimension -1"),
            ("t.empty(2**50)", RuntimeError, "room for"),
            ("t.arange(2**50)", RuntimeError, "room for"),
            ("t.zeros(2**40, 2**40)", RuntimeError, "overflow"),
            ("t.zeros(2, dtype='float32')", TypeError, "dtype"),
            ("t.zeros(2, device='bogus')", RuntimeError, "bogus"),
        ],
    )
    def test_each_is_named(self, call: str, error: type, text: str) -> None:
        """The message says what was wrong."""
        with pytest.raises(error, match=text):
            eval(call, {"t": tc, "nan": math.nan})

    def test_memory_errors_are_memory_errors(self) -> None:
        """Too large an allocation is caught by either clause, and small ones go on."""
        for size in (2**50, 2**62):
            with pytest.raises(MemoryError):
                tc.empty(size)
        assert tc.ones(2).tolist() == [1.0, 1.0]


class TestMemory:
    """What is copied and what is shared."""

    def test_tensor_copies(self) -> None:
        """``tensor`` never shares, ``as_tensor`` does where nothing changes."""
        array = np.arange(3)
        x = tc.as_tensor(array)
        assert tc.tensor(array).data_ptr() != array.ctypes.data
        for data in (np.zeros(20_000), tc.zeros(20_000), np.zeros((100, 200)).T):
            made = tc.tensor(data)
            made.fill_(1)
            assert (data.sum(), made.sum().item()) == (0, 20_000)
        assert x.data_ptr() == array.ctypes.data
        assert tc.as_tensor(x) is x
        assert tc.as_tensor(array, dtype=tc.float32).tolist() == [0.0, 1.0, 2.0]

    def test_likenesses_lie_as_their_input(self) -> None:
        """The copy of a transposed tensor is transposed, that of an expanded one is not expanded."""
        assert tc.zeros_like(tc.ones(2, 3, 4).permute(2, 0, 1)).stride() == (1, 12, 4)
        assert tc.ones_like(tc.ones(1, 3).expand(2, 3)).stride() == (3, 1)
        assert tc.empty_like(tc.ones(2, 3).t()).is_set_to(tc.ones(3, 2)) is False
        assert tc.full_like(tc.ones(2, 3).t(), 5).tolist() == [[5.0] * 2] * 3

    def test_empty_strided_takes_what_it_spans(self) -> None:
        """The storage reaches to the last element; equal strides of 0 need one element."""
        assert tc.empty_strided((2, 3), (10, 1)).untyped_storage().nbytes() == 13 * 4
        assert tc.empty_strided((2, 3), (0, 0)).untyped_storage().nbytes() == 4

    def test_a_default_device(self) -> None:
        """New tensors are made there until it is set back."""
        tc.set_default_device("meta")
        try:
            assert tc.zeros(2).is_meta
            assert tc.tensor([1, 2]).is_meta
        finally:
            tc.set_default_device(None)
        assert not tc.zeros(2).is_meta


def test_a_default_dtype() -> None:
    """Python floats become it, complex numbers its complex form; integers stay."""
    tc.set_default_dtype(tc.float64)
    try:
        assert (tc.tensor(1.5).dtype, tc.tensor(1j).dtype, tc.tensor(1).dtype) == (tc.float64, tc.complex128, tc.int64)
        assert (tc.zeros(1).dtype, tc.arange(2.0).dtype, tc.full((1,), 1.0).dtype) == (tc.float64,) * 3
    finally:
        tc.set_default_dtype(tc.float32)
    for wrong in (tc.int32, tc.complex64, "float32"):
        with pytest.raises(TypeError):
            tc.set_default_dtype(wrong)
    assert tc.get_default_dtype() is tc.float32


@pytest.mark.oracle
def test_filling_what_shares_memory(torch):
    """fill_ and zero_ write to elements that share a place, as an expanded tensor's, and give back the tensor itself."""
    for lib in (tc, torch):
        base = lib.ones(3, 1)
        wide = base.expand(3, 4)
        assert wide.fill_(2) is wide
        assert base.tolist() == [[2.0]] * 3
        assert wide[1:].zero_().shape == (2, 4)
        assert base.tolist() == [[2.0], [0.0], [0.0]]


@pytest.mark.oracle
def test_in_asks_for_an_element(torch):
    """``in`` compares with every element, also of more dims and with a tensor; what is no number raises RuntimeError."""
    for lib in (tc, torch):
        grid = lib.arange(6).reshape(2, 3)
        assert 5 in grid
        assert 6 not in grid
        assert lib.tensor([9, 1, 9]) in grid
        with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
            "5" in grid  # noqa: B015


@pytest.mark.parametrize("bounds", [(0, 1, 0.1), (1.0, 0, -0.25), (0.0, 0.0, 1.0), (5.5,), (-1, 2.0), (0, 10.0, 3)])
def test_floats_are_counted_in_double_precision(bounds) -> None:
    """Number i is start + step * i, rounded once to the default dtype; as many as fit before the end."""
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    expected = []
    while (end - start - step * len(expected)) * step > 0:
        expected.append(np.float32(start + step * len(expected)))
    made = tc.arange(*bounds)
    assert (made.dtype, made.tolist()) == (tc.float32, expected)


@pytest.mark.parametrize(
    "bounds", [(0, 1.0, 0.0), (0.0, 1, float("inf")), (0, float("inf"), 1.0), (float("nan"), 1), (0.0, 1.0, -1)]
)
def test_floats_that_cannot_be_counted(bounds) -> None:
    """A step of zero or away from the end, and numbers that are not finite, are refused."""
    with pytest.raises(RuntimeError):
        tc.arange(*bounds)


@pytest.mark.parametrize("shape", [(0,), (4,), (3, 5), (5, 3), (0, 3), (3, 0)])
def test_unit_matrices(shape) -> None:
    """Ones where the row is the column, in row-major order, of any sizes and dtypes."""
    for dtype in ("float32", "int64", "bool", "bfloat16"):
        made = tc.eye(*shape, dtype=getattr(tc, dtype))
        assert made.is_contiguous()
        assert np.array_equal(made.float().numpy(), np.eye(*shape, dtype="f4"))
