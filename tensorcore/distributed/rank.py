"""One rank of a launched program: ``python -m tensorcore.distributed.rank train.py ...`` runs it and reports how it ended."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any

from tensorcore.distributed.meeting import MPI_VARIABLES

__all__ = ["JOB", "die_with_parent", "main", "run_program"]

JOB = "TENSORCORE_JOB"  # the folder in which ranks leave their process's number and how they failed


def main(argv: list[str]) -> None:
    """Run ``script args`` or ``-m module args`` as the program; never returns where it fails."""
    job = Path(os.environ[JOB]) if JOB in os.environ else None
    for name, sources in (("RANK", "rank"), ("WORLD_SIZE", "size"), ("LOCAL_RANK", "local")):
        found = [os.environ[one] for one in MPI_VARIABLES[sources] if one in os.environ]
        if found:
            os.environ[name] = found[0]
    rank = int(os.environ.get("RANK", "0"))
    for stream in (sys.stdout, sys.stderr):
        # Whole lines, as the launcher prefixes them, under PYTHONUNBUFFERED too.
        stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[attr-defined]
    if job is not None and sys.platform == "linux":
        _watch_over(job, rank)
    try:
        run_program(argv)
    except BaseException as error:
        code, text = _explain(error)
        if code == 0:
            _flush()
            return
        if job is not None:
            _leave(job, "failed", {"rank": rank, "code": code, "text": text})
        else:
            sys.stderr.write(text)
        _give_up(error)
        _abort(code)


def run_program(argv: list[str], name: str = "__main__") -> None:
    """Run a script or ``-m module`` in a namespace of its own; several threads may do so at once."""
    if argv[0] == "-m":
        import importlib.util

        spec = importlib.util.find_spec(argv[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{argv[1]}.__main__")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {argv[1]!r}")
        path, arguments, package = spec.origin, argv[2:], spec.parent
    else:
        path, arguments, package = argv[0], argv[1:], None
        folder = str(Path(path).resolve().parent)
        if sys.path[0] != folder:
            sys.path.insert(0, folder)
    sys.argv = [path, *arguments]
    module = types.ModuleType(name)
    module.__dict__.update({"__file__": path, "__package__": package, "__builtins__": __builtins__})
    if "RANK" in os.environ and os.environ.get(JOB):
        sys.modules["__main__"] = module  # what pickle finds the program's classes by
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    exec(code, module.__dict__)


def _watch_over(job: Path, rank: int) -> None:
    """Go on in a child of this process, which stays to report the signal that ends the child.

    MPI launchers name any of the ranks that they killed themselves. Called before there are threads, and before MPI.
    """
    child = os.fork()
    if child == 0:
        die_with_parent(signal.SIGKILL)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child has it too, and says what there is to say
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _leave(job, "lost", {"rank": rank, "signal": number, "code": 128 + number})
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """Have the kernel send this process a signal where its parent ends. Linux alone can."""
    try:
        import ctypes

        libc: Any = ctypes.CDLL(None)
        libc.prctl(1, int(number))
    except (OSError, AttributeError):
        pass


def _explain(error: BaseException) -> tuple[int, str]:
    """The exit code, and what there is to say."""
    if isinstance(error, SystemExit):
        if error.code is None or error.code == 0:
            return 0, ""
        if isinstance(error.code, int):
            return error.code & 0xFF or 1, f"sys.exit({error.code})\n"
        return 1, f"{error.code}\n"
    place = error.__traceback__
    while place is not None and place.tb_next is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    return 130 if isinstance(error, KeyboardInterrupt) else 1, "".join(
        traceback.format_exception(type(error), error, place)
    )


def _leave(job: Path, kind: str, report: dict[str, Any]) -> None:
    unfinished = job / f"unfinished-{kind}-{report['rank']}"
    try:
        unfinished.write_text(json.dumps({**report, "time": time.time()}))
        unfinished.rename(job / f"{kind}-{report['rank']}")
    except OSError:  # the launcher has gone
        pass


def _give_up(error: BaseException) -> None:
    """Tell the others, who may be waiting."""
    group: Any = sys.modules.get("tensorcore.distributed.group")
    state = None if group is None else group.current()
    if state is not None and state.world is not None:
        state.give_up(f"{type(error).__name__}: {error}")


def _abort(code: int) -> None:
    """End this process and, where MPI is running, all others; nothing that could wait for them runs."""
    _flush()
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.COMM_WORLD.Abort(code)
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
