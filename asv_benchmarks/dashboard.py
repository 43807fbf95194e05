"""Measures the last commits with asv and draws them: ``python -m asv_benchmarks.dashboard [--commits 3] [--whole]``.

asv makes one environment under ``.asv``, which git ignores, and builds each commit into it; what is measured already is
kept. ``.asv/html/graphs.html`` has every graph and opens as a file; asv's own pages beside it want a server and the net.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import graphs

__all__ = ["HTML", "QUICK", "asv", "main", "publish"]

FOLDER = Path(__file__).parent
HTML = FOLDER.parent / ".asv" / "html"

# What a look at a few commits needs; `--whole` runs every suite, which takes hours rather than minutes.
QUICK = ("overhead", "autograd", r"ops\.Ops.*small", "import_time", "counts")


def main(arguments: list[str] | None = None) -> int:
    """Run, publish, and say where the pages are. Answers with asv's status where it could not measure."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(_commits(options.commits, options.of)))
        file.flush()
        command = ["run", f"HASHFILE:{file.name}", *["--skip-existing-successful"] * (not options.again)]
        if not options.whole:
            chosen = options.bench or QUICK
            command += ["--quick", *[part for one in chosen for part in ("--bench", one)]]
        elif options.bench:
            command += [part for one in options.bench for part in ("--bench", one)]
        asv("machine", "--yes")
        status = asv(*command)
    # 2: some rows are n/a or failed on some commit, such as an op that an older one does not have.
    if status not in (0, 2):
        print(f"dashboard: expected asv to measure, got status {status}; see above")
        return status
    page = publish(FOLDER / "asv.conf.json", HTML)
    print(
        f"dashboard: {page}, after {(time.monotonic() - began) / 60:.1f} minutes; `asv preview` in {FOLDER} serves asv's own pages"
    )
    return 0


def publish(config: Path, html: Path) -> Path:
    """Draw the results that a configuration names as asv's pages in its folder ``html``, and as one page of graphs: that one."""
    shutil.rmtree(html, ignore_errors=True)
    status = asv("publish", config=config)
    if status:
        raise RuntimeError(f"dashboard: expected asv to publish, got status {status}; see above")
    graphs.write(config, html / "graphs.html")
    return html / "graphs.html"


def asv(*arguments: str, config: Path = FOLDER / "asv.conf.json") -> int:
    """The status of an asv command under a configuration, with this interpreter's asv."""
    command = [sys.executable, "-m", "asv", *arguments[:1], "--config", str(config), *arguments[1:]]
    if arguments[0] == "machine":
        command = [sys.executable, "-m", "asv", *arguments]
    return subprocess.run(command, cwd=config.parent, check=False).returncode


def _commits(count: int, last: str) -> list[str]:
    command = ["git", "rev-list", "--first-parent", f"--max-count={count}", last]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER).stdout.split()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m asv_benchmarks.dashboard", description="asv over the last commits."
    )
    parser.add_argument("--commits", type=int, default=3, help="how many")
    parser.add_argument("--of", default="HEAD", help="the last of them: a branch or a commit")
    parser.add_argument("--bench", action="append", help="a pattern of benchmarks; may stand more than once")
    parser.add_argument("--again", action="store_true", help="also what has results; asv skips suites measured in part")
    parser.add_argument("--whole", action="store_true", help="every suite, with repeats")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
