"""What a call costs when there is next to nothing to compute: 8 floats, views, numbers, and a chain of 100 ops."""

from __future__ import annotations

from ..harness import PEERS, Row, Timed, open_peer, prepare

__all__ = ["ROWS", "Overhead"]

VECTORS = """
torch.manual_seed(8)
x = torch.rand(8, device=device)
y = torch.rand(8, device=device)
m = torch.rand(8, 8, device=device)
n = torch.rand(8, 8, device=device)
"""
RECORDED = VECTORS + "x.requires_grad_()\nm.requires_grad_()\n"
ARRAYS = """
generator = numpy.random.default_rng(8)
x, y = generator.random((2, 8), dtype="float32")
m, n = generator.random((2, 8, 8), dtype="float32")
"""
CHAIN = (
    RECORDED
    + """
def chain():
    z = x
    for _ in range(100):
        z = z + y
    z.sum().backward()
"""
)

# name, body, whether NumPy writes it the same way
TINY = [
    ("add", "x + y", True),
    ("mul", "x * y", True),
    ("relu", "torch.relu(x)", False),
    ("sum", "x.sum()", True),
    ("matmul 8x8", "m @ n", True),
]
NUMBERS = [
    ("add number", "x + 1.0", True),
    ("mul number", "x * 2", True),
    ("rsub number", "1 - x", True),
]
VIEWS = [
    ("index int", "m[3]", True),
    ("index slice", "x[2:6]", True),
    ("index pair", "m[1:5, 3]", True),
    ("reshape", "x.reshape(4, 2)", True),
    ("view", "x.view(4, 2)", False),
    ("transpose", "m.T", True),
    ("unsqueeze", "x.unsqueeze(0)", False),
    ("setitem", "x[2] = 1.0", True),
    ("add_", "x.add_(y)", False),
    ("item", "x[0].item()", True),
    ("shape", "x.shape", True),
]


def _rows(group: str, lines: list[tuple[str, str, bool]], setup: str, target: float | None = None) -> list[Row]:
    return [
        Row(f"{group} {name}", setup, body, target, ARRAYS if same and setup is VECTORS else None)
        for name, body, same in lines
    ]


ROWS = [
    *_rows("tiny", TINY, VECTORS, target=0.8),
    *_rows("tiny recorded", TINY, RECORDED, target=0.8),
    *_rows("number", NUMBERS, VECTORS),
    *_rows("number recorded", NUMBERS, RECORDED),
    *_rows("view", VIEWS, VECTORS),
    Row("backward of sum", RECORDED, "x.sum().backward()"),
    Row("backward of (x * y).sum", RECORDED, "(x * y).sum().backward()"),
    Row("chain of 100 adds, forward and backward", CHAIN, "chain()", target=0.5),
]


class Overhead:
    """Seconds of a hundred runs of each row."""

    params = ([row.name for row in ROWS], PEERS)
    param_names = ("row", "peer")
    timed: Timed

    def setup(self, row: str, peer: str) -> None:
        self.timed = prepare(next(r for r in ROWS if r.name == row), open_peer(peer))

    def time_hundred(self, row: str, peer: str) -> None:
        self.timed.loop(range(100))
