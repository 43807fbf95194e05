"""What ``import tensorcore`` costs in a fresh process: seconds, and modules loaded."""

from __future__ import annotations

from ..harness import PEERS, Comparison, in_fresh_process

__all__ = ["TARGET", "ImportTime", "compare_imports", "import_once"]

TARGET = 0.12  # of PyTorch's

CODE = """
import sys, time
before, start = len(sys.modules), time.perf_counter()
import {library}
print(time.perf_counter() - start, len(sys.modules) - before)
"""


def import_once(library: str) -> tuple[float, int]:
    """Seconds that the import statement takes in a new process, and how many modules it loads."""
    done = in_fresh_process(CODE.format(library=library))
    seconds, modules = done.split()
    return float(seconds), int(modules)


def compare_imports(ours: str, peer: str, rounds: int = 7) -> Comparison:
    """Both imports in turns; a first one of each, which reads the files from disk, is not counted."""
    taken: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        for library, results in zip((ours, peer), taken, strict=True):
            results.append(import_once(library)[0])
    return Comparison.of(taken[0][1:], taken[1][1:])


class ImportTime:
    """The import of each peer."""

    params = sorted({peer.partition(":")[0] for peer in PEERS})
    param_names = ("library",)
    timeout = 300

    def track_seconds(self, library: str) -> float:
        return sorted(import_once(library)[0] for _ in range(5))[2]

    def track_modules(self, library: str) -> int:
        return import_once(library)[1]

    track_seconds.unit = "seconds"  # type: ignore[attr-defined]
    track_modules.unit = "modules"  # type: ignore[attr-defined]
