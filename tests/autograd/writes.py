"""Little programs about writes in place; PyTorch must answer the same."""

from __future__ import annotations

from tests.autograd.programs import leaf, program, seen


@program
def write_to_leaf(t):
    leaf(t, 3).add_(1.0)


@program
def write_to_leaf_without_recording(t):
    x = leaf(t, 3)
    with t.no_grad():
        x.add_(1.0)
    return seen(x)


@program
def write_to_view_of_leaf(t):
    leaf(t, 3).narrow(0, 0, 2).add_(1.0)


@program
def write_after_save(t):
    y = leaf(t, 3) * 1.0
    z = y * y
    y.add_(1.0)
    z.sum().backward()


@program
def write_after_save_of_result(t):
    y = leaf(t, 3).exp()
    y.mul_(2.0)
    y.sum().backward()


@program
def write_where_nothing_is_saved(t):
    x = leaf(t, 3)
    y = x + 1.0
    y.mul_(3.0)
    y.sum().backward()
    return [x.grad, seen(y)]


@program
def write_of_recorded_to_constant(t):
    x = leaf(t, 3)
    y = t.ones(3, dtype=t.float64)
    y.mul_(x)
    y.sum().backward()
    return [x.grad, seen(y)]


@program
def write_keeps_both_factors(t):
    x, w = leaf(t, 3), leaf(t, 3)
    y = x * 1.0
    y.mul_(w)
    y.sum().backward()
    return [x.grad, w.grad]


@program
def write_to_part(t):
    x, w = leaf(t, 4), leaf(t, 2)
    y = x * 1.0
    y.narrow(0, 1, 2).mul_(w)
    (y * y).sum().backward()
    return [x.grad, w.grad, seen(y)]


@program
def write_to_part_of_part(t):
    x = leaf(t, 2, 4)
    y = x * 1.0
    y.select(0, 1).narrow(0, 1, 2).exp_()
    (y * y).sum().backward()
    return [x.grad, seen(y)]


@program
def write_to_transposed_part(t):
    x = leaf(t, 2, 3)
    y = x.t() * 1.0
    y.t().narrow(0, 0, 1).mul_(3.0)
    (y * y).sum().backward()
    return x.grad


@program
def write_to_base_seen_through_view(t):
    x = leaf(t, 4)
    y = x * 1.0
    v = y.narrow(0, 0, 2)
    y.mul_(3.0)
    (v * v).sum().backward()
    return [x.grad, v._version, v.detach()]


@program
def write_to_view_seen_through_other_view(t):
    x = leaf(t, 4)
    y = x * 1.0
    v, u = y.narrow(0, 0, 3), y.narrow(0, 1, 3)
    v.mul_(3.0)
    (u * u).sum().backward()
    return [x.grad, u._version]


@program
def two_writes_to_parts(t):
    x = leaf(t, 4)
    y = x * 1.0
    y.narrow(0, 0, 2).mul_(3.0)
    y.narrow(0, 1, 2).mul_(5.0)
    y.sum().backward()
    return [x.grad, y._version, y.grad_fn.name()]


@program
def copy_into_part(t):
    x, w = leaf(t, 4), leaf(t, 2)
    y = x * 1.0
    y.narrow(0, 0, 2).copy_(w)
    (y * y).sum().backward()
    return [x.grad, w.grad]


@program
def copy_into_constant(t):
    w = leaf(t, 2)
    y = t.zeros(3, 2, dtype=t.float64)
    y.copy_(w)
    (y * y).sum().backward()
    return [w.grad, seen(y)]


@program
def copy_into_part_of_constant(t):
    w = leaf(t, 2)
    y = t.zeros(4, dtype=t.float64)
    y.narrow(0, 1, 2).copy_(w)
    (y * y).sum().backward()
    return [w.grad, seen(y)]


@program
def zero_result(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.zero_()
    y.sum().backward()
    return [x.grad, seen(y)]


@program
def fill_part(t):
    x = leaf(t, 4)
    y = x * 2.0
    y.narrow(0, 0, 2).fill_(7.0)
    (y * y).sum().backward()
    return [x.grad, seen(y)]


@program
def write_part_second_derivative(t):
    x = leaf(t, 4)
    y = x * x
    y.narrow(0, 1, 2).exp_()
    (g,) = t.autograd.grad((y * x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad((g * g).sum(), x)
    return [g.detach(), h]


@program
def write_with_operator(t):
    x = leaf(t, 3)
    y = x * 1.0
    before = y
    y += x
    y *= 2.0
    y.sum().backward()
    return [x.grad, before is y, y._version]


@program
def write_to_expanded(t):
    t.ones(1).expand(3).add_(1.0)


@program
def write_to_unbound_view(t):
    y = leaf(t, 2, 2) * 1.0
    y.unbind(0)[0].mul_(2.0)


@program
def write_to_unrecorded_view(t):
    y = leaf(t, 4) * 1.0
    with t.no_grad():
        v = y.narrow(0, 0, 2)
    v.mul_(2.0)


@program
def write_of_recorded_to_unrecorded_view(t):
    y = t.ones(4, dtype=t.float64)
    with t.no_grad():
        v = y.narrow(0, 0, 2)
    v.mul_(leaf(t, 2))


@program
def write_of_constant_to_unrecorded_view(t):
    y = t.ones(4, dtype=t.float64)
    with t.no_grad():
        v = y.narrow(0, 0, 2)
    v.mul_(2.0)
    return y


@program
def write_without_recording_to_result(t):
    x = leaf(t, 3)
    y = x * 2.0
    with t.no_grad():
        y.mul_(5.0)
    y.sum().backward()
    return [x.grad, seen(y)]


@program
def version_is_shared_with_views(t):
    y = t.ones(4)
    v = y.view(2, 2)
    v.add_(1.0)
    y.mul_(2.0)
    return [y._version, v._version, v._base is y, y._base is None]


@program
def comparison_in_place(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.gt_(2.0)
    (y * x).sum().backward()
    return [x.grad, seen(y)]


@program
def comparison_into_part(t):
    x, w = leaf(t, 3), leaf(t, 2)
    y = x * 2.0
    y.narrow(0, 0, 2).lt_(w)
    (y * x).sum().backward()
    return [x.grad, w.grad, seen(y)]


@program
def fill_with_random_numbers(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.narrow(0, 0, 2).uniform_()
    y.sum().backward()
    return [x.grad, y.requires_grad, y.grad_fn.name()]


@program
def write_to_empty(t):
    x = t.ones(2, 0, dtype=t.float64, requires_grad=True)
    y = x * 1.0
    y.mul_(2.0)
    y.sum().backward()
    return [x.grad, seen(y)]


@program
def write_by_several_calls_into_part(t):
    x, w = leaf(t, 3, 4), leaf(t, 2, 4)
    y = x * 1.0
    y.narrow(0, 1, 2).lerp_(w, 0.25)
    y.select(1, 0).clamp_(0.2, 3.0)
    (y * y).sum().backward()
    return [x.grad, w.grad, y.detach()]


@program
def assignment_by_index(t):
    x, w = leaf(t, 3, 4), leaf(t, 4)
    y = x * 1.0
    y[1] = w
    y[:, 2] = 5.0
    y[y > 8.0] = w.sum()
    (y * y).sum().backward()
    return [x.grad, w.grad, y.detach()]


@program
def assignment_through_expanded_gradient(t):
    x = leaf(t, 4)
    y = x.view(2, 2) * 1.0
    y.view(4)[1:3] = x[:2]
    y.sum().backward()
    return x.grad


@program
def views_made_before_and_after(t):
    x = leaf(t, 2, 3)
    y = x * 1.0
    before = y.view(3, 2).t()
    y[0].mul_(2.0)
    after = y.view(6)
    before[0, 0].mul_(5.0)
    (before.sum() + (after * after).sum()).backward()
    return [x.grad, before.detach(), after.detach(), after._version]
