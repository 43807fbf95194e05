"""Programs about what is recorded: the modes that switch it, nested, as decorators and in hooks."""

from __future__ import annotations

from tests.autograd.programs import leaf, program, seen


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
def tensors_of_inference_mode(t):
    x = t.tensor([1.0, 2.0])
    with t.inference_mode():
        made, drawn, view = x + 1, t.rand(2), x[:1]
        made.mul_(2)
        x.add_(1)
        with t.inference_mode(False):
            normal = x * 1
    log = [made.is_inference(), drawn.is_inference(), made[0].is_inference(), made.tolist()]
    log += [
        view.is_inference(),
        normal.is_inference(),
        x.is_inference(),
        (x + 1).is_inference(),
        x.tolist(),
        x._version,
    ]
    return [*log, made.clone().is_inference(), (made + 1).is_inference()]


@program
def inference_tensor_is_written_outside(t):
    with t.inference_mode():
        x = t.ones(2)
    x.add_(1)


@program
def view_of_an_inference_tensor_is_written_outside(t):
    with t.inference_mode():
        x = t.ones(2)
    x[0].zero_()


@program
def inference_tensor_requires_grad_outside(t):
    with t.inference_mode():
        x = t.ones(2)
    x.requires_grad_()


@program
def inference_tensor_has_no_version(t):
    with t.inference_mode():
        x = t.ones(2)
    return x._version


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
