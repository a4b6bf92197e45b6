"""Notice an input that takes too long or fails with an undocumented error.

An input may take a second of this thread's own time: other processes on the machine do not count. One that never
comes back is written down by a second thread, which then ends the process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONGEST = 1.0  # seconds of this thread's time
NEVER = 30.0  # seconds on the wall
ENDED = 86  # exit code of a process that hung


class Watch:
    """Counts inputs and writes what is wrong with them to ``told``, a JSON line each."""

    def __init__(self, name: str, told: Path, allowed: tuple[type[BaseException], ...]) -> None:
        self.name, self.told, self.allowed = name, told, allowed
        self.inputs = self.refused = 0
        self._began = 0.0
        self._input: Any = None
        threading.Thread(target=self._look, daemon=True).start()

    @contextlib.contextmanager
    def input(self, given: Any) -> Iterator[None]:
        self._input = given
        self._began = time.monotonic()
        started = time.thread_time()
        try:
            yield
        except self.allowed:
            self.refused += 1
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.fault("crashed", f"{type(error).__name__}: {error} at {Path(where.filename).name}:{where.lineno}")
        finally:
            self._began = 0.0
            self.inputs += 1
        took = time.thread_time() - started
        if took > LONGEST:
            self.fault("hung", f"{took:.1f} s")

    def fault(self, kind: str, said: str) -> None:
        line = json.dumps({"kind": kind, "said": f"{self.name}: {said}", "input": repr(self._input)[:4000]})
        with self.told.open("a") as file:
            file.write(line + "\n")

    def summary(self) -> None:
        self.told.with_suffix(".count").write_text(json.dumps({"inputs": self.inputs, "refused": self.refused}))

    def _look(self) -> None:
        while True:
            time.sleep(0.5)
            began = self._began
            if began and time.monotonic() - began > NEVER:
                self.fault("hung", f"no end after {NEVER:g} s")
                self.summary()
                faulthandler.dump_traceback(sys.stderr)
                os._exit(ENDED)
