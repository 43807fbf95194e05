"""The conformance suite as a pytest plugin: which cases there are, what excuses them, and what comes of them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.base import Backend
from tensorcore.backend.fallback import Ledger, fallback
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import TensorcoreError
from tensorcore.ops import late
from tensorcore.testing.certificate import Case, Certificate
from tensorcore.testing.declaration import Declaration, find_declaration, read_declaration
from tensorcore.testing.patience import Patience
from tensorcore.testing.watch import WatchedTable

__all__ = ["LEVELS", "Refused", "Session"]

LEVELS = ("bronze", "silver", "gold")
# What a device answers with to what it does not support: these, and never a wrong number.
Refused = (TensorcoreError, NotImplementedError, BufferError)


class Session:
    """One run of the suite: the device, the reference, what the author declared, and what came out."""

    def __init__(self, config: pytest.Config) -> None:
        name = config.getoption("--backend")
        # Whoever sits in a debugger takes their time.
        self.patience = Patience(name, 0 if config.getoption("usepdb") else config.getoption("--case-limit"))
        try:
            with self.patience.over("making the device"):
                self.device: Backend = find_device(name)
            reference = config.getoption("--reference") or "cpu"
            self.reference: Backend = find_device(reference)
            if self.reference is self.device:
                self.reference = find_device("pyref")
            path = config.getoption("--declaration") or find_declaration(self.device)
            self.declaration = read_declaration(path) if path else Declaration({}, {})
            self.fallback_device = config.getoption("--fallback-device") or self.declaration.fallback
        except (TensorcoreError, OSError) as error:
            raise pytest.UsageError(str(error)) from None
        late.import_all()
        stored = self.device.capabilities.dtypes
        self.dtypes = [one.name for one in tc.dtypes.ALL if one.name in stored]
        self.level = config.getoption("--level")
        self.certificate = Certificate(self.device, self.reference)
        self.table = WatchedTable(self.device)
        self.ledger = Ledger()
        self.case_ledger = Ledger()
        self.started = time.perf_counter()

    @property
    def wide(self) -> str:
        """The widest floating dtype that the device stores."""
        return next(one for one in ("float64", "float32", "bfloat16", "float16") if one in self.dtypes)


_session = pytest.StashKey[Session]()
_key = pytest.StashKey[str]()
_kind = pytest.StashKey[tuple[str, str] | None]()


def session_of(config: pytest.Config) -> Session:
    """The run's session, made at the first question."""
    if _session not in config.stash:
        config.stash[_session] = Session(config)
    return config.stash[_session]


def pytest_configure(config: pytest.Config) -> None:
    session_of(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Levels after the last are not even read: making silver's 19,000 cases takes longer than running bronze's."""
    level = _level(f".testing.conformance.{collection_path.stem}")
    beside = collection_path.parent.name == "conformance" and level is not None
    return True if beside and LEVELS.index(level) > LEVELS.index(config.getoption("--level")) else None  # type: ignore[arg-type]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dtype" in metafunc.fixturenames and _level(metafunc.module.__name__):
        wanted = getattr(metafunc.function, "dtypes", None)
        dtypes = [one for one in session_of(metafunc.config).dtypes if wanted is None or one in wanted]
        metafunc.parametrize("dtype", dtypes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    session = session_of(config)
    last = LEVELS.index(session.level)
    kept, left = [], []
    for item in items:
        level = _level(getattr(item, "module", None).__name__ if hasattr(item, "module") else "")
        if level is None:
            continue
        (kept if LEVELS.index(level) <= last else left).append(item)
        what = item.originalname.removeprefix("test_")  # type: ignore[attr-defined]
        item.stash[_key] = "/".join([what if what == "op" else f"{level}/{what}", *_words(item)])
        item.stash[_kind] = session.declaration.excuse(item.stash[_key])
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Backend:
    """The device that is tested."""
    return session_of(request.config).device


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Backend:
    """The device that it must agree with."""
    return session_of(request.config).reference


@pytest.fixture
def wide(request: pytest.FixtureRequest) -> str:
    """The widest floating dtype that the device stores."""
    return session_of(request.config).wide


@pytest.fixture
def kernels(request: pytest.FixtureRequest) -> WatchedTable:
    """The device's kernels, watched since the test's start."""
    return session_of(request.config).table


@pytest.fixture(autouse=True)
def _conforming(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every case starts from the same seed, and its kernels are watched."""
    if _key not in request.node.stash:
        yield
        return
    session = session_of(request.config)
    random.seed(8)
    np.random.seed(8)
    tc.manual_seed(8)
    before = session.device.kernels
    try:
        with session.patience.over(request.node.stash[_key]), fallback(session.fallback_device) as session.case_ledger:
            _drain(session.device)
            session.table.clear()
            session.device.kernels = session.table
            yield
        for key, entry in session.case_ledger:
            for _ in range(entry.calls):
                session.ledger.add(*key, entry.bytes // entry.calls, entry.seconds / entry.calls)
    finally:
        session.device.kernels = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if _key not in item.stash or (report.when != "call" and report.passed):
        return report
    session = session_of(item.config)
    key, excuse = item.stash[_key], item.stash[_kind]
    raised = call.excinfo.value if call.excinfo is not None else None
    result, why = report.outcome, ""
    if excuse is not None and report.when == "call" and result != "skipped":
        result, why = _excused(report, excuse, raised)
    elif result == "failed":
        why = str(raised).strip()
    elif result == "skipped":
        why = str(raised)
    level = _level(item.module.__name__)  # type: ignore[attr-defined]
    assert level is not None
    # Kernels that leave a dtype to others run elsewhere without a question to the table.
    ran = "fallback" if len(session.case_ledger) else session.table.ran
    session.certificate.add(Case(level, key, result, why, ran, report.duration))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = session_of(config)
    certificate = session.certificate
    whole = not config.getoption("keyword") and not config.getoption("markexpr")
    stale = session.declaration.stale() if whole and session.level == "gold" else []
    certificate.finish(session.declaration, stale, session.ledger, time.perf_counter() - session.started, whole)
    write = terminalreporter.write_line
    terminalreporter.section(f"conformance of {session.device}")
    for level in LEVELS:
        write(f"{level:<7} {certificate.summary(level)}")
    for pattern in certificate.stale:
        write(f"stale: no case matches {pattern!r}; strike it from the declaration")
    if len(session.ledger):
        write(f"fallback to {session.fallback_device}: {session.ledger.calls} calls of {len(session.ledger)} kernels, "
              f"{session.ledger.bytes} bytes, {session.ledger.seconds:.2f} s")  # fmt: skip
    for option, text in (("--certificate", certificate.as_json), ("--coverage-page", certificate.as_html)):
        path = config.getoption(option)
        if path:
            Path(path).write_text(text(), "utf-8")
            write(f"wrote {path}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    run = session_of(session.config)
    full = run.level == "gold" and not session.config.getoption("keyword")
    if full and exitstatus == 0 and run.declaration.stale():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _words(item: pytest.Item) -> list[str]:
    """The parameters of a case as its key has them: the op's name first, the dtype last."""
    params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    order = sorted(params, key=lambda key: {"name": -1, "dtype": 1}.get(key, 0))
    return ["x".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in map(params.get, order)]


def _drain(device: Backend) -> None:
    """Let what the case before left in the device's queue fail there, and not here."""
    for _ in range(1000):
        try:
            return device.synchronize()
        except Exception:
            continue


def _excused(report: Any, excuse: tuple[str, str], raised: BaseException | None) -> tuple[str, str]:
    """What becomes of a case that the author declared; changes the report."""
    kind, reason = excuse
    if raised is None:
        report.outcome = "failed"
        why = f"declared {kind} ({reason}), and it passes; strike it from the declaration"
        report.longrepr = why
        return "failed", why
    if kind == "unsupported" and not isinstance(raised, Refused):
        why = f"declared unsupported ({reason}): expected an error that says so, got {raised}; declare it xfail, or refuse"
        report.longrepr = why
        return "failed", why
    report.outcome = "skipped"
    report.wasxfail = f"{kind}: {reason}"
    return kind, reason


def _level(module: str) -> str | None:
    name = module.rpartition(".")[2].removeprefix("test_").partition("_")[0]
    return name if name in LEVELS and ".testing.conformance" in module else None
