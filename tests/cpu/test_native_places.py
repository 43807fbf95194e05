"""Kernels in C put a result where they are told to, whatever they know of such places."""

import contextlib

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.base import KernelTable
from tensorcore.ops.define import OPS
from tensorcore.ops.samples import find_function
from tests.cpu.native import needs_native

pytestmark = [needs_native, pytest.mark.filterwarnings("ignore")]


class Asked(KernelTable):
    """The kernels of a backend, with a list of what they were asked and what they answered."""

    def __init__(self, backend, calls):
        super().__init__(backend)
        self.calls = calls

    def __missing__(self, name):
        kernel = super().__missing__(name)
        if not kernel:
            return kernel

        def call(*natives, **options):
            given = [copied(one) for one in natives]
            made = kernel(*natives, **options)
            kept = tuple([new(one) for one in made]) if type(made) is tuple else new(made)
            self.calls.append((name, given, dict(options), kept))
            return made

        self[name] = call
        return call


def asked(name, dtype):
    """The calls of kernels that make new arrays of arrays, which the op's samples come to."""
    device, calls = tc.device("cpu"), []
    before, function = device.kernels, find_function(tc, name)
    rng = np.random.default_rng(7)
    samples = (
        OPS[name].samples(lambda *shape, low=-2.0, high=2.0: rng.uniform(low, high, shape))
        if OPS[name].samples and function
        else ()
    )
    device.kernels = Asked(device, calls)
    try:
        for args, options in samples:
            with contextlib.suppress(tc.errors.TensorcoreError):  # samples that are for PyTorch to refuse
                function(
                    *[tensors(one, dtype) for one in args], **{key: tensors(one, dtype) for key, one in options.items()}
                )
    finally:
        device.kernels = before
    for kernel, natives, options, made in calls:
        results = made if type(made) is tuple else (made,)
        arrays = all([type(one) is np.ndarray for one in results]) and any([type(one) is np.ndarray for one in natives])
        if arrays and "out" not in options and type(before[kernel]) is type(before["add"]):
            yield before[kernel], natives, options, results, type(made) is tuple


def tensors(one, dtype):
    if type(one) is np.ndarray:
        return tc.tensor(one).to(getattr(tc, dtype)) if one.dtype == np.float64 else tc.tensor(one)
    return type(one)([tensors(each, dtype) for each in one]) if type(one) in (list, tuple) else one


def copied(one):
    """The same values in an array of its own, where it is one."""
    return one.copy(order="K") if type(one) is np.ndarray else one


def new(one):
    """The same of a result; None for a view of another array."""
    return copied(one) if getattr(one, "base", None) is None else None


def bits(one):
    return np.ascontiguousarray(one).tobytes()


def strided(one):
    """An array of that shape and dtype that is not in row-major order and has gaps."""
    return np.zeros([2 * size + 1 for size in one.shape[::-1]], one.dtype).T[(..., *[slice(1, None, 2)] * one.ndim)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64"])
@pytest.mark.parametrize(
    "name", sorted(set(OPS) - {"ctc_loss"})
)  # whose kernel leaves frames behind the end as they are
def test_a_result_goes_where_it_is_told_to(name, dtype):
    """With ``out=`` each kernel that makes new arrays gives ``out``, with the bits that it gives without: a fresh array, one with
    gaps, and one that an argument lies in."""
    for kernel, natives, options, results, several in asked(name, dtype):
        shared = [one for one in natives if type(one) is np.ndarray and one.size]
        for kind in ("fresh", "gaps", "argument"):
            given = [copied(one) for one in natives]
            places = [np.full_like(one, 1, order="C") if kind == "fresh" else strided(one) for one in results]
            if kind == "argument":
                fitting = [
                    one
                    for one in given
                    if type(one) is np.ndarray and one.dtype == results[0].dtype and one.shape == results[0].shape
                ]
                if not (shared and fitting) or len(places) > 1:
                    continue
                places = fitting[:1]
            out = tuple(places) if several else places[0]
            made = kernel(*given, **options, out=out)
            assert made is out, (kernel, kind)
            assert [bits(one) for one in places] == [bits(one) for one in results], (kernel, kind)
