"""Programs of ``torch.func`` that raise, each a function of the library, for the comparison with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["REFUSED"]

Program = Callable[[Any], Any]
REFUSED: dict[str, Program] = {}


def refused(function: Program) -> Program:
    """Enter a program that raises."""
    REFUSED[function.__name__] = function
    return function


@refused
def write_to_an_input_of_grad(torch: Any) -> Any:
    return torch.func.grad(lambda x: x.mul_(2).sum())(torch.ones(2))


@refused
def gradient_of_a_vector(torch: Any) -> Any:
    return torch.func.grad(lambda x: x * 2)(torch.ones(2))


@refused
def gradient_of_a_number(torch: Any) -> Any:
    return torch.func.grad(lambda x: 2.0)(torch.ones(2))


@refused
def gradient_by_integers(torch: Any) -> Any:
    return torch.func.grad(lambda x: x.sum())(torch.ones(2, dtype=torch.int64))


@refused
def argument_that_is_not_there(torch: Any) -> Any:
    return torch.func.grad(lambda x: x.sum(), argnums=3)(torch.ones(2))


@refused
def argnums_of_another_type(torch: Any) -> Any:
    return torch.func.grad(lambda x: x.sum(), argnums="0")(torch.ones(2))


@refused
def aux_that_is_not_there(torch: Any) -> Any:
    return torch.func.grad(lambda x: x.sum(), has_aux=True)(torch.ones(2))


@refused
def leaf_that_is_no_tensor(torch: Any) -> Any:
    return torch.func.grad(lambda d: d["x"].sum())({"x": torch.ones(2), "n": 3})


@refused
def cotangent_of_another_shape(torch: Any) -> Any:
    return torch.func.vjp(lambda x: x, torch.ones(2))[1](torch.ones(3))


@refused
def cotangents_of_another_structure(torch: Any) -> Any:
    return torch.func.vjp(lambda x: (x, x), torch.ones(2))[1](torch.ones(2))


@refused
def primals_that_are_no_tuple(torch: Any) -> Any:
    return torch.func.jvp(lambda x: x, torch.ones(2), torch.ones(2))


@refused
def tangent_of_another_shape(torch: Any) -> Any:
    return torch.func.jvp(lambda x: x, (torch.ones(2),), (torch.ones(3),))


@refused
def independent_output_in_strict_mode(torch: Any) -> Any:
    return torch.func.jvp(lambda x: torch.ones(2), (torch.ones(2),), (torch.ones(2),), strict=True)


@refused
def function_without_jvp(torch: Any) -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        return torch.autograd.forward_ad.unpack_dual(Double.apply(dual)).tangent


@refused
def nothing_to_map_over(torch: Any) -> Any:
    return torch.vmap(lambda: torch.ones(2))()


@refused
def dims_of_another_structure(torch: Any) -> Any:
    return torch.vmap(lambda x, y: x, in_dims=(0,))(torch.ones(2), torch.ones(2))


@refused
def dims_of_another_type(torch: Any) -> Any:
    return torch.vmap(lambda x: x, in_dims="0")(torch.ones(2))


@refused
def dim_that_is_not_there(torch: Any) -> Any:
    return torch.vmap(lambda x: x, in_dims=2)(torch.ones(2, 3))


@refused
def dim_of_a_number(torch: Any) -> Any:
    return torch.vmap(lambda x, n: x * n)(torch.ones(2), 3)


@refused
def sizes_that_differ(torch: Any) -> Any:
    return torch.vmap(lambda x, y: x + y)(torch.ones(2), torch.ones(3))


@refused
def no_dim_at_all(torch: Any) -> Any:
    return torch.vmap(lambda x: x, in_dims=None)(torch.ones(2))


@refused
def out_dims_of_another_structure(torch: Any) -> Any:
    return torch.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(torch.ones(2))


@refused
def out_dim_that_is_not_there(torch: Any) -> Any:
    return torch.vmap(lambda x: x, out_dims=3)(torch.ones(2))


@refused
def results_that_are_no_tensors(torch: Any) -> Any:
    return torch.vmap(lambda x: 3)(torch.ones(2))


@refused
def value_of_an_example(torch: Any) -> Any:
    return torch.vmap(lambda x: x * x.item())(torch.ones(2))


@refused
def choice_by_an_example(torch: Any) -> Any:
    return torch.vmap(lambda x: x if x > 0 else -x)(torch.ones(2))


@refused
def backward_inside(torch: Any) -> Any:
    w = torch.ones(2, requires_grad=True)
    return torch.vmap(lambda x: (x * w).sum().backward())(torch.ones(2, 2))


@refused
def statistics_of_one_for_many(torch: Any) -> Any:
    return torch.vmap(torch.nn.BatchNorm1d(3))(torch.ones(2, 4, 3))


@refused
def array_of_an_example(torch: Any) -> Any:
    return torch.vmap(lambda x: x.numpy())(torch.ones(2, 2))


@refused
def shape_by_an_example(torch: Any) -> Any:
    return torch.vmap(lambda x: x.nonzero())(torch.ones(2, 3))


@refused
def write_of_many_to_one(torch: Any) -> Any:
    one = torch.zeros(3)
    return torch.vmap(lambda x: one.add_(x))(torch.ones(2, 3))


@refused
def copy_of_many_to_one(torch: Any) -> Any:
    one = torch.zeros(3)
    return torch.vmap(lambda x: one.copy_(x))(torch.ones(2, 3))


@refused
def random_numbers_unasked(torch: Any) -> Any:
    return torch.vmap(lambda x: x + torch.randn(3))(torch.ones(2, 3))


@refused
def dropout_unasked(torch: Any) -> Any:
    return torch.vmap(lambda x: torch.nn.functional.dropout(x))(torch.ones(2, 3))


@refused
def randomness_of_another_kind(torch: Any) -> Any:
    return torch.vmap(lambda x: x, randomness="some")(torch.ones(2, 3))


@refused
def chunks_of_nothing(torch: Any) -> Any:
    return torch.vmap(lambda x: x, chunk_size=0)(torch.ones(2, 3))


@refused
def models_of_two_classes(torch: Any) -> Any:
    return torch.func.stack_module_state([torch.nn.Linear(2, 2), torch.nn.ReLU()])


@refused
def no_models(torch: Any) -> Any:
    return torch.func.stack_module_state([])


@refused
def parameter_that_is_not_there_in_strict_mode(torch: Any) -> Any:
    net = torch.nn.Linear(2, 2)
    return torch.func.functional_call(net, {"weights": torch.ones(2, 2)}, (torch.ones(2),), strict=True)


@refused
def name_in_two_dicts(torch: Any) -> Any:
    net = torch.nn.Linear(2, 2)
    given = {"weight": torch.ones(2, 2)}
    return torch.func.functional_call(net, (given, given), (torch.ones(2),))
