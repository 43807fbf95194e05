"""Programs of ``torch.func``, each a function of the library, for the comparison with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PROGRAMS"]

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def runs(function: Program) -> Program:
    """Enter a program that gives tensors."""
    PROGRAMS[function.__name__] = function
    return function


def numbers(torch: Any, *shape: int, scale: float = 1.0) -> Any:
    """Numbers around zero that need no generator."""
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float64) * 0.7 * scale).sin().reshape(shape)


def network(torch: Any, seed: int = 0) -> Any:
    """A small classifier with normalisation, in double precision."""
    torch.manual_seed(seed)
    layers = torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.LayerNorm(5), torch.nn.Tanh(), torch.nn.Linear(5, 3)
    )  # fmt: skip
    return layers.double()


def pixels(torch: Any) -> Any:
    """A small convolutional network."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(8, 3),
    ).double()  # fmt: skip


@runs
def per_sample_gradients(torch: Any) -> Any:
    net = network(torch)
    params = {name: one.detach() for name, one in net.named_parameters()}
    x, y = numbers(torch, 6, 4), torch.arange(6) % 3

    def loss(params: Any, one: Any, target: Any) -> Any:
        made = torch.func.functional_call(net, params, (one.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(made, target.unsqueeze(0))

    return list(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(params, x, y).values())


@runs
def per_sample_gradients_of_convolutions(torch: Any) -> Any:
    net = pixels(torch)
    params = {name: one.detach() for name, one in net.named_parameters()}
    x, y = numbers(torch, 3, 1, 4, 4), torch.arange(3) % 3

    def loss(params: Any, one: Any, target: Any) -> Any:
        made = torch.func.functional_call(net, params, (one.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(made, target.unsqueeze(0))

    return list(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(params, x, y).values())


@runs
def ensemble(torch: Any) -> Any:
    nets = [network(torch, seed) for seed in range(3)]
    params, buffers = torch.func.stack_module_state(nets)
    x = numbers(torch, 5, 4)

    def call(params: Any, buffers: Any, x: Any) -> Any:
        return torch.func.functional_call(nets[0], (params, buffers), (x,))

    shared = torch.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    own = torch.vmap(call)(params, buffers, numbers(torch, 3, 5, 4))
    shared.pow(2).sum().backward()
    return [shared, own, *[one.grad for one in params.values()]]


@runs
def ensemble_of_convolutions(torch: Any) -> Any:
    nets = []
    for seed in range(3):
        nets.append(pixels(torch))
        with torch.no_grad():
            for one in nets[-1].parameters():
                one.mul_(seed + 1)
    params, buffers = torch.func.stack_module_state(nets)

    def total(params: Any, x: Any) -> Any:
        return torch.func.functional_call(nets[0], (params, buffers), (x,)).pow(2).sum()

    x = numbers(torch, 2, 1, 4, 4)
    return list(torch.vmap(torch.func.grad(total), in_dims=(0, None))(params, x).values())


@runs
def jacobian_of_a_network(torch: Any) -> Any:
    net, x = network(torch), numbers(torch, 2, 4)
    return [torch.func.jacrev(net)(x), torch.func.jacfwd(net)(x), torch.func.jacrev(net, chunk_size=2)(x)]


@runs
def hessian_of_a_network(torch: Any) -> Any:
    net, x = network(torch), numbers(torch, 4)
    return torch.func.hessian(lambda x: net(x).square().sum())(x)


@runs
def hessians_of_many(torch: Any) -> Any:
    net, x = network(torch), numbers(torch, 3, 4)
    return torch.vmap(torch.func.hessian(lambda x: net(x).square().sum()))(x)


@runs
def forward_over_reverse(torch: Any) -> Any:
    x, v = numbers(torch, 4), numbers(torch, 4, scale=3.0)
    return torch.func.jvp(torch.func.grad(lambda x: (x.sin() * x).sum() ** 2), (x,), (v,))


@runs
def reverse_over_forward(torch: Any) -> Any:
    x, v = numbers(torch, 4), numbers(torch, 4, scale=3.0)
    return torch.func.grad(lambda x: torch.func.jvp(lambda x: x.exp().sum() ** 2, (x,), (v,))[1])(x)


@runs
def forward_over_forward(torch: Any) -> Any:
    x, v = numbers(torch, 4), numbers(torch, 4, scale=3.0)
    return torch.func.jvp(lambda x: torch.func.jvp(lambda y: (y * x).sin(), (x,), (v,))[1], (x,), (v,))


@runs
def third_derivative(torch: Any) -> Any:
    f = lambda x: x**4  # noqa: E731
    return torch.func.grad(torch.func.grad(torch.func.grad(f)))(torch.tensor(1.5, dtype=torch.float64))


@runs
def all_four_orders_of_jacobians(torch: Any) -> Any:
    x = numbers(torch, 3)
    fwd, rev = torch.func.jacfwd, torch.func.jacrev
    return [outer(inner(lambda x: x.prod() * x.sin()))(x) for outer in (fwd, rev) for inner in (fwd, rev)]


@runs
def no_confusion_of_perturbations(torch: Any) -> Any:
    one = torch.tensor(1.0)
    inner = lambda x: x * torch.func.grad(lambda y: x + y)(one)  # noqa: E731
    forward = lambda x: x * torch.func.jvp(lambda y: x * y, (one,), (one,))[1]  # noqa: E731
    return [torch.func.grad(inner)(one), torch.func.jvp(forward, (one,), (one,))]


@runs
def gradient_through_a_map(torch: Any) -> Any:
    w, x = numbers(torch, 3, 4), numbers(torch, 5, 4)
    return torch.func.grad(lambda w: torch.vmap(lambda x: (w @ x).tanh().sum())(x).square().sum())(w)


@runs
def tangent_through_a_map(torch: Any) -> Any:
    w, x = numbers(torch, 3, 4), numbers(torch, 5, 4)
    return torch.func.jvp(lambda w: torch.vmap(lambda x: (w @ x).tanh())(x), (w,), (w.cos(),))


@runs
def backward_through_a_map(torch: Any) -> Any:
    w, x = numbers(torch, 3, 4).requires_grad_(), numbers(torch, 5, 4).requires_grad_()
    torch.vmap(lambda x: (w @ x).softmax(0)[0])(x).sum().backward()
    return [w.grad, x.grad]


@runs
def map_in_a_map(torch: Any) -> Any:
    x, y = numbers(torch, 3, 4), numbers(torch, 5, 4)
    distances = torch.vmap(torch.vmap(lambda a, b: (a - b).norm(), (None, 0)), (0, None))
    return [distances(x, y), torch.vmap(torch.vmap(torch.vmap(lambda x: x * 2)))(numbers(torch, 2, 3, 4))]


@runs
def inner_map_of_something_shared(torch: Any) -> Any:
    x, y = numbers(torch, 3, 4), numbers(torch, 5, 4)
    return torch.vmap(lambda a: torch.vmap(lambda b: a @ b)(y))(x)


@runs
def inner_dims_other_than_the_first(torch: Any) -> Any:
    x = numbers(torch, 2, 3, 4)
    outer = torch.vmap(lambda x: torch.vmap(lambda x: x.cumsum(0), 1, 1)(x), 2, 1)
    return [outer(x), torch.vmap(lambda x, y: (x + y, x), (-1, None), (0, -1))(x, x[..., 0])]


@runs
def trees_of_inputs_and_outputs(torch: Any) -> Any:
    x, y = numbers(torch, 3, 4), numbers(torch, 4, 3)
    made = torch.vmap(lambda d, z: {"a": d["x"] * d["y"], "b": [z, (d["x"].sum(),)]}, ({"x": 0, "y": 1}, None))(
        {"x": x, "y": y}, x.sum()
    )
    grads = torch.func.grad(lambda d: (d["x"].t() * d["y"]).sum())({"x": x, "y": y})
    return [made["a"], made["b"][0], made["b"][1][0], grads["x"], grads["y"]]


@runs
def chunks(torch: Any) -> Any:
    x = numbers(torch, 7, 3)
    return torch.vmap(lambda x: (x * 2, x.sum()), out_dims=(1, 0), chunk_size=3)(x)


@runs
def linearized(torch: Any) -> Any:
    x = numbers(torch, 3)
    output, along = torch.func.linearize(lambda x: (x.sin(), x.prod()), x)
    return [*output, *along(x), *along(x + 1)]


@runs
def vjp_used_twice(torch: Any) -> Any:
    x = numbers(torch, 3)
    output, pull = torch.func.vjp(lambda x: x.sin() * x, x)
    return [output, *pull(x), *pull(x + 1)]


@runs
def what_no_grad_hides_outside(torch: Any) -> Any:
    x = numbers(torch, 3)
    with torch.no_grad():
        outer = torch.func.grad(lambda x: (x**2).sum())(x)

    def hiding(x: Any) -> Any:
        with torch.no_grad():
            c = x**2
        return (x - c).sum()

    return [outer, torch.func.grad(hiding)(x)]


@runs
def writes_inside(torch: Any) -> Any:
    x = numbers(torch, 3, 4)

    def filled(x: Any) -> Any:
        made = x.new_zeros(4)
        made[1:3] = x[:2]
        made += x
        return made.mul_(2)

    return [torch.vmap(filled)(x), torch.func.jacfwd(filled)(x[0]), torch.func.jacrev(filled)(x[0])]


@runs
def indexing(torch: Any) -> Any:
    x, at = numbers(torch, 3, 5, 4), torch.tensor([[0, 2], [1, 1], [4, 0]])
    both = torch.vmap(lambda x, at: x[at])(x, at)
    column = torch.vmap(lambda x, at: x[:, at])(x.transpose(1, 2), at)
    table = torch.vmap(lambda at: x[0][at])(at)
    taken = torch.vmap(lambda x: x[torch.tensor([1, 0])])(x)
    gathered = torch.vmap(lambda x, at: x.gather(0, at.unsqueeze(1)))(x, at)
    return [both, column, table, taken, gathered, torch.vmap(lambda x: x[..., 1:, None])(x)]


@runs
def attention(torch: Any) -> Any:
    q, k, v = (numbers(torch, 2, 5, 4, scale=s) for s in (1.0, 2.0, 3.0))

    def attend(q: Any, k: Any, v: Any) -> Any:
        return (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v

    return torch.func.vjp(torch.vmap(attend), q, k, v)[1](v)


@runs
def complex_numbers(torch: Any) -> Any:
    z = torch.complex(numbers(torch, 3), numbers(torch, 3, scale=2.0))
    f = lambda z: (z * z.conj()).real.sum() * z.abs()[0]  # noqa: E731
    return [
        torch.func.grad(f)(z),
        torch.func.jvp(lambda z: z.exp() * z.abs(), (z,), (z * 1j,)),
        torch.vmap(torch.exp)(z),
    ]


@runs
def half_precision(torch: Any) -> Any:
    x = numbers(torch, 3, 4).to(torch.bfloat16)
    return [torch.vmap(lambda x: x * 2 + 1)(x).float(), torch.func.grad(lambda x: (x * 3).sum())(x).float()]


@runs
def products_with_vectors(torch: Any) -> Any:
    functional = torch.autograd.functional
    x, y = numbers(torch, 3), numbers(torch, 3, scale=2.0)
    f = lambda x, y: ((x**3 * y.sin()).sum(), x * y)  # noqa: E731
    one = lambda x, y: (x**3 * y.sin()).sum()  # noqa: E731
    return [
        functional.jacobian(f, (x, y)), functional.jacobian(f, (x, y), vectorize=True),
        functional.jacobian(f, (x, y), vectorize=True, strategy="forward-mode"), functional.hessian(one, (x, y)),
        functional.hessian(one, (x, y), vectorize=True, outer_jacobian_strategy="forward-mode"),
        functional.vjp(f, (x, y), (torch.tensor(1.0, dtype=torch.float64), y)), functional.jvp(f, (x, y), (y, x)),
        functional.hvp(one, (x, y), (y, x)), functional.vhp(one, (x, y), (y, x)),
    ]  # fmt: skip


@runs
def random_numbers_that_are_the_same(torch: Any) -> Any:
    x = numbers(torch, 4, 3)
    torch.manual_seed(3)
    same = torch.vmap(lambda x: torch.randn(3, dtype=torch.float64) * 0 + x, randomness="same")(x)
    drawn = torch.vmap(lambda x: x + torch.rand_like(x), randomness="same")(x) - x
    return [same, drawn - drawn[:1]]


@runs
def batches_of_gradients(torch: Any) -> Any:
    x = numbers(torch, 3).requires_grad_()
    y = x.sin() * x.sum()
    return torch.autograd.grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
