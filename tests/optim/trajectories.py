"""Every optimizer with every option, and a problem to run them on."""

import numpy as np

# Options beside those that a line names are at their defaults; `lr` keeps 100 steps in a range where rounding shows.
OPTIMIZERS = {
    "SGD": [
        dict(lr=0.05), dict(lr=0.01, momentum=0.9, dampening=0.1, weight_decay=0.01),
        dict(lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.01), dict(lr=0.001, momentum=0.5, maximize=True),
        dict(lr=0.01, foreach=True), dict(lr=0.01, momentum=0.9, fused=True),
    ],
    "Adam": [
        dict(lr=0.01, weight_decay=0.1), dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, amsgrad=True),
        dict(lr=0.001, maximize=True), dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
        dict(lr=0.01, fused=True), dict(lr=0.01, foreach=True, amsgrad=True),
    ],
    "AdamW": [
        dict(lr=0.01, weight_decay=0.1), dict(lr=0.001, amsgrad=True, maximize=True), dict(lr=0.01, fused=True),
    ],
    "Adamax": [dict(), dict(lr=0.01, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1), dict(maximize=True)],
    "NAdam": [
        dict(), dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.02),
        dict(weight_decay=0.1, decoupled_weight_decay=True, maximize=True),
    ],
    "RAdam": [
        dict(), dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
        dict(weight_decay=0.1, decoupled_weight_decay=True, maximize=True),
    ],
    "RMSprop": [
        dict(lr=0.001), dict(lr=0.001, alpha=0.9, eps=1e-4, weight_decay=0.1), dict(lr=0.001, momentum=0.9),
        dict(lr=0.001, centered=True, eps=1e-3), dict(lr=0.001, centered=True, momentum=0.5, maximize=True, eps=1e-3),
    ],
    "Adagrad": [
        dict(), dict(lr=0.05, lr_decay=0.1, weight_decay=0.1), dict(initial_accumulator_value=0.5, eps=1e-6),
        dict(maximize=True), dict(fused=True),
    ],
    "Adadelta": [dict(), dict(lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1), dict(lr=0.1, maximize=True)],
    "ASGD": [dict(), dict(lr=0.05, lambd=0.01, alpha=0.5, t0=20, weight_decay=0.1), dict(lr=0.001, maximize=True)],
    "Rprop": [dict(), dict(lr=0.001, etas=(0.3, 1.5), step_sizes=(1e-4, 0.1)), dict(lr=1e-4, maximize=True, step_sizes=(1e-6, 1e-3))],
    "Adafactor": [
        dict(), dict(lr=0.005, beta2_decay=-0.5, eps=(1e-5, 1e-2), d=2.0, weight_decay=0.1), dict(maximize=True),
        dict(foreach=True),
    ],
}  # fmt: skip

CASES = [(name, i) for name, several in OPTIMIZERS.items() for i in range(len(several))]


def problem(library, dtype):
    """A small regression with a parameter of many pieces, a matrix and a 0-d one."""
    rng = np.random.default_rng(8)

    def make(array):
        return library.tensor(array, dtype=getattr(library, dtype))

    x, y = make(rng.standard_normal((16, 5))), make(rng.standard_normal((16, 3)))
    params = [library.nn.Parameter(make(rng.standard_normal(shape))) for shape in ((5, 3), (3,), (), (70000,))]

    def loss():
        out = (x @ params[0] + params[1]) * params[2]
        return ((out - y) ** 2).mean() + (params[3] ** 2).mean()

    return params, loss


def steps(optimizer, loss, count):
    """Take steps."""
    for _ in range(count):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def assert_same_state(state, expected, **tolerance):
    """The two state dicts hold the same numbers under the same names."""
    # PyTorch notes the momentum of a parameter without one as None.
    named = {i: [key for key in one if one[key] is not None] for i, one in expected["state"].items()}
    assert {i: sorted(one) for i, one in state["state"].items()} == {
        i: sorted(keys) for i, keys in named.items() if keys
    }
    for i, one in state["state"].items():
        for key, value in one.items():
            other = expected["state"][i][key]
            assert str(value.dtype) == str(other.dtype)
            np.testing.assert_allclose(value.double().numpy(), other.double().numpy(), **tolerance, err_msg=key)
