"""The command line: ``tensorcore doctor | check | new-backend | bench | launch | sdk-diff``."""

from __future__ import annotations

import sys
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tensorcore._version import __version__
from tensorcore.cli import doctor as doctor_report
from tensorcore.cli import interface, scaffold
from tensorcore.cli.apart import examine_apart
from tensorcore.errors import TensorcoreError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tensorcore",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tensors on any device, with backends as plugins. Each command's --help ends with an example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a plugin's traceback is read best as Python prints it
    rich_markup_mode="rich",
)
_console = Console()
_errors = Console(stderr=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tensorcore {__version__}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


class _Level(Enum):
    bronze = "bronze"
    silver = "silver"
    gold = "gold"


def main() -> None:
    """Run the command line; what tensorcore raises on purpose is one line, and exit status 1."""
    try:
        app()
    except TensorcoreError as error:
        _errors.print(f"[red]{type(error).__name__}[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(1)


@app.command(epilog="Example: [bold]tensorcore doctor --json | jq .devices[/]")
def doctor(
    json: Annotated[bool, typer.Option("--json", help="The same as JSON, for scripts and bug reports.")] = False,
    device: Annotated[str | None, typer.Option(help="Exit with 1 unless this device can be used.")] = None,
    patience: Annotated[
        float, typer.Option(help="Seconds without an answer after which a plugin is taken to hang.", min=0.1)
    ] = 60,
) -> None:
    """Say what there is: plugins, devices, libraries, switches; and what to type where something is wrong.

    Plugins are tried in a process of their own: one that crashes or hangs is named, and the others are reported.

    Exit status: 0 where everything that is installed works, 1 where a plugin is broken or the --device cannot be
    used, 2 where no device can compute at all.
    """
    found = examine_apart(device, patience)
    if json:
        typer.echo(doctor_report.as_json(found))
    else:
        doctor_report.show(found, _console)
    raise typer.Exit(doctor_report.exit_status(found))


@app.command(
    epilog="Example: [bold]tensorcore check mine --level silver --html mine.html[/]",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The device, such as mine or mine:1.")],
    level: Annotated[_Level, typer.Option(help="The one to stop after.")] = _Level.gold,
    fallback: Annotated[str | None, typer.Option(help="Run kernels that are missing on this device.")] = None,
    declaration: Annotated[
        Path | None, typer.Option(help="A conformance.toml; else the one beside the plugin.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the certificate here.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the coverage page here.")] = None,
) -> None:
    """Hold a backend against the conformance suite. Further arguments go to pytest, such as -k sort or -x.

    A case that takes longer than two minutes ends the run; --case-limit SECONDS allows more.

    Exit status: 0 where every case of the level passes or is declared, else pytest's.
    """
    if find_spec("pytest") is None:
        _errors.print("check: expected pytest, got none; type: pip install 'tensorcore[testing]'", markup=False)
        raise typer.Exit(1)
    from tensorcore.testing import check as run_suite

    status = run_suite(name, *context.args, level=level.value, fallback=fallback, declaration=declaration,
                       certificate=json, page=html)  # fmt: skip
    raise typer.Exit(status)


@app.command("new-backend", epilog="Example: [bold]tensorcore new-backend mine && pip install -e ./tensorcore-mine[/]")
def new_backend(
    name: Annotated[str, typer.Argument(help="The device's name: lower-case letters, digits, underscores.")],
    directory: Annotated[Path | None, typer.Option(help="Where to write it; ./tensorcore-NAME if left out.")] = None,
) -> None:
    """Write a distribution with a backend that installs and passes bronze at once."""
    target = directory or Path(f"tensorcore-{name.replace('_', '-')}")
    for path in scaffold.write(name, target):
        typer.echo(f"wrote {path}")
    typer.echo(f"\nNext: pip install -e '{target}[test]' && tensorcore check {name} --level bronze")


@app.command(
    epilog="Example: [bold]tensorcore bench tensorcore:mine --peer numpy --only add[/]",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def bench(
    context: typer.Context,
    ours: Annotated[str, typer.Argument(help="library:device, such as tensorcore:mine.")] = "tensorcore:cpu",
    peer: Annotated[
        str, typer.Option(help="What to compare with: torch, numpy, torch:cuda:0, tensorcore:cpu.")
    ] = "numpy",
) -> None:
    """Time a backend beside a peer, interleaved. Further arguments go to asv_benchmarks.table, such as --rounds 5."""
    if find_spec("asv_benchmarks") is None:
        _errors.print(
            "bench: expected the package asv_benchmarks, got none; it is in tensorcore's repository, so type there: "
            "tensorcore bench",
            markup=False,
        )
        raise typer.Exit(1)
    from asv_benchmarks.table import main as table

    options = list(context.args)
    if ours.startswith("-"):  # an option of the table's own, which came first
        ours, options = "tensorcore:cpu", [ours, *options]
    raise typer.Exit(table(["--ours", ours, "--peer", peer, *options]))


@app.command(
    epilog="Example: [bold]tensorcore launch -n 4 train.py --epochs 3[/]",
    context_settings={
        "allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": [],
    },
)  # fmt: skip
def launch(context: typer.Context) -> None:
    """Run a program on several ranks. Its options are the launcher's own: tensorcore launch --help."""
    from tensorcore.distributed.launch import main as run

    raise typer.Exit(run(context.args, "tensorcore launch"))


@app.command("sdk-diff", epilog="Example: [bold]tensorcore sdk-diff 1.0 1.1[/]")
def sdk_diff(
    old: Annotated[str, typer.Argument(help="An interface version, such as 1.0.")],
    new: Annotated[str | None, typer.Argument(help="Another; the installed one if left out.")] = None,
) -> None:
    """Print what changed in the interface of plugins between two versions, and whether a plugin must change."""
    lines = interface.difference(old, new)
    for line in lines:
        _console.print(line, markup=False, highlight=False, soft_wrap=True)
