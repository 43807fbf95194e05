"""Methods with an underscore do by their short ways what their functions do: values, versions, histories and errors."""

from __future__ import annotations

import numpy as np
import pytest

import tensorcore as torch

from .test_shortcuts import HUGE, outcome
from .test_shortcuts_writes import INPUTS

pytestmark = pytest.mark.skipif(not hasattr(torch.Tensor.cumsum_, "__wrapped__"), reason="built without a compiler")


def like(x, *shape, value=3):
    return torch.full(shape, value, dtype=x.dtype)


def index(x, *places):
    return torch.tensor(places)


# Of each method calls that are usual, and that are not: the arguments, given the tensor that is written.
CALLS = {
    "cumsum_": [lambda x: (0,), lambda x: (-1,), lambda x: (5,), lambda x: (True,), lambda x: ()],
    "cumprod_": [lambda x: (1,), lambda x: (torch.tensor(1),), lambda x: (None,)],
    "xlogy_": [lambda x: (like(x, 2, 3),), lambda x: (2.0,), lambda x: (x,), lambda x: (like(x, 4, 4),),
               lambda x: (torch.full((2, 3), 3.0, requires_grad=True),)],
    "ldexp_": [lambda x: (like(x, 2, 3),), lambda x: (torch.ones(3, dtype=torch.int64),), lambda x: (like(x, 4),), lambda x: (2,)],
    "renorm_": [lambda x: (2, 0, 1.5), lambda x: (1, -1, 0), lambda x: (0, 0, 1.5), lambda x: (2, 7, 1.5), lambda x: (2.5, 1, 1.5)],
    "conj_physical_": [lambda x: (), lambda x: (1,)],
    "addmm_": [lambda x: (like(x, 2, 4), like(x, 4, 3)), lambda x: (like(x, 2, 4), like(x, 5, 3)), lambda x: (like(x, 2, 4), 2),
               lambda x: (x[:, :2], like(x, 2, 3)), lambda x: (torch.ones(2, 4, requires_grad=True), torch.ones(4, 3))],
    "addr_": [lambda x: (like(x, 2), like(x, 3)), lambda x: (like(x, 3), like(x, 2)), lambda x: (x[:, 0], like(x, 3))],
    "masked_fill_": [lambda x: (torch.ones(2, 3, dtype=torch.bool), 2.5), lambda x: (torch.eye(2, 3).bool(), 7),
                     lambda x: (torch.ones(3, dtype=torch.bool), like(x, value=4)), lambda x: (torch.ones(2, 3), 1.0),
                     lambda x: (x > 1, 2), lambda x: (torch.ones(4, 2, 3, dtype=torch.bool), 2.5), lambda x: (x > 1, HUGE)],
    "masked_scatter_": [lambda x: (torch.eye(2, 3).bool(), like(x, 6)), lambda x: (torch.eye(2, 3).bool(), like(x, 1)),
                        lambda x: (torch.eye(2, 3).bool(), x), lambda x: (torch.ones(3).bool(), like(x, 2, 3))],
    "scatter_": [lambda x: (0, index(x, [0, 1, 0]), like(x, 2, 3)), lambda x: (0, index(x, [0, 7, 0]), like(x, 2, 3)),
                 lambda x: (0, index(x, [0, 1, 0]), 2), lambda x: (0, index(x, [0, 1, 0]), x)],
    "scatter_add_": [lambda x: (0, index(x, [0, 0, 0]), like(x, 2, 3)), lambda x: (0, index(x, [0, 9, 0]), like(x, 2, 3))],
    "index_fill_": [lambda x: (1, index(x, 0, 2), 2.0), lambda x: (1, index(x, 5), 2.0)],
    "index_copy_": [lambda x: (0, index(x, 1), like(x, 1, 3)), lambda x: (0, index(x, 4), like(x, 1, 3))],
    "put_": [lambda x: (index(x, 5, 0), like(x, 2)), lambda x: (index(x, 9, 0), like(x, 2)), lambda x: (index(x, 5, 0), x[0, :2])],
    "index_put_": [lambda x: ((index(x, 1, 0), index(x, 2, 2)), like(x, 2)), lambda x: ([index(x, 1, 1)], like(x, 2, 3), True),
                   lambda x: ((index(x, 1, 0),), like(x)), lambda x: ((index(x, 1, 7),), like(x)), lambda x: ((index(x, 1),), x[:1]),
                   lambda x: ((index(x, 1, 0),), torch.ones(2, 3, requires_grad=True)), lambda x: ((None, index(x, 1)), like(x))],
    "transpose_": [lambda x: (0, 1), lambda x: (-1, 0), lambda x: (0, 3), lambda x: (True, 0), lambda x: (0,)],
    "swapaxes_": [lambda x: (1, 1), lambda x: (0.0, 1)],
    "t_": [lambda x: (), lambda x: (1,)],
    "squeeze_": [lambda x: (), lambda x: (0,), lambda x: (-1,), lambda x: ((0, 1),), lambda x: (4,)],
    "unsqueeze_": [lambda x: (0,), lambda x: (-1,), lambda x: (2,), lambda x: (9,), lambda x: ()],
}  # fmt: skip
SHAPES = {"transpose_", "swapaxes_", "t_", "squeeze_", "unsqueeze_"}


@pytest.mark.parametrize("kind", [*INPUTS, "a row"])
@pytest.mark.parametrize("name", CALLS)
def test_a_method_does_the_same_by_both_ways(name, kind) -> None:
    """The answer is the tensor itself or the same error, and a call that fails leaves values, version and shape as they were."""
    make = INPUTS.get(kind, lambda: torch.arange(3.0).reshape(1, 3))
    method = getattr(torch.Tensor, name)
    for arguments in CALLS[name]:
        for recording in (True, False):
            with torch.set_grad_enabled(recording):
                x, y, z = make(), make(), make()
                given, again = outcome(arguments, x), outcome(arguments, y)
                if isinstance(given[0] if given else None, type):
                    continue  # such arguments cannot be made of this tensor
                short, long = outcome(method, x, *given), outcome(method.__wrapped__, y, *again)
            if short is x:
                assert long is y
            else:
                assert short == long
                assert x._version == z._version
            assert (x._version, x.shape, x.stride()) == (y._version, y.shape, y.stride())
            assert (x.grad_fn is None) == (y.grad_fn is None)
            if kind != "meta":
                expected = (y if short is x else z).detach().cfloat().numpy()
                assert np.array_equal(x.detach().cfloat().numpy(), expected, equal_nan=True)


def test_a_subclass_a_view_and_inference_mode_keep_their_ways() -> None:
    """Views write into their bases and count there; a tensor of inference mode is refused outside of it."""
    base = torch.ones(4, 3)
    base[1:3].cumsum_(0)
    base[1:3].masked_fill_(torch.tensor([True, False, False]), 9.0)
    assert base.tolist() == [[1, 1, 1], [9, 1, 1], [9, 2, 2], [1, 1, 1]]
    assert base._version == 2
    part = base[1:3]
    assert part.t_().shape == (3, 2)
    part.fill_(0)
    assert base.sum() == 6
    with torch.inference_mode():
        frozen = torch.ones(2, 3)
        assert frozen.cumsum_(0).is_inference()
    for name in ("cumsum_", "addmm_", "index_fill_"):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            getattr(frozen, name)(*CALLS[name][0](frozen))


def test_names_and_words_are_those_of_the_method() -> None:
    """What is shown of a method that has a short way, and words by keyword."""
    assert torch.Tensor.masked_fill_.__name__ == "masked_fill_"
    assert "masked_fill" in torch.Tensor.masked_fill_.__doc__
    assert torch.Tensor.transpose_.__name__ == "transpose_"
    x = torch.ones(2, 3)
    assert x.addmm_(torch.ones(2, 4), torch.ones(4, 3), beta=0.5, alpha=2).tolist() == [[8.5] * 3] * 2
    assert x.masked_fill_(mask=torch.ones(2, 3, dtype=torch.bool), value=2).sum() == 12
    assert x.cumsum_(dim=1).tolist() == [[2, 4, 6]] * 2
    assert x.squeeze_(dim=0).transpose_(dim0=0, dim1=1).shape == (3, 2)
