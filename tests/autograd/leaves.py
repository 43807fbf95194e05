"""Programs about leaves, roots, and which tensors are what on the tape."""

from __future__ import annotations

from tests.autograd.programs import leaf, program, seen

# Leaves and roots


@program
def chain(t):
    x = leaf(t, 3)
    y = (x * 3.0).exp()
    y.sum().backward()
    return [seen(x), seen(y), x.grad]


@program
def twice_adds_up(t):
    x = leaf(t, 3)
    (x * 2.0).sum().backward()
    first = x.grad
    (x * 3.0).sum().backward()
    return [x.grad, first is x.grad, x.grad._version, x.grad.requires_grad]


@program
def one_leaf_many_times(t):
    x = leaf(t, 3)
    (x * x + x * x * x + x).sum().backward()
    return x.grad


@program
def several_roots(t):
    x, y = leaf(t, 3), leaf(t, 3)
    t.autograd.backward([(x * y).sum(), x.exp()], [None, t.ones(3, dtype=t.float64)])
    return [x.grad, y.grad]


@program
def same_root_twice(t):
    x = leaf(t, 3)
    z = (x * x).sum()
    t.autograd.backward([z, z])
    return x.grad


@program
def root_is_leaf(t):
    x = leaf(t, 3)
    x.backward(t.ones(3, dtype=t.float64))
    return x.grad


@program
def root_over_other_root(t):
    x = leaf(t, 3)
    y = x * 2.0
    z = (y * y).sum()
    t.autograd.backward([z, y], [None, t.ones(3, dtype=t.float64)])
    return x.grad


@program
def vector_root_needs_gradient(t):
    leaf(t, 3).exp().backward()


@program
def one_element_root(t):
    x = leaf(t, 1, 1)
    (x * 2.0).backward()
    return x.grad


@program
def wrong_shape_of_root_gradient(t):
    (leaf(t, 3) * 2.0).backward(t.ones(2, dtype=t.float64))


@program
def root_gradient_of_other_dtype(t):
    x = leaf(t, 3)
    (x * 2.0).backward(t.ones(3))
    return x.grad


@program
def constant_root(t):
    t.ones(3).sum().backward()


@program
def fewer_gradients_than_roots(t):
    x = leaf(t, 3)
    t.autograd.backward([x.sum(), x.sum()], [None])


@program
def root_gradient_is_no_tensor(t):
    t.autograd.backward([leaf(t, 3).sum()], [1.0])


@program
def gradient_argument_is_not_written(t):
    x = leaf(t, 3)
    g = t.ones(3, dtype=t.float64)
    x.backward(g)
    x.backward(g)
    x.grad.mul_(5.0)
    return [g, g._version, x.grad]


@program
def empty_tensor(t):
    x = t.ones(2, 0, dtype=t.float64, requires_grad=True)
    (x * 2.0).sum().backward()
    return x.grad


@program
def zero_dim_tensor(t):
    x = t.tensor(2.0, dtype=t.float64, requires_grad=True)
    (x * x).backward()
    return x.grad


@program
def broadcast_is_summed(t):
    x, y = leaf(t, 3, 1), leaf(t, 2, 1, 4)
    (x * y).sum().backward()
    return [x.grad, y.grad]


@program
def promotion_casts_back(t):
    x = t.ones(3, requires_grad=True)
    y = leaf(t, 3)
    (x * y).sum().backward()
    return [x.grad, y.grad]


@program
def integers_are_constants(t):
    x, k = leaf(t, 3), t.arange(3)
    z = x * k
    z.sum().backward()
    return [x.grad, k.requires_grad, seen(z)]


@program
def complex_product(t):
    a = t.tensor([1 + 2j, 3 - 1j], dtype=t.complex128, requires_grad=True)
    b = t.tensor([2.0, 3.0], dtype=t.float64, requires_grad=True)
    (a * b).backward(t.tensor([1 + 1j, 2 - 1j], dtype=t.complex128))
    return [a.grad, b.grad]


@program
def complex_scalar_root(t):
    t.tensor(1 + 2j, requires_grad=True).sum().backward()


@program
def real_gradient_for_complex_root(t):
    a = t.tensor([1 + 2j], requires_grad=True)
    (a * 1.0).backward(t.ones(1))


# Which tensors are what


@program
def integer_requires_grad(t):
    t.arange(3).requires_grad_()


@program
def integer_constructor_requires_grad(t):
    t.tensor([1, 2], requires_grad=True)


@program
def switch_off_at_result(t):
    (leaf(t, 3) * 2.0).requires_grad_(False)


@program
def switch_on_at_result(t):
    return seen((leaf(t, 3) * 2.0).requires_grad_(True))


@program
def frozen_in_between(t):
    x = leaf(t, 3)
    y = (x * x).sum()
    x.requires_grad_(False)
    z = (x * 2.0).sum()
    x.requires_grad_(True)
    y.backward()
    return [x.grad, z.requires_grad]


@program
def frozen_at_backward(t):
    x = leaf(t, 3)
    y = (x * x).sum()
    x.requires_grad_(False)
    y.backward()
    return [x.grad, x.requires_grad]


@program
def gradient_survives_freezing(t):
    x = leaf(t, 3)
    x.sum().backward()
    x.requires_grad_(False)
    kept = x.grad.clone()
    x.requires_grad_()
    x.sum().backward()
    return [kept, x.grad]


@program
def detached(t):
    x = leaf(t, 3)
    y = (x * 2.0).detach()
    z = x * y
    z.sum().backward()
    return [x.grad, seen(y), y._is_view()]


@program
def detach_in_place(t):
    y = leaf(t, 3) * 2.0
    y.detach_()
    return seen(y)


@program
def detach_in_place_of_leaf(t):
    return seen(leaf(t, 3).detach_())


@program
def detach_in_place_of_view(t):
    (leaf(t, 3) * 2.0).narrow(0, 0, 2).detach_()


@program
def detach_shares_the_version(t):
    x = leaf(t, 3)
    y = x * 1.0
    z = y * y
    y.detach().mul_(2.0)
    return [y._version, z.sum().backward()]


@program
def data_escapes_the_version(t):
    x = leaf(t, 3)
    x.data.mul_(2.0)
    (x * x).sum().backward()
    return [seen(x), x.grad]


@program
def numpy_of_leaf(t):
    leaf(t, 3).numpy()


@program
def assigned_gradient(t):
    x = leaf(t, 3)
    x.grad = t.ones(3, dtype=t.float64)
    (x * 2.0).sum().backward()
    return x.grad


@program
def assigned_gradient_of_wrong_shape(t):
    leaf(t, 3).grad = t.ones(2, dtype=t.float64)


@program
def assigned_gradient_of_wrong_type(t):
    leaf(t, 3).grad = 1.0


@program
def edges(t):
    x = leaf(t, 3)
    z = x * 2.0 + x.exp()
    return [[fn.name() for fn, _ in z.grad_fn.next_functions], [i for _, i in z.grad_fn.next_functions]]


@program
def leaf_node_knows_its_variable(t):
    x = leaf(t, 3)
    node = (x * 2.0).grad_fn.next_functions[0][0]
    return [node.variable is x, node.name()]
