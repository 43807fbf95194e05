"""Programs as one generated kernel: the same values as step by step."""

import numpy as np
import pytest

from tensorcore import dtypes
from tensorcore.backend.program import Program, Spec, Step, Value
from tensorcore_cuda.kernels import compiler
from tests.cuda.kernels.device import close, driver, oracle, put
from tests.cuda_standin.emulation.compile import compiler as cxx

pytestmark = pytest.mark.skipif(cxx() is None, reason="no C++ compiler is here")
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
compile = compiler(driver)


def spec(dtype, *shape):
    return Spec(shape, dtype)


def chain(dtype):
    """gelu(x * 2 + bias) where that is above the leaky slope of x, and how it compares with 1."""
    like = spec(dtype, 4, 6)
    steps = (
        Step("mul", (Value(0), 2.0), {}, (like,)),
        Step("add", (Value(2), Value(1)), {}, (like,)),
        Step("gelu", (Value(3),), {"approximate": "tanh"}, (like,)),
        Step("leaky_relu", (Value(0),), {"negative_slope": 0.5}, (like,)),
        Step("gt", (Value(4), Value(5)), {}, (spec(dtypes.bool_, 4, 6),)),
        Step("where", (Value(6), Value(4), Value(5)), {}, (like,)),
        Step("lt", (Value(7), 1), {}, (spec(dtypes.bool_, 4, 6),)),
    )
    return Program((like, spec(dtype, 6)), steps, (Value(7), Value(8)))


def arrays(dtype):
    random = np.random.default_rng(8)
    return random.uniform(-3, 3, (4, 6)).astype(dtype.numpy), random.uniform(-3, 3, 6).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_program_computes_what_its_steps_do(dtype):
    """Numbers, broadcasting, options, conditions and two outputs of different dtypes."""
    x, bias = arrays(dtype)
    made = compile(chain(dtype))(put(x), put(bias))
    for one, other in zip(made, chain(dtype).run(oracle, [x, bias]), strict=True):
        close(
            one, other if other.dtype == bool else other.astype(dtype.numpy), 4
        )  # NumPy's bfloat16 times a number is wider


def test_inputs_may_have_any_strides():
    """A transposed input and an expanded one."""
    x, bias = arrays(dtypes.float32)
    made = compile(chain(dtypes.float32))(put(x.T).T, put(bias[:1]).reshape(1)[np.zeros(6, int) * 0])
    expected = chain(dtypes.float32).run(oracle, [x, np.repeat(bias[:1], 6)])
    close(made[0], expected[0], 4)


def test_out_takes_the_results_even_over_an_input():
    """An output is written where it is wanted, one that is None is new."""
    x, bias = arrays(dtypes.float32)
    expected = chain(dtypes.float32).run(oracle, [x, bias])
    place = put(x)
    made = compile(chain(dtypes.float32))(place, put(bias), out=(place, None))
    assert made[0] is place
    close(place, expected[0], 4)
    close(made[1], expected[1])


def test_an_input_may_be_an_output():
    """It comes back as it is."""
    like = spec(dtypes.float32, 3)
    program = Program((like,), (Step("exp", (Value(0),), {}, (like,)),), (Value(0), Value(1)))
    x = put(np.ones(3, "f4"))
    same, made = compile(program)(x)
    assert same is x
    close(made, np.exp(np.ones(3, "f4")))


def test_casts_round_and_nothing_else_does():
    """Through bfloat16 and back loses digits; integers are cut off."""
    narrow, like = spec(dtypes.bfloat16, 5), spec(dtypes.float32, 5)
    whole = spec(dtypes.int32, 5)
    steps = (
        Step("cast", (Value(0),), {"dtype": dtypes.bfloat16}, (narrow,)),
        Step("cast", (Value(1),), {"dtype": dtypes.float32}, (like,)),
        Step("cast", (Value(2),), {"dtype": dtypes.int32}, (whole,)),
    )
    x = np.array([1.001, 2.7, -2.7, 300.3, 0], "f4")
    program = Program((like,), steps, (Value(2), Value(3)))
    for one, other in zip(compile(program)(put(x)), program.run(oracle, [x]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_kernel_serves_programs_that_differ_in_numbers():
    """Numbers are parameters, so that a changed learning rate compiles nothing."""
    like = spec(dtypes.float32, 5)

    def times(number):
        return compile(Program((like,), (Step("mul", (Value(0), number), {}, (like,)),), (Value(1),)))

    x = put(np.ones(5, "f4"))
    times(2.0)(x)
    before = len(driver.kernels)
    np.testing.assert_array_equal(times(3.0)(x)[0], np.full(5, 3.0))
    assert len(driver.kernels) == before


@pytest.mark.parametrize(
    "step",
    [
        Step("sum", (Value(0),), {"dim": (0,)}, (spec(dtypes.float32),)),
        Step("mul", (Value(0), 1j), {}, (spec(dtypes.float32, 3),)),
        Step("add", (Value(0), Value(0)), {"alpha": 2}, (spec(dtypes.float32, 3),)),
        Step("leaky_relu", (Value(0),), {"negative_slope": Value(0)}, (spec(dtypes.float32, 3),)),
        Step("max_dim", (Value(0),), {"dim": 0}, (spec(dtypes.float32), spec(dtypes.int64))),
    ],
    ids=["reduction", "complex", "unknown option", "array as option", "two results"],
)
def test_other_programs_are_left_to_their_steps(step):
    """The answer is None."""
    assert compile(Program((spec(dtypes.float32, 3),), (step,), (Value(1),))) is None
