"""The end of a run whose device no longer answers."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Patience"]


class Patience:
    """Ends the process, with a sentence and the place in the code, once a case takes longer than so many seconds.

    Nothing gentler works: a thread that waits for a device in foreign code hears no exception. 0 waits for ever.
    """

    def __init__(self, device: str, seconds: float) -> None:
        self.device = device
        self.seconds = seconds
        self._case: tuple[str, float] | None = None
        self._stderr = os.dup(2)  # what pytest captures would be lost
        if seconds > 0:
            threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def over(self, case: str) -> Iterator[None]:
        """The case of that name runs within the block."""
        if self.seconds <= 0:
            yield
            return
        # Where the device's code holds the interpreter's lock, no thread of Python's runs: this one is of C.
        faulthandler.dump_traceback_later(2 * self.seconds + 1, exit=True, file=self._stderr)
        self._case = case, time.monotonic() + self.seconds
        try:
            yield
        finally:
            self._case = None
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            running = self._case
            if running is not None and time.monotonic() > running[1]:
                said = (
                    f"\ncheck: expected every case on '{self.device}' to end within {self.seconds:g} seconds, got no end of "
                    f"{running[0]}; mend what waits above, or allow more with --case-limit\n"
                )
                faulthandler.dump_traceback(self._stderr)
                os.write(self._stderr, said.encode())
                os._exit(1)
