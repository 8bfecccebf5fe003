"""The child process with ns-3, from the side of the one that asks it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import Pipe
from pathlib import Path
from tempfile import TemporaryFile

from calibration.packet.requests import Request
from calibration.reference.binaries import ReferenceRunError
from des.base.extras import needed_extra

KNOWN_VERSION = "3.44"
"""Version of ns-3 whose results are recorded; others may give other times."""

START_LIMIT_S = 300.0
"""Limit for loading ns-3; the first start after installing compiles its headers. [s]"""

_SHOWN_CHARACTERS = 2000


def ns3_version() -> str:
    """Version of ns-3 that is installed, such as ``3.44``.

    Raises
    ------
    ReferenceRunError
        If ns-3 or cppyy is not installed.
    """
    try:
        version("cppyy")
        return ".".join(version("ns3").split(".")[:2])
    except PackageNotFoundError as error:
        raise ReferenceRunError(
            f"network of packets: {needed_extra('ns3')}, which takes a C++ compiler "
            f"({error.name} is missing)"
        ) from error


class PacketProcess:
    """One child that simulates networks of packets, one after the other.

    Parameters
    ----------
    limit_s
        Most time that one answer may take; a child that takes longer is ended. [s]
    """

    def __init__(self, *, limit_s: float = 600.0) -> None:
        self.limit_s = limit_s
        self._waiting: list[tuple[str, Request]] = []
        found = ns3_version()
        self._connection, theirs = Pipe()
        self._errors = TemporaryFile()  # noqa: SIM115 - open as long as the child
        self._child = subprocess.Popen(
            [sys.executable, "-m", "calibration.packet.child", str(theirs.fileno()), found],
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # Ctrl-C is for the parent, which ends the child
        )
        theirs.close()
        self._answer(START_LIMIT_S, "start")

    def tell(self, name: str, request: Request) -> None:
        """Keep a request that has no answer; it goes along with the next one that has."""
        self._waiting.append((name, request))

    def ask(self, name: str, request: Request) -> tuple[int, ...]:
        """Send all requests that wait and this one, and return its answer.

        Raises
        ------
        ReferenceRunError
            If the child died, or took longer than its limit.
        """
        requests, self._waiting = [*self._waiting, (name, request)], []
        with suppress(BrokenPipeError):  # it has died, and `_answer` says how
            self._connection.send(requests)
        return self._answer(self.limit_s, name)

    def close(self) -> None:
        """End the child at once."""
        self._connection.close()
        if self._child.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._errors.close()

    @property
    def is_alive(self) -> bool:
        """Whether the child answers requests."""
        return not self._connection.closed and self._child.poll() is None

    @property
    def cpu_s(self) -> float:
        """CPU time that the child has used; 0 where the system does not tell, or it has ended."""
        try:
            fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _answer(self, limit_s: float, what: str) -> tuple[int, ...]:
        try:
            if not self._connection.poll(limit_s):
                self.close()
                raise ReferenceRunError(
                    f"ns-3: {what} took longer than its limit of {limit_s:g} s; the child was ended"
                )
            answer: tuple[int, ...] = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            self._child.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip()[-_SHOWN_CHARACTERS:]
            code = self._child.returncode
            self.close()
            raise ReferenceRunError(
                f"ns-3: the child ended with {code} during {what}: {said or 'it said nothing'}"
            ) from error
        except BaseException:  # Ctrl-C: no child is left behind
            self.close()
            raise
        return answer
