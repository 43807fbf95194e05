"""What a training step and an inference cost: a perceptron, two convolutional networks, a transformer and an LSTM."""

from __future__ import annotations

from ..harness import Row, Suite
from ..limits import Work

__all__ = ["MODELS", "ROWS", "Model"]

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
images = torch.rand(64, 1, 28, 28, device=device)
"""
    + TRAINING
)

# ResNet-18 (He et al. 2015) as it is used on 32x32: a first convolution of 3x3 and no first pooling.
RESNET = (
    """
nn = torch.nn

class Block(nn.Module):
    def __init__(self, channels, outs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs)
        self.conv2, self.norm2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs)
        self.relu, self.short = nn.ReLU(), nn.Identity()
        if stride != 1 or channels != outs:
            self.short = nn.Sequential(nn.Conv2d(channels, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))

    def forward(self, x):
        made = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(made + self.short(x))

sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
model = nn.Sequential(
    nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *[Block(*size) for size in sizes],
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
)
images = torch.rand(16, 3, 32, 32, device=device)
"""
    + TRAINING
)
SEQUENCES = """
torch.manual_seed(8)
model = model.to(device)

def step():
    optimizer.zero_grad()
    scores = model(tokens)
    loss = torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), following.reshape(-1))
    loss.backward()
    optimizer.step()

def infer():
    with torch.no_grad():
        return model(tokens)
"""
GPT = (
    """
nn, width, heads = torch.nn, 128, 4

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).split(width, -1)
        q, k, v = [part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts]
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x))))

class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(65, width), nn.Embedding(64, width)
        self.layers, self.norm = nn.ModuleList([Layer() for _ in range(4)]), nn.LayerNorm(width)
        self.scores = nn.Linear(width, 65)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.scores(self.norm(x))

model = GPT()
tokens, following = torch.randint(0, 65, (2, 16, 64), device=device)
"""
    + SEQUENCES
    + "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)\n"
)
LSTM = (
    """
class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = torch.nn.Embedding(1000, 200), torch.nn.LSTM(200, 200)
        self.scores = torch.nn.Linear(200, 1000)

    def forward(self, tokens):
        return self.scores(self.lstm(self.words(tokens))[0])

model = Words()
tokens, following = torch.randint(0, 1000, (2, 35, 20), device=device)
"""
    + SEQUENCES
    + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
)

MODELS = {
    "perceptron 784-256-128-10, batch 128": PERCEPTRON,
    "LeNet, batch 64": LENET,
    "ResNet-18 on 32x32, batch 16": RESNET,
    "GPT of 4 layers, 128 wide, 64 long, batch 16": GPT,
    "LSTM of 200 units, 35 long, batch 20": LSTM,
}
# The multiply-adds of an inference, layer by layer; a step has as many again for the gradients of what the layers take, and of
# their weights. The other models have none that cannot be left out: what meets a zero of ReLU, and much of a window of 3x3.
PRODUCTS = {
    # four layers of 128 x (3 + 1 + 4 + 4) x 128, the scores, and the pairs of places (a token sees itself and those before it)
    "GPT of 4 layers, 128 wide, 64 long, batch 16": (
        16 * 64 * (4 * 12 * 128**2 + 128 * 65) + 4 * 16 * 4 * (2 * 64 * 65 // 2 * 32)
    ),
    # four gates of 35 inputs and 34 states, for the first one is zero, and the scores
    "LSTM of 200 units, 35 long, batch 20": 4 * 20 * 200 * 200 * (35 + 34) + 35 * 20 * 200 * 1000,
}
ROWS = [
    Row(
        f"{name}, {what}", setup, body, target, threads=(1, 2), group="models",
        work=Work(products=ways * PRODUCTS[name]) if name in PRODUCTS else None,
    )
    for name, setup in MODELS.items()
    for what, body, target, ways in (("step", "step()", 0.85, 3), ("inference", "infer()", None, 1))
]  # fmt: skip


class Model(Suite):
    """Seconds of one step or one inference."""

    rows = ROWS
