"""Every CUDA kernel, executed: its results are those of the NumPy kernel of the same name."""

import numpy as np
import pytest

from tests.cuda.kernels.cases import CASES
from tests.cuda.kernels.device import close, kernels, moved, oracle, prepare, put
from tests.cuda_standin.emulation import thread_order
from tests.cuda_standin.emulation.compile import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler is here")
every = [pytest.param(one, dtype, id=f"{one.name}-{dtype.name}") for one in CASES for dtype in one.dtypes]


@pytest.mark.parametrize("case, dtype", every)
def test_a_kernel_computes_what_the_numpy_kernel_does(case, dtype):
    """Shapes, dtypes and values agree, and nothing is written outside the results."""
    prepare(case.run, dtype)
    with np.errstate(all="ignore"):
        expected = list(map(np.array, case.run(oracle, np.array, dtype)))
        actual = list(map(np.array, case.run(kernels, put, dtype)))
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        close(one, other, case.scale)


@pytest.mark.parametrize("case, dtype", [one for one in every if "float32" in one.id])
def test_no_result_depends_on_the_order_of_the_threads(case, dtype):
    """Backwards and shuffled, every bit is the same but for kernels that add in any order."""
    prepare(case.run, dtype)
    results = []
    for order in (0, -1, 5):
        with thread_order(order), np.errstate(all="ignore"):
            results.append([np.array(one) for one in case.run(kernels, put, dtype)])
    for one, *others in zip(*results, strict=True):
        for other in others:
            if case.name in ("adding", "sparse_products"):
                close(one, other, case.scale)
            else:
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case, dtype", [one for one in every if one.id.endswith(("-float32", "-float16"))])
def test_arrays_may_begin_at_any_element(case, dtype):
    """Views whose first element is no multiple of a pack give what whole arrays give: packs are narrower, or there are none."""
    with moved(1), np.errstate(all="ignore"):
        prepare(case.run, dtype)
        expected = list(map(np.array, case.run(oracle, np.array, dtype)))
        actual = list(map(np.array, case.run(kernels, put, dtype)))
    for one, other in zip(actual, expected, strict=True):
        close(one, other, case.scale)
