"""Programs with hooks: of tensors, nodes and leaves, and of what is saved."""

from __future__ import annotations

from tests.autograd.programs import leaf, program, seen

# Hooks


@program
def hook_replaces(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.register_hook(lambda g: g * 10.0)
    y.sum().backward()
    return x.grad


@program
def hooks_in_order(t):
    x = leaf(t, 3)
    log = []
    x.register_hook(lambda g: log.append("first"))
    handle = x.register_hook(lambda g: log.append("removed"))
    x.register_hook(lambda g: log.append("last"))
    x.register_post_accumulate_grad_hook(lambda p: log.append(["after", p.grad.clone()]))
    handle.remove()
    (x * x + x).sum().backward()
    return log


@program
def leaves_in_the_order_of_their_gradients(t):
    first, second, third, last = (leaf(t, 3) for _ in range(4))
    log = []
    for name, one in (("first", first), ("second", second), ("third", third), ("last", last)):
        one.register_post_accumulate_grad_hook(lambda p, name=name: log.append(name))
    ((last * 3.0 * first).exp() * third + second).sum().backward()
    return log


@program
def targets_beside_hooks(t):
    x, y = leaf(t, 3), leaf(t, 3)
    log = []
    inner = x * y
    inner.register_hook(lambda g: log.append(g.clone()))
    whole = (inner * inner + y).unbind(0)
    made = t.autograd.grad(whole[0] + whole[2], (inner, y), retain_graph=True)
    return [*made, *t.autograd.grad(whole[1], (x, whole[1])), *log, x.grad is None]


@program
def leaf_hook_gets_the_sum(t):
    x = leaf(t, 3)
    log = []
    x.register_hook(lambda g: log.append(g.clone()))
    (x * 2.0 + x * x).sum().backward()
    return log


@program
def hook_in_grad_call(t):
    x = leaf(t, 3)
    x.register_hook(lambda g: g * 3.0)
    return t.autograd.grad(x.sum(), x)


@program
def hook_of_unneeded_node(t):
    x, w = leaf(t, 3), leaf(t, 3)
    log = []
    y = w * 2.0
    y.register_hook(lambda g: log.append("called"))
    t.autograd.grad((x * y).sum(), x)
    return log


@program
def hook_returns_number(t):
    y = leaf(t, 3) * 2.0
    y.register_hook(lambda g: 3)
    y.sum().backward()


@program
def hook_changes_shape(t):
    y = leaf(t, 3) * 2.0
    y.register_hook(lambda g: g.narrow(0, 0, 1))
    y.sum().backward()


@program
def hook_on_constant(t):
    t.ones(3).register_hook(lambda g: g)


@program
def hook_before_write(t):
    x = leaf(t, 3)
    log = []
    y = x * 2.0
    y.register_hook(lambda g: log.append(["before", g.clone()]))
    y.mul_(3.0)
    y.register_hook(lambda g: log.append(["after", g.clone()]))
    y.sum().backward()
    return log


@program
def retained_gradients(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.retain_grad()
    y.retain_grad()
    z = y * y
    z.sum().backward(retain_graph=True)
    first = y.grad.clone()
    z.sum().backward()
    return [first, y.grad, y.retains_grad, x.retains_grad]


@program
def retained_gradient_follows_write(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.retain_grad()
    y.mul_(3.0)
    y.sum().backward()
    return [y.grad, x.grad]


@program
def retained_gradient_of_view_follows_write(t):
    x = leaf(t, 3)
    y = x * 2.0
    v = y.narrow(0, 0, 2)
    v.retain_grad()
    y.mul_(3.0)
    v.sum().backward()
    return [v.grad, x.grad, v.retains_grad]


@program
def retained_gradient_sees_hook(t):
    x = leaf(t, 3)
    y = x * 2.0
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    y.sum().backward()
    return [y.grad, x.grad]


@program
def retain_at_constant(t):
    t.ones(3).retain_grad()


@program
def retain_at_leaf(t):
    x = leaf(t, 3)
    x.retain_grad()
    x.sum().backward()
    return [x.grad, x.retains_grad]


@program
def node_hooks(t):
    x, b = leaf(t, 1), leaf(t, 3)
    log = []
    y = x + b
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2.0,))
    y.grad_fn.register_hook(lambda into, out: log.append([list(into), list(out)]))
    y.sum().backward()
    return [log, x.grad]


@program
def node_hook_replaces(t):
    x, b = leaf(t, 3), leaf(t, 3)
    y = x + b
    y.grad_fn.register_hook(lambda into, out: (into[0] * 5.0, into[1]))
    y.sum().backward()
    return [x.grad, b.grad]


@program
def node_hook_returns_too_few(t):
    y = leaf(t, 3) + leaf(t, 3)
    y.grad_fn.register_hook(lambda into, out: (into[0],))
    y.sum().backward()


@program
def post_accumulate_hook_on_result(t):
    (leaf(t, 3) * 2.0).register_post_accumulate_grad_hook(lambda p: None)


@program
def optimizer_in_backward(t):
    x = leaf(t, 3)

    def step(p):
        with t.no_grad():
            p.sub_(p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2.0).sum().backward()
    return [seen(x), x.grad]


@program
def multi_grad_hook(t):
    x, y = leaf(t, 3), leaf(t, 3)
    log = []
    handle = t.autograd.graph.register_multi_grad_hook([x, y], lambda gs: log.append(list(gs)))
    (x * y).sum().backward()
    (x * 2.0).sum().backward()
    handle.remove()
    (x * 2.0).sum().backward()
    return log


@program
def multi_grad_hook_any(t):
    x, y = leaf(t, 3), leaf(t, 3)
    log = []
    t.autograd.graph.register_multi_grad_hook([x, y], lambda g: log.append("called"), mode="any")
    (x * y).sum().backward()
    (x * y).sum().backward()
    return log


# Saved-tensor hooks


@program
def saved_tensors_through_hooks(t):
    x = leaf(t, 3)
    log = []
    with t.autograd.graph.saved_tensors_hooks(
        lambda v: log.append("pack") or v.detach().clone() * 2.0, lambda v: log.append("unpack") or v
    ):
        z = (x * x).exp()
    z.sum().backward()
    return [log, x.grad]


@program
def saved_tensors_hooks_nest(t):
    x = leaf(t, 3)
    log = []
    pair = lambda name: (lambda v: log.append(name) or v, lambda v: v)  # noqa: E731
    with t.autograd.graph.saved_tensors_hooks(*pair("outer")):
        x.exp()
        with t.autograd.graph.saved_tensors_hooks(*pair("inner")):
            x.exp()
        x.exp()
    return log


@program
def saved_tensors_hooks_and_second_derivative(t):
    x = leaf(t, 3)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v.detach().clone(), lambda v: v):
        z = (x * x).exp()
    (g,) = t.autograd.grad(z.sum(), x, create_graph=True)
    return [g.detach(), t.autograd.grad(g.sum(), x)]


@program
def pack_hook_writes(t):
    x = leaf(t, 3)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v.detach().mul_(2.0), lambda v: v):
        (x * 1.0).exp()


@program
def unpack_hook_returns_number(t):
    x = leaf(t, 3)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: 4):
        z = x.exp()
    z.sum().backward()


@program
def saved_on_cpu(t):
    x = leaf(t, 3)
    with t.autograd.graph.save_on_cpu():
        z = x.exp() * x
    z.sum().backward()
    return x.grad


@program
def disabled_hooks(t):
    graph = t.autograd.graph
    with graph.disable_saved_tensors_hooks("not here"), graph.saved_tensors_hooks(lambda v: v, lambda v: v):
        pass


@program
def raised_version(t):
    y = leaf(t, 3) * 1.0
    z = y.exp() * y
    t.autograd.graph.increment_version(y)
    z.sum().backward()
