"""Little programs about autograd, each a function of the library and of nothing else: PyTorch must answer the same.

A program returns tensors, numbers, strings or nested lists of them; or it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a program under its own name."""
    PROGRAMS[function.__name__] = function
    return function


def leaf(t: Any, *shape: int) -> Any:
    """0, 1, 2, ... plus one half, as a leaf that requires grad."""
    count = 1
    for size in shape:
        count *= size
    return (t.arange(count, dtype=t.float64) + 0.5).reshape(shape).requires_grad_()


def seen(tensor: Any) -> Any:
    """What a user can see of a tensor's place on the tape."""
    fn = tensor.grad_fn
    return [
        tensor.detach().clone(),
        tensor.requires_grad,
        tensor.is_leaf,
        tensor._version,
        None if fn is None else fn.name(),
    ]


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


# Modes


@program
def modes_nest(t):
    log = [t.is_grad_enabled()]
    with t.no_grad():
        log.append(t.is_grad_enabled())
        with t.enable_grad():
            log.append(t.is_grad_enabled())
        with t.set_grad_enabled(False):
            log.append(t.is_grad_enabled())
        log.append(t.is_grad_enabled())
    with t.inference_mode():
        log += [t.is_grad_enabled(), t.is_inference_mode_enabled()]
        with t.inference_mode(False):
            log += [t.is_grad_enabled(), t.is_inference_mode_enabled()]
    return [*log, t.is_grad_enabled(), t.is_inference_mode_enabled()]


@program
def modes_decorate(t):
    @t.no_grad()
    def plain():
        return t.is_grad_enabled()

    @t.no_grad
    def bare():
        return t.is_grad_enabled()

    @t.set_grad_enabled(False)
    def switched():
        return t.is_grad_enabled()

    return [plain(), bare(), t.is_grad_enabled(), switched(), t.inference_mode(lambda: t.is_grad_enabled())()]


@program
def mode_on_generator(t):
    @t.no_grad()
    def steps():
        log.append(t.is_grad_enabled())
        got = yield 1
        log.append([got, t.is_grad_enabled()])
        try:
            yield 2
        except ValueError:
            log.append(t.is_grad_enabled())
        yield 3

    log = []
    running = steps()
    next(running)
    log.append(t.is_grad_enabled())
    running.send("sent")
    log.append(t.is_grad_enabled())
    running.throw(ValueError)
    log.append(t.is_grad_enabled())
    return log


@program
def set_grad_enabled_as_a_call(t):
    t.set_grad_enabled(False)
    inside = (leaf(t, 3) * 2.0).requires_grad
    t.set_grad_enabled(True)
    return [inside, (leaf(t, 3) * 2.0).requires_grad]


@program
def mode_survives_error(t):
    try:
        with t.no_grad():
            raise ValueError
    except ValueError:
        return t.is_grad_enabled()


@program
def no_grad_result(t):
    with t.no_grad():
        return seen(leaf(t, 3) * 2.0)


@program
def leaf_made_without_recording(t):
    with t.no_grad():
        x = leaf(t, 3)
    (x * 2.0).sum().backward()
    return [x.grad, x.requires_grad]


@program
def backward_inside_no_grad(t):
    x = leaf(t, 3)
    z = (x * x).sum()
    with t.no_grad():
        z.backward()
    return x.grad


@program
def hook_runs_without_recording(t):
    x = leaf(t, 3)
    log = []
    x.register_hook(lambda g: log.append(t.is_grad_enabled()))
    (x * x).sum().backward()
    (x * x).sum().backward(create_graph=True)
    return log


@program
def backward_inside_hook(t):
    x, w = leaf(t, 3), leaf(t, 3)

    def hook(g):
        with t.enable_grad():
            (w * w).sum().backward()

    (x * 2.0).register_hook(hook)
    y = x * 3.0
    y.register_hook(hook)
    y.sum().backward()
    return [x.grad, w.grad]


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
