"""The dtypes beside float32: half types as mixed precision has them, integers, bools and complex numbers."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ROWS", "Dtypes"]

TENSORS = """
torch.manual_seed(8)
nn, F, dtype = torch.nn, torch.nn.functional, torch.{dtype}
m = (torch.rand(550, 550, device=device) * {scale} + {shift}).to(dtype)
side = m[:256, :256].contiguous()
"""
LAYERS = """
wide, weight, bias = m[:128, :256].contiguous(), side, side[0].contiguous()
labels = torch.randint(256, (128,), device=device)
pictures = torch.rand(4, 16, 32, 32, device=device).to(dtype)
heads = torch.rand(4, 4, 64, 32, device=device).to(dtype)
convolution = nn.Conv2d(16, 32, 3, padding=1).to(device, dtype)
perceptron = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.LayerNorm(256), nn.Linear(256, 10)).to(device, dtype)

def forward():
    with torch.no_grad():
        return convolution(pictures)

def step():
    perceptron.zero_grad()
    F.cross_entropy(perceptron(wide), labels % 10).backward()
"""
COMMON = [
    ("add", "m + m"), ("neg", "-m"), ("sum", "m.sum()"), ("sum dim 1", "m.sum(1)"), ("cumsum dim 0", "m.cumsum(0)"),
    ("matmul 256", "side @ side"),
]  # fmt: skip
HALF = [
    ("mul number", "m * 2.5"), ("exp", "m.exp()"), ("max", "m.max()"), ("softmax", "m.softmax(1)"),
    ("layer_norm", "F.layer_norm(wide, (256,), bias, bias)"), ("cross_entropy", "F.cross_entropy(wide, labels)"),
    ("linear", "F.linear(wide, weight, bias)"), ("convolution", "forward()"),
    ("attention", "F.scaled_dot_product_attention(heads, heads, heads)"), ("perceptron, both ways", "step()"),
]  # fmt: skip
INTEGER = [("max", "m.max()"), ("compare", "m < side[0, 0]"), ("sort dim 1", "m.sort(1)")]
COMPLEX = [("mul", "m * m"), ("abs", "m.abs()"), ("mean dim 1", "m.mean(1)")]
BOOL = [
    ("sum", "m.sum()"),
    ("sum dim 1", "m.sum(1)"),
    ("any", "m.any()"),
    ("logical_and", "m & m"),
    ("unique", "m[:50].unique()"),
]


def _rows(dtype: str, setup: str, lines: list[tuple[str, str]]) -> list[Row]:
    scale, shift = (100, 0) if "int" in dtype else (2, -1) if dtype == "bool" else (1, 0.1)
    text = TENSORS.format(dtype=dtype, scale=scale, shift=shift) + setup
    if dtype == "bool":
        text = text.replace(".to(dtype)", " > 0")
    return [Row(f"{dtype} {name}", text, body, 1.0, None, (1, 2), "other dtypes") for name, body in lines]


ROWS = [
    *_rows("bfloat16", LAYERS, [*COMMON, *HALF]),
    *_rows("float16", LAYERS, [*COMMON, *HALF]),
    *_rows("int64", "", [*COMMON, *INTEGER]),
    *_rows("int32", "", [*COMMON, *INTEGER]),
    *_rows("complex64", "", [*COMMON, *COMPLEX]),
    *_rows("bool", "", BOOL),
]


class Dtypes(Suite):
    """Seconds of one run of each row."""

    rows = ROWS
