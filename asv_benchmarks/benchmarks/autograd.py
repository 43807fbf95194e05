"""What a walk back through the tape costs: short ones, long ones, wide ones, a small network, and second derivatives."""

from __future__ import annotations

from ..harness import Row, Suite
from .overhead import RECORDED

__all__ = ["ROWS", "Autograd"]

CHAIN = (
    RECORDED
    + """
def chain():
    z = x
    for _ in range(100):
        z = z + y
    z.sum().backward()

def wide():
    sum((x * y for _ in range(50)), x).sum().backward()

def second():
    first, = torch.autograd.grad((x * x * y).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)
"""
)
NETWORK = """
torch.manual_seed(8)
layers = [layer for _ in range(20) for layer in (torch.nn.Linear(8, 8), torch.nn.Tanh())]
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.rand(8, 8, device=device)

def step():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""

# name, setup, body, target
LINES = [
    ("backward of sum", CHAIN, "x.sum().backward()", None),
    ("backward of (x * y).sum", CHAIN, "(x * y).sum().backward()", None),
    ("one leaf used fifty times, forward and backward", CHAIN, "wide()", None),
    ("second derivative of x * x * y", CHAIN, "second()", None),
    ("chain of 100 adds, forward and backward", CHAIN, "chain()", 0.5),
    ("perceptron of 20 layers, 8 wide, step", NETWORK, "step()", 0.5),
]
ROWS = [Row(name, setup, body, target, None, (1, 2), "tape") for name, setup, body, target in LINES]


class Autograd(Suite):
    """Seconds of ten runs of each row."""

    rows = ROWS
    count = 10
