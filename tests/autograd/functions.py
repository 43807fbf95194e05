"""Little programs about custom Functions and checkpoints; PyTorch must answer the same."""

from __future__ import annotations

from typing import Any

from tests.autograd.programs import leaf, program, seen


def made(t: Any, forward: Any, backward: Any = lambda ctx, *g: g, **more: Any) -> Any:
    """A Function class named ``Made``."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (t.autograd.Function,), methods | more)


def square(t: Any) -> Any:
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.note = 3
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 2.0

    return made(t, forward, backward)


@program
def custom(t):
    x = leaf(t, 3)
    y = square(t).apply(x)
    fn = y.grad_fn
    facts = [fn.name(), fn.note, fn.needs_input_grad, fn.saved_tensors[0] is x, fn.next_functions[0][1]]
    y.sum().backward()
    return [seen(y), facts, x.grad]


@program
def custom_second_derivative(t):
    x = leaf(t, 3)
    (g,) = t.autograd.grad(square(t).apply(x).sum(), x, create_graph=True)
    return [g.detach(), t.autograd.grad((g * g).sum(), x)]


@program
def custom_of_constant(t):
    return seen(square(t).apply(t.ones(3)))


@program
def custom_without_recording(t):
    log = []

    def forward(ctx, x):
        log.append([ctx.needs_input_grad, t.is_grad_enabled(), x.requires_grad])
        return x * 2.0

    with t.no_grad():
        y = made(t, forward).apply(leaf(t, 3))
    return [log, seen(y)]


@program
def custom_twice(t):
    y = square(t).apply(leaf(t, 3)).sum()
    y.backward()
    y.backward()


@program
def custom_twice_with_nothing_saved(t):
    x = leaf(t, 3)
    y = made(t, lambda ctx, x: x * 2.0).apply(x)
    y.sum().backward()
    y.sum().backward()
    return x.grad


@program
def custom_saved_after_free(t):
    y = square(t).apply(leaf(t, 3))
    y.sum().backward()
    return y.grad_fn.saved_tensors


@program
def custom_with_other_arguments(t):
    x = leaf(t, 3)
    y = made(t, lambda ctx, x, k, name: x * k, lambda ctx, g: (g * 5.0, None, None)).apply(x, 2.0, "name")
    y.sum().backward()
    return [x.grad, seen(y), [fn is None for fn, _ in y.grad_fn.next_functions]]


@program
def custom_with_too_many_gradients(t):
    made(t, lambda ctx, x: x * 2.0, lambda ctx, g: (g, g)).apply(leaf(t, 3)).sum().backward()


@program
def custom_with_too_many_nones(t):
    x = leaf(t, 3)
    made(t, lambda ctx, x: x * 2.0, lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    return x.grad


@program
def custom_with_too_few_gradients(t):
    made(t, lambda ctx, x, k: x * 2.0, lambda ctx, g: g).apply(leaf(t, 3), 2).sum().backward()


@program
def custom_gradient_of_number(t):
    made(t, lambda ctx, x, k: x * 2.0, lambda ctx, g: (g, g)).apply(leaf(t, 3), 2).sum().backward()


@program
def custom_gradient_is_number(t):
    made(t, lambda ctx, x: x * 2.0, lambda ctx, g: 3).apply(leaf(t, 3)).sum().backward()


@program
def custom_gradient_of_wrong_shape(t):
    made(t, lambda ctx, x: x * 2.0, lambda ctx, g: g.narrow(0, 0, 2)).apply(leaf(t, 3)).sum().backward()


@program
def custom_gradient_is_fitted(t):
    x = t.ones(1, requires_grad=True)
    made(t, lambda ctx, x: x * 2.0, lambda ctx, g: t.ones(4, 1, dtype=t.float64)).apply(x).sum().backward()
    return x.grad


@program
def custom_gradient_is_none(t):
    x = leaf(t, 3)
    made(t, lambda ctx, x: x * 2.0, lambda ctx, g: None).apply(x).sum().backward()
    return x.grad


@program
def custom_gradient_for_constant(t):
    x, k = leaf(t, 3), t.ones(3, dtype=t.float64)
    made(t, lambda ctx, x, k: x * k, lambda ctx, g: (g, g)).apply(x, k).sum().backward()
    return [x.grad, k.grad]


@program
def custom_several_results(t):
    x = leaf(t, 3)
    a, b, k, none = made(t, lambda ctx, x: (x * 2.0, x * 3.0, 7, None), lambda ctx, g, h, *rest: g + h * 10.0).apply(x)
    (a + b * 2.0).sum().backward()
    return [seen(a), seen(b), a.output_nr, b.output_nr, k, none, x.grad]


@program
def custom_result_not_used(t):
    x = leaf(t, 3)
    log = []

    def backward(ctx, g, h):
        log.append([g.clone(), h.clone()])
        return h

    _, b = made(t, lambda ctx, x: (x * 2.0, x * 3.0), backward).apply(x)
    b.sum().backward()
    return [log, x.grad]


@program
def custom_without_materialized_gradients(t):
    x = leaf(t, 3)
    log = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    def backward(ctx, g, h):
        log.append(g is None)
        return h

    made(t, forward, backward).apply(x)[1].sum().backward()
    return [log, x.grad]


@program
def custom_non_differentiable(t):
    x = leaf(t, 3)

    def forward(ctx, x):
        mask = x * 3.0
        ctx.mark_non_differentiable(mask)
        return x * 2.0, mask

    a, b = made(t, forward, lambda ctx, g, h: g + h).apply(x)
    a.sum().backward()
    return [seen(a), seen(b), x.grad]


@program
def custom_integer_result(t):
    a, b = made(t, lambda ctx, x: (x * 2.0, x.long()), lambda ctx, g, h: g).apply(leaf(t, 3))
    return [seen(a), seen(b)]


@program
def custom_returns_its_input(t):
    x = leaf(t, 3)
    y = made(t, lambda ctx, x: x, lambda ctx, g: g * 5.0).apply(x)
    y.sum().backward()
    return [y is x, seen(y), y._is_view(), y._base is x, x.grad]


@program
def custom_returns_constant_input(t):
    x = t.ones(3)
    y = made(t, lambda ctx, x: x).apply(x)
    return [y is x, seen(y)]


@program
def custom_write_to_returned_input(t):
    made(t, lambda ctx, x: x).apply(leaf(t, 3) * 1.0).mul_(2.0)


@program
def custom_write_to_returned_view(t):
    made(t, lambda ctx, x: x.narrow(0, 0, 2)).apply(leaf(t, 3) * 1.0).mul_(2.0)


def doubling(ctx, x):
    x.mul_(2.0)
    ctx.mark_dirty(x)
    return x


@program
def custom_in_place(t):
    x = leaf(t, 3)
    b = x * 1.0
    y = made(t, doubling, lambda ctx, g: g * 2.0).apply(b)
    y.sum().backward()
    return [y is b, seen(y), x.grad]


@program
def custom_in_place_on_leaf(t):
    made(t, doubling).apply(leaf(t, 3))


@program
def custom_in_place_on_view(t):
    x = leaf(t, 3)
    b = x * 1.0
    v = b.narrow(0, 0, 2)
    y = made(t, doubling, lambda ctx, g: g * 2.0).apply(v)
    b.sum().backward()
    return [y is v, seen(b), v._version, x.grad]


@program
def custom_in_place_on_view_with_two_results(t):
    def forward(ctx, x):
        x.mul_(2.0)
        ctx.mark_dirty(x)
        return x, x * 2.0

    made(t, forward, lambda ctx, g, h: g).apply((leaf(t, 3) * 1.0).narrow(0, 0, 2))


@program
def custom_dirty_not_returned(t):
    def forward(ctx, x):
        ctx.mark_dirty(x.mul_(2.0))
        return x * 1.0

    made(t, forward).apply(leaf(t, 3) * 1.0)


@program
def custom_saves_number(t):
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return x

    made(t, forward).apply(leaf(t, 3))


@program
def custom_saves_result(t):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y, None)
        return y

    def backward(ctx, g):
        y, _ = ctx.saved_tensors
        return g * y

    x = leaf(t, 3)
    (g,) = t.autograd.grad(made(t, forward, backward).apply(x).sum(), x, create_graph=True)
    return [g.detach(), t.autograd.grad(g.sum(), x)]


@program
def custom_saved_result_was_written(t):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    y = made(t, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(t, 3))
    y.mul_(2.0)
    y.sum().backward()


@program
def custom_saved_input_was_written(t):
    x = leaf(t, 3) * 1.0
    y = square(t).apply(x)
    x.mul_(2.0)
    y.sum().backward()


@program
def custom_through_hooks(t):
    x = leaf(t, 3)
    log = []
    with t.autograd.graph.saved_tensors_hooks(lambda v: log.append("pack") or v.detach() * 2.0, lambda v: v):
        y = square(t).apply(x)
    y.sum().backward()
    return [log, x.grad]


@program
def custom_split(t):
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.save_for_backward(x, output)
        ctx.k = k

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * ctx.k + x * 0.0 + y * 0.0, None

    cls = made(t, lambda x, k=2.0: x * k, backward, setup_context=staticmethod(setup_context))
    x = leaf(t, 3)
    (cls.apply(x) + cls.apply(x, 5.0) + cls.apply(x, k=3.0)).sum().backward()
    return x.grad


@program
def custom_once_differentiable(t):
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 2.0

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    cls = made(t, forward, t.autograd.function.once_differentiable(backward))
    x, w = leaf(t, 3), leaf(t, 3)
    first = t.autograd.grad(cls.apply(x).sum(), x)
    (g,) = t.autograd.grad((cls.apply(x) * w).sum(), x, create_graph=True)
    return [first, g.requires_grad, g.sum().backward()]


@program
def custom_without_backward(t):
    type("Bare", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2.0)}).apply(
        leaf(t, 3)
    ).sum().backward()


@program
def custom_without_forward(t):
    type("Bare", (t.autograd.Function,), {}).apply(leaf(t, 3))


@program
def custom_with_vjp(t):
    cls = type(
        "Named",
        (t.autograd.Function,),
        {"forward": staticmethod(lambda ctx, x: x * 2.0), "vjp": staticmethod(lambda ctx, g: g * 2.0)},
    )
    x = leaf(t, 3)
    cls.apply(x).sum().backward()
    return x.grad


@program
def custom_backward_inside_backward(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        with t.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            (x * x).sum().backward()
        return g * x.grad

    x = leaf(t, 3)
    cls = made(t, forward, backward)
    (cls.apply(x) + cls.apply(x * 2.0)).sum().backward()
    return x.grad


@program
def custom_detached_result(t):
    x = leaf(t, 3)

    def forward(ctx, x):
        with t.enable_grad():
            return x * 2.0

    y = made(t, forward, lambda ctx, g: g * 7.0).apply(x)
    y.sum().backward()
    return [seen(y), x.grad]


@program
def custom_view_whose_base_was_written(t):
    b = leaf(t, 3) * 1.0
    y = made(t, lambda ctx, x: x.narrow(0, 0, 2)).apply(b)
    b.mul_(2.0)
    return y.sum().backward()


@program
def checks_gradients(t):
    w = leaf(t, 2, 1)
    return [
        t.autograd.gradcheck(lambda x, w: (x * w).exp(), (leaf(t, 3), w)),
        t.autograd.gradgradcheck(lambda x, w: x * x * w, (leaf(t, 3), w)),
        t.autograd.gradcheck(lambda x: x * x, t.tensor([1 + 2j, 0.5 - 1j], dtype=t.complex128, requires_grad=True)),
        t.autograd.gradcheck(made(t, lambda ctx, x: x * 2.0).apply, leaf(t, 3), raise_exception=False),
    ]


@program
def checks_gradients_of_wrong_backward(t):
    t.autograd.gradcheck(made(t, lambda ctx, x: x * 2.0).apply, leaf(t, 3))


@program
def checks_gradients_of_constants(t):
    t.autograd.gradcheck(lambda x: x * 2.0, t.ones(3, dtype=t.float64))
