"""Data sets that the tests of workers load, importable by a process that was started anew."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import numpy as np

import tensorcore as tc
from tensorcore.utils import data


class Numbers(data.Dataset):
    """Sample ``i`` is ``(full of i, i)``; the tensors of a batch are large enough to be shared."""

    def __init__(self, count: int = 20, shape: tuple[int, ...] = (32, 32)) -> None:
        self.count, self.shape = count, shape

    def __getitem__(self, index: int) -> Any:
        return tc.full(self.shape, float(index)), index

    def __len__(self) -> int:
        return self.count


class Failing(Numbers):
    """Sample 5 does what ``how`` says."""

    def __init__(self, how: str, count: int = 20) -> None:
        super().__init__(count)
        self.how = how

    def __getitem__(self, index: int) -> Any:
        if index == 5:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "exit":
                os._exit(3)
            if self.how == "sleep":
                time.sleep(60)
            if self.how == "local":
                raise local_error()("what it was")
            if self.how == "two":
                raise TwoArguments("first", "second")
            raise {"value": ValueError, "key": KeyError, "stop": StopIteration}[self.how]("what it was")
        return super().__getitem__(index)


class TwoArguments(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)


def local_error() -> type[Exception]:
    class Local(Exception):
        pass

    return Local


class Drawn(data.Dataset):
    """What each random generator of the process draws."""

    def __init__(self, count: int = 8) -> None:
        self.count = count

    def __getitem__(self, index: int) -> Any:
        return random.random(), float(np.random.rand()), tc.rand(2)

    def __len__(self) -> int:
        return self.count


class Who(data.Dataset):
    """Which worker loads a sample, and what it knows of itself."""

    def __getitem__(self, index: int) -> Any:
        info = data.get_worker_info()
        return index, -1 if info is None else info.id, 0 if info is None else info.num_workers, os.getpid()

    def __len__(self) -> int:
        return 8


class Split(data.IterableDataset):
    """Each worker gives its part of ``range(count)``."""

    def __init__(self, count: int = 10) -> None:
        self.count = count

    def __iter__(self) -> Any:
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))

    def __len__(self) -> int:
        return self.count


class Odd(data.Dataset):
    """Samples of many kinds: text, bytes, arrays, nested, empty, of every dtype, and views of something large."""

    large = tc.arange(1 << 18)

    def __getitem__(self, index: int) -> Any:
        return {
            "text": f"sample {index}", "bytes": b"\0\xff", "array": np.arange(3) * index, "none": None, "empty": tc.zeros(0, 3),
            "view": self.large[index : index + 3], "half": tc.ones(3, dtype=tc.bfloat16), "complex": tc.tensor([1 + 2j]),
            "turned": tc.arange(6000).reshape(2, 3000).t(), "grad": tc.ones(2, requires_grad=True), "long": "x" * 100_000,
        }  # fmt: skip

    def __len__(self) -> int:
        return 3


def as_they_are(batch: Any) -> Any:
    return batch


def fail(number: int) -> None:
    raise ValueError(f"init of {number}")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
