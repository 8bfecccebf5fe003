"""Command lines made of good ones by chance, each run in a copy of this process with limits."""

import io
import os
import random
import re
import resource
import signal
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path

from forked import forked

from scenarios.entry.command import main

CODES = {0, 1, 2, 3, 130, 141}
"""Exit codes that the help of commands names."""

CPU_LIMIT_S, WALL_LIMIT_S, MEMORY_LIMIT_BYTES = 3, 6, 8 << 30
"""Limits of a line; one that reaches the first two is at work, which is no fault."""

_VALUES = (
    *("", " ", "-1", "0", "1e999", "nan", "inf", "-inf", "9" * 400, "99999999999999999999", "1_0"),
    *("0x10", "1e-320", "5e-324Gbps", "-3ms", "10", "1.5", "true", "null", "None", "[]", "{}"),
    *("a" * 5000, "\udcff", "\u202e", "\x1b[31m", "a\nb", "a,b,,", ",", "=", "0*", "0*1*2", "x=y"),
    *("/dev/full", "/nowhere/at/all", ".", "..", "/", "/proc/self/mem"),
    *("-", "--", "*", "%s", "$(x)"),
)
_FLAGS = ("--no-such-flag", "--seed", "--workers", "--out", "--config", "--json", "--quiet", "-x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command line ended.

    Attributes
    ----------
    code
        Exit code; None of one that a signal has ended.
    signal
        That signal, otherwise 0: an alarm, or a kill, where it was still at work at a limit.
    errors
        What it wrote on stderr.
    """

    code: int | None
    signal: int
    errors: str

    def fault(self, left: Sequence[str]) -> str:
        """What is wrong with it, where it left these files; empty if nothing is."""
        if self.signal not in (0, signal.SIGALRM, signal.SIGKILL, signal.SIGXCPU):
            return f"signal {self.signal}"
        if "Traceback" in self.errors:
            return self.errors[-600:]
        if self.code is not None and self.code not in CODES:
            return f"exit code {self.code}"
        lines = [line for line in self.errors.splitlines() if line.startswith("error: ")]
        if self.code == 2 and len(lines) != 1 and not self.errors.startswith("usage"):
            return f"{len(lines)} lines of error: {self.errors[:600]!r}"
        if any(len(line) > 2100 or not line.isprintable() for line in lines):
            return f"a line of error that is no line: {self.errors[:600]!r}"
        halves = [name for name in left if re.search(r"\.tmp\b|~$", name)]
        return f"left {halves}" if halves and self.code is not None else ""


def changed_words(words: Sequence[str], rng: random.Random) -> list[str]:
    """Words of a command with other values, or some too many or too few; its name stays."""
    found = list(words)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        values = [at for at in range(1, len(found)) if not found[at].startswith("--")]
        change = rng.random()
        if values and change < 0.6:
            found[rng.choice(values)] = rng.choice(_VALUES)
        elif len(found) > 1 and change < 0.8:
            place = rng.randrange(1, len(found))
            found[place : place + 1] = [found[place]] * rng.choice((0, 2))
        else:
            place = rng.randint(1, len(found))
            found[place:place] = [rng.choice(_FLAGS), *rng.sample(_VALUES, rng.randint(0, 1))]
    return found


def load_commands(names: Iterable[str]) -> None:
    """Import what commands do, so that copies of this process need not."""
    for name in names:
        with suppress(SystemExit), redirect_stderr(io.StringIO()):
            main([name, "--no-such-flag"])


def ending_of(words: Sequence[str], folder: Path) -> Ending:
    """Run ``eastwest`` with these words in a copy of this process, in a new folder."""
    folder.mkdir()
    errors = folder.with_suffix(".err")
    number = forked(lambda: _limited(words), folder, errors)
    status = os.waitpid(number, 0)[1]
    with suppress(ProcessLookupError):  # nothing that it has started is left
        os.killpg(number, signal.SIGKILL)
    return Ending(
        code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        errors=errors.read_text("utf-8", "backslashreplace"),
    )


def _limited(words: Sequence[str]) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    signal.alarm(WALL_LIMIT_S)
    return main(list(words))
