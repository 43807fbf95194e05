"""Programs that walk a graph again, ask for some gradients with ``grad``, or differentiate twice."""

from __future__ import annotations

from tests.autograd.programs import leaf, program

# A second time


@program
def second_walk_raises(t):
    z = (leaf(t, 3).exp() * 2.0).sum()
    z.backward()
    z.backward()


@program
def second_walk_where_nothing_was_saved(t):
    x = leaf(t, 3)
    z = (x + x).sum()
    z.backward()
    z.backward()
    return x.grad


@program
def retained_graph(t):
    x = leaf(t, 3)
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    return x.grad


@program
def saved_value_after_free(t):
    x = leaf(t, 3)
    z = x * x
    kept = z.grad_fn._saved_self.clone()
    z.sum().backward()
    return [kept, z.grad_fn._saved_self]


# The function grad


@program
def grad_of_leaf_and_result(t):
    x = leaf(t, 3)
    y = x * 2.0
    return [t.autograd.grad((y * y).sum(), [x, y]), x.grad]


@program
def grad_unused(t):
    x, y = leaf(t, 3), leaf(t, 2)
    t.autograd.grad(x.sum(), [x, y])


@program
def grad_allow_unused(t):
    x, y = leaf(t, 3), leaf(t, 2)
    return t.autograd.grad(x.sum(), [x, y], allow_unused=True)


@program
def grad_materialized(t):
    x, y = leaf(t, 3), leaf(t, 2)
    return t.autograd.grad(x.sum(), [x, y], materialize_grads=True)


@program
def grad_contradiction(t):
    x = leaf(t, 3)
    t.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


@program
def grad_without_inputs(t):
    t.autograd.grad(leaf(t, 3).sum(), [])


@program
def grad_of_constant_input(t):
    t.autograd.grad(leaf(t, 3).sum(), t.ones(3))


@program
def grad_frees_only_its_path(t):
    x, y = leaf(t, 3), leaf(t, 3)
    z = (x.exp() * y.exp()).sum()
    first = t.autograd.grad(z, x, retain_graph=True)
    second = t.autograd.grad(z, y)
    return [first, second]


@program
def grad_with_weights(t):
    x = leaf(t, 3)
    return t.autograd.grad(x.exp(), x, grad_outputs=t.ones(3, dtype=t.float64) * 2.0)


@program
def backward_to_some_inputs(t):
    x, y = leaf(t, 3), leaf(t, 3)
    h = x * y
    (h * h).sum().backward(inputs=[x, h])
    return [x.grad, y.grad, h.grad if h.retains_grad else "not retained"]


@program
def backward_to_no_inputs(t):
    leaf(t, 3).sum().backward(inputs=[])


@program
def second_derivative(t):
    x = leaf(t, 3)
    (g,) = t.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = t.autograd.grad(h.sum(), x)
    return [g.detach(), h.detach(), k]


@program
def gradient_penalty(t):
    x, w = leaf(t, 3), leaf(t, 3)
    (g,) = t.autograd.grad((x * w).exp().sum(), x, create_graph=True)
    ((g * g).sum() + (x * w).sum()).backward()
    return [x.grad, w.grad]


@program
def mixed_partial_through_division(t):
    x, y = leaf(t, 3), leaf(t, 3)
    (g,) = t.autograd.grad((x / y).sum(), y, create_graph=True)
    return t.autograd.grad(g.sum(), [x, y])


@program
def create_graph_accumulates_out_of_place(t):
    x = leaf(t, 3)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    return [first.detach(), x.grad.detach(), x.grad.requires_grad, first is x.grad]
