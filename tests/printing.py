"""What the tests of printed tensors share: the text of plain values, and default options around every test."""

import numpy as np
import pytest

from tensorcore import dtypes
from tensorcore.printing import format_tensor, set_printoptions


@pytest.fixture(autouse=True)
def default_options():
    """Every test starts from the default options and leaves them behind."""
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def text(values, dtype=dtypes.float32, **options):
    """The text of a tensor of these values, plain unless ``options`` say otherwise."""
    array = np.asarray(values).astype(dtype.numpy, copy=False)
    plain = {"device": None, "grad_fn": None, "requires_grad": False, "default_dtype": dtypes.float32}
    return format_tensor(array, dtype=dtype, shape=array.shape, **(plain | options))


def text_without_values(shape, dtype=dtypes.float32, **options):
    """The text of a tensor that has no values to show."""
    plain = {"device": "meta", "grad_fn": None, "requires_grad": False, "default_dtype": dtypes.float32}
    return format_tensor(None, dtype=dtype, shape=shape, **(plain | options))
