"""Ten cheap ops in a row and a softmax in parts, given to a backend as one program, beside the same ops one by one."""

from __future__ import annotations

from ..harness import Row, Suite
from ..limits import Work

__all__ = ["ROWS", "Fused"]

START = """
torch.manual_seed(8)
x, y = torch.randn({shape}, device=device), torch.randn({shape}, device=device)

def chain(mul, add, sub, clamp_min, sqrt, x, y):
    t = mul(sub(mul(clamp_min(add(mul(x, y), x), 0.0), 1.5), y), 2.0)
    return add(mul(sqrt(add(mul(t, t), 0.1)), x), y)

def parts(sub, exp, amax, sum, div, x):
    power = exp(sub(x, amax(x)))
    return div(power, sum(power))

if torch.__name__ == "tensorcore":
    from tensorcore.plugin import Program, Spec, Step, Value

    steps, whole, row = [], Spec(x.shape, x.dtype), Spec((*x.shape[:-1], 1), x.dtype)

    def step(name, spec=whole, **options):
        def write(*operands):
            steps.append(Step(name, operands, options, (spec,)))
            return Value(1 + len(steps))
        return write

    def reduced(name):
        return step(name, row, dim=(len(x.shape) - 1,), keepdim=True)

    natives = x.native, y.native
else:
    def step(name):
        return getattr(torch, name)

    def reduced(name):
        return lambda x: getattr(torch, name)(x, -1, True)

def ready(function, steps_of, *values):
    if torch.__name__ != "tensorcore":
        return lambda: function(*steps_of, *values)
    answer = function(*steps_of, *map(Value, range(len(values))))
    kernel = x.device.compile(Program((whole, whole), tuple(steps), (answer,)))
    return lambda: kernel(*natives)
"""
CHAIN = (
    START
    + """
run = ready(chain, [step(name) for name in ("mul", "add", "sub", "clamp_min", "sqrt")], x, y)
"""
)
PARTS = (
    START
    + """
run = ready(parts, [step("sub"), step("exp"), reduced("amax"), reduced("sum"), step("div")], x)
"""
)

ROWS = [
    *[
        Row(
            f"ten ops fused {size}",
            CHAIN.format(shape=count),
            "run()",
            target,
            threads=(1, 2),
            group="fused programs",
            work=Work(8 * count, 4 * count),
        )
        for size, count, target in (("1e3", 1000, 0.1), ("1e5", 100_000, None), ("1e7", 10_000_000, 0.03))
    ],
    *[
        Row(
            f"softmax in parts fused {rows}x{width}",
            PARTS.format(shape=(rows, width)),
            "run()",
            threads=(1, 2),
            group="fused programs",
            work=Work(4 * rows * width, 4 * rows * width),
        )
        for rows, width in ((1000, 100), (100, 10_000))
    ],
]


class Fused(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
