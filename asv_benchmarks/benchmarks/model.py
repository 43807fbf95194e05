"""What a training step costs: a perceptron and a LeNet, in the sizes that people start with."""

from __future__ import annotations

from ..harness import PEERS, Row, Timed, open_peer, prepare

__all__ = ["ROWS", "Model"]

TRAINING = """
torch.manual_seed(8)
model = model.to(device)
loss_of = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
labels = torch.randint(0, 10, (len(images),), device=device)

def step():
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()

def infer():
    with torch.no_grad():
        return model(images)
"""
PERCEPTRON = (
    """
from_to = [(784, 256), (256, 128), (128, 10)]
layers = [layer for sizes in from_to for layer in (torch.nn.Linear(*sizes), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers[:-1])
images = torch.rand(128, 784, device=device)
"""
    + TRAINING
)
LENET = (
    """
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(400, 120), torch.nn.ReLU(),
    torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10),
)
images = torch.rand(32, 1, 28, 28, device=device)
"""
    + TRAINING
)

ROWS = [
    Row("perceptron 784-256-128-10, batch 128, step", PERCEPTRON, "step()", threads=(1, 2)),
    Row("perceptron 784-256-128-10, batch 128, inference", PERCEPTRON, "infer()", threads=(1, 2)),
    Row("LeNet, batch 32, step", LENET, "step()", threads=(1, 2)),
    Row("LeNet, batch 32, inference", LENET, "infer()", threads=(1, 2)),
]


class Model:
    """Seconds of one step or one inference."""

    params = ([row.name for row in ROWS], PEERS)
    param_names = ("row", "peer")
    timed: Timed

    def setup(self, row: str, peer: str) -> None:
        self.timed = prepare(next(r for r in ROWS if r.name == row), open_peer(peer))

    def time_once(self, row: str, peer: str) -> None:
        self.timed.loop(range(1))
