"""The commands: flags in, ASTRA-sim's lines and exit codes out, and what went wrong on stderr."""

import gc
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from astra_sim.base.lazy import lazy
from astra_sim.commands.flags import Flags, parse_flags, usage
from astra_sim.core.result import RunResult
from astra_sim.files.comm_groups import read_comm_groups
from astra_sim.files.errors import CRITICAL_EXIT, AstraSimError, AstraSimUsageError
from astra_sim.files.memory_config import read_memory_config
from astra_sim.files.network_config import read_network_config
from astra_sim.files.system_config import read_system_config
from astra_sim.network import Backend
from astra_sim.run.simulate import RunOptions, simulate

if TYPE_CHECKING:
    from astra_sim.run import perfetto
else:
    perfetto = lazy("astra_sim.run.perfetto")

INCOMPLETE_EXIT = 1
"""Exit code of an incomplete run with ``--strict``."""

INTERRUPTED_EXIT = 130
"""Exit code of a command ended by Ctrl-C: 128 and the number of SIGINT, as shells have it."""

READER_GONE_EXIT = 141
"""Exit code of a command whose reader closes the pipe early: 128 and the number of SIGPIPE."""

ERROR_LEVELS = ("error", "critical")


class Journal:
    """Streams of the command: stdout and ``log.log``; errors go to stderr and ``err.log``."""

    __slots__ = ("_day", "_second", "command", "err", "log")

    def __init__(self, command: str) -> None:
        self.command = command
        self._second = -1
        self._day = ""
        """Date and time of day of that second: many lines are printed in one."""
        self.log: list[IO[str]] = []
        """The open ``log.log``, once there is a folder for it."""
        self.err: list[IO[str]] = []

    def open(self, folder: Path, files: ExitStack) -> None:
        """Make the folder, one level deep, and the files, which ``files`` closes.

        Raises
        ------
        OSError
            If the folder cannot be made or written.
        """
        folder.mkdir(exist_ok=True)
        for name, streams in (("log.log", self.log), ("err.log", self.err)):
            streams.append(files.enter_context((folder / name).open("w", encoding="utf-8")))

    def line(self, logger: str, level: str, message: str) -> None:
        """Print a line as ASTRA-sim does, with the time of day."""
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        if seconds != self._second:
            self._second = seconds
            self._day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
        now = f"{self._day}.{nanoseconds // 10**6:03d}"
        text = f"[{now}] [{logger}] [{level}] {message}\n"
        sys.stdout.write(text)
        for stream in self.log + self.err if level in ERROR_LEVELS else self.log:
            stream.write(text)

    def complain(self, message: str) -> None:
        """Say what is wrong, in one line, after what has been printed."""
        text = f"{self.command}: {' '.join(message.split())}\n"
        sys.stdout.flush()
        sys.stderr.write(text)
        for stream in self.err:
            stream.write(text)

    def warn(self, message: str) -> None:
        """Say what is odd about a file."""
        self.complain(f"warning: {message}")


def run_command(backend: Backend, argv: Sequence[str] | None) -> int:
    """Run one of the commands and return its exit code.

    Only errors about inputs and files are caught; anything else is a bug of ours and keeps its
    traceback.
    """
    command = f"astra-sim-{backend}"
    try:
        code = _guard(backend, Journal(command), sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # for what is left, which is flushed at the end
        os.close(nowhere)
        return READER_GONE_EXIT
    return code


def leave(code: int) -> NoReturn:
    """End the process without a garbage collection of the objects that exist now."""
    gc.freeze()
    sys.exit(code)


def _guard(backend: Backend, journal: Journal, words: Sequence[str]) -> int:
    try:
        flags = parse_flags(words)
    except AstraSimUsageError as error:
        journal.complain(f"error: {error}")
        sys.stderr.write(usage(journal.command))
        return error.exit_code
    with ExitStack() as files:
        try:
            journal.open(Path(flags.logging_folder), files)
            return _simulate(backend, journal, flags)
        except AstraSimError as error:
            journal.complain(f"error: {error}")
            return error.exit_code
        except BrokenPipeError:
            raise
        except OSError as error:
            named = error.filename is not None and error.strerror is not None
            reason = f"{error.filename}: {error.strerror}" if named else str(error)
            journal.complain(f"error: {reason}")
            return CRITICAL_EXIT
        except KeyboardInterrupt:
            journal.complain("interrupted")
            return INTERRUPTED_EXIT


def _simulate(backend: Backend, journal: Journal, flags: Flags) -> int:
    result, replays = _run(backend, journal, flags)
    if flags.trace is not None:
        perfetto.write_perfetto_trace(flags.trace, result.spans, replays=replays)
    for cause in result.diagnosis:
        journal.complain(cause)
    return INCOMPLETE_EXIT if flags.strict and not result.is_complete else 0


def _run(backend: Backend, journal: Journal, flags: Flags) -> tuple[RunResult, bool]:
    """Read all files, then simulate; also tell whether it was a replay."""
    network = read_network_config(flags.network_configuration)
    system = read_system_config(flags.system_configuration, journal.warn)
    memory = read_memory_config(flags.remote_memory_configuration, journal.warn)
    path = flags.comm_group_configuration
    groups = {} if path is None else read_comm_groups(path)
    result = simulate(
        flags.workload_configuration,
        system,
        network,
        memory=memory,
        groups=groups,
        backend=backend,
        options=RunOptions(
            num_queues_per_dimension=flags.num_queues_per_dim,
            injection_scale=flags.injection_scale,
            rendezvous=flags.rendezvous_protocol,
            multi_dimensional=flags.multi_dimensional,
        ),
        strict=False,
        log=journal.line,
    )
    return result, system.replay_only
