"""What loading costs: pictures that two workers decode, the first batch of a pass, and batches of what is in memory."""

from __future__ import annotations

from ..harness import Row, Suite

__all__ = ["ROWS", "Loading"]

PICTURES = """
import atexit, pathlib, shutil, tempfile
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder, True)
paths, labels = [], []
digits = load_digits()
for number, (picture, label) in enumerate(zip(digits.images[:512], digits.target)):
    path = pathlib.Path(folder, f"{number}.png")
    large = np.kron(picture, np.ones((SCALE, SCALE))) * 15.9375
    Image.fromarray(large.astype(np.uint8)).convert("RGB").save(path)
    paths.append(str(path))
    labels.append(int(label))

class Pictures(torch.utils.data.Dataset):
    def __getitem__(self, index):
        picture = np.array(Image.open(paths[index]))
        return torch.from_numpy(picture).permute(2, 0, 1).float() / 255, labels[index]

    def __len__(self):
        return len(paths)

def epoch():
    for images, numbers in loader:
        pass

def first():
    for images, numbers in loader:
        break
"""
# By fork, wherever the row runs: the class of the pictures is of its setup, and no module's, from which a new process could have it.
NEW = 'loader = torch.utils.data.DataLoader(Pictures(), 64, shuffle=True, num_workers=2, multiprocessing_context="fork")\n'
KEPT = NEW.replace("num_workers=2", "num_workers=2, persistent_workers=True")
MEMORY = """
values = torch.utils.data.TensorDataset(torch.rand(4096, 64), torch.randint(0, 10, (4096,)))
loader = torch.utils.data.DataLoader(values, 64, shuffle=True)

def epoch():
    for images, numbers in loader:
        pass
"""

# PyTorch's is the measure: at or ahead of it. The epochs divide 512 pictures by the time shown.
ROWS = [
    Row(
        "loader, 512 PNGs of 64x64, 2 workers, epoch",
        PICTURES.replace("SCALE", "8") + KEPT,
        "epoch()",
        1.0,
        group="loaders",
    ),
    Row(
        "loader, 512 PNGs of 256x256, 2 workers, epoch",
        PICTURES.replace("SCALE", "32") + KEPT,
        "epoch()",
        1.0,
        group="loaders",
    ),
    Row(
        "loader, 2 workers, from start to first batch to end",
        PICTURES.replace("SCALE", "8") + NEW,
        "first()",
        1.0,
        group="loaders",
    ),
    Row("loader, 4096 rows in memory, no workers, epoch", MEMORY, "epoch()", 1.0, group="loaders"),
]


class Loading(Suite):
    """Seconds of one epoch or of one start."""

    rows = ROWS
