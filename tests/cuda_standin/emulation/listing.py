"""Which kernels the conformance suite runs, so that the emulation compiles them by the hundred: in a fifth of the time.

``kernels.json`` beside this file is the list; a kernel that it lacks is compiled alone. It is written again by

    TENSORCORE_EMULATION_LIST=FOLDER python -m pytest tests/cuda/test_conformance.py
    python -m tests.cuda_standin.emulation.listing FOLDER

where the first leaves in the folder what each process asked for.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorcore_cuda.kernels import pointwise
from tensorcore_cuda.kernels.launch import HERE, source_of
from tests.cuda_standin.emulation import compile as emulation

__all__ = ["beside", "write"]

_source = pointwise._source
LIST = Path(__file__).with_name("kernels.json")
BATCH = 100

Request = tuple[str, tuple[str, ...], tuple[str, ...]]
Entry = tuple[Any, ...]  # ("softmax.cu", "row<float>"), or the arguments of ``pointwise._source``


_all = [False]  # whether this process runs the suite


def beside(request: Request) -> list[Request]:
    """The request and those that are compiled together with it, where the suite runs: it will ask for them too."""
    place = _places().get(hash(request)) if _all[0] else None
    if place is None:
        return [request]
    batch = [_request(one) for one in _entries()[place * BATCH : (place + 1) * BATCH]]
    return list(dict.fromkeys([request, *batch])) if request in batch else [request]


def pytest_configure() -> None:
    """As a plugin of pytest: compile by the list, and write down what was asked for, where the environment wants that."""
    _all[0] = True
    folder = os.environ.get("TENSORCORE_EMULATION_LIST")
    if folder is None:
        return
    found: list[Entry] = []
    files = {source_of(one.name): one.name for one in HERE.glob("*.cu")}
    module = emulation.emulate

    def generated(*entry: Any) -> str:
        found.append(entry)
        return _source(*entry)

    def emulate(text: str, names: Any = None, options: Any = ()) -> Any:
        if text in files:
            found.extend([(files[text], one) for one in names])
        return module(text, names, options)

    pointwise._source, emulation.emulate = generated, emulate
    atexit.register(lambda: (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(found)))


@functools.cache
def _entries() -> list[Entry]:
    """All of the list, those of the same dtypes next to each other."""
    if not LIST.exists():
        return []
    held = json.loads(LIST.read_text("utf-8"))
    made: list[Entry] = [(file, one) for file, names in held["files"].items() for one in names]
    for types, bodies in held["generated"].items():
        arrays, numbers, outputs = [tuple(filter(None, one.split(","))) for one in types.split("|")]
        for statements, layouts in bodies.items():
            for one in layouts.split(","):
                modes, dims, pack = one.split()
                made.append(((arrays, numbers, outputs, statements), modes, int(dims), int(pack), "unsigned"))
    return made


@functools.cache
def _places() -> dict[int, int]:
    """In which batch a kernel is."""
    return {hash(_request(one)): i // BATCH for i, one in enumerate(_entries())}


def _request(entry: Entry) -> Request:
    if len(entry) == 2:
        return source_of(entry[0]), (entry[1],), ()
    body, *layout = entry
    return _source(pointwise.Body(*body), *layout), ("pointwise",), ()


def _listed(entries: Iterator[Entry]) -> dict[str, Any]:
    """As ``kernels.json`` holds them."""
    files: dict[str, set[str]] = {}
    generated: dict[str, dict[str, set[str]]] = {}
    for one in entries:
        if len(one) == 2:
            files.setdefault(one[0], set()).add(one[1])
            continue
        (arrays, numbers, outputs, statements), modes, dims, pack, index = one
        if index == "unsigned":
            types = "|".join([",".join(some) for some in (arrays, numbers, outputs)])
            generated.setdefault(types, {}).setdefault(statements, set()).add(f"{modes} {dims} {pack}")
    return {
        "files": {file: sorted(names) for file, names in sorted(files.items())},
        "generated": {
            types: {body: ",".join(sorted(layouts)) for body, layouts in sorted(bodies.items())}
            for types, bodies in sorted(generated.items())
        },
    }


def _asked(folder: Path) -> Iterator[Entry]:
    for one in sorted(folder.glob("*.json")):
        yield from json.loads(one.read_text("utf-8"))


def write(folder: Path) -> None:
    """Make the list of what the processes wrote into a folder."""
    held = _listed(_asked(folder))
    LIST.write_text(json.dumps(held, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
