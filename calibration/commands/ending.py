"""Exit codes of the commands, and the one line on stderr for an error."""

import os
import sys
from collections.abc import Callable

from calibration.reference.binaries import ReferenceRunError

BAD_INPUT_EXIT = 2
"""Bad input, or a reference simulator that gave no result."""

INTERRUPTED_EXIT = 130
"""Ended by Ctrl-C: 128 and the number of SIGINT, as shells have it."""

READER_GONE_EXIT = 141
"""Exit code where the reader closes the pipe early: 128 and the number of SIGPIPE."""

EXIT_CODES = (
    "exit codes: 0 done; 1 a bound is exceeded (check); 2 bad input, or a reference simulator "
    "without a result; 130 interrupted; 141 the reader of the output went away"
)

_SHOWN_LINES = 30


class UsageError(ValueError):
    """The command line is wrong; its message is for the user."""


def exit_code_of(body: Callable[[], int]) -> int:
    """Run the body of a command and return its exit code.

    ValueError, which carries our messages about bad input, and OSError become one line on stderr;
    so does the reason why a reference simulator gave no result, with its last output below.
    Anything else is a bug of ours and keeps its traceback.
    """
    try:
        code = _code_of(body)
    except SystemExit as stop:  # the end of --help, or of a console of rich whose reader went away
        if isinstance(stop.__context__, BrokenPipeError) or not _is_flushed():
            return READER_GONE_EXIT
        raise
    return code if _is_flushed() else READER_GONE_EXIT


def _code_of(body: Callable[[], int]) -> int:
    try:
        return body()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED_EXIT
    except BrokenPipeError:
        return READER_GONE_EXIT
    except ReferenceRunError as error:
        message = _first_lines(str(error))
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        message = f"{error.filename}: {error.strerror}" if named else str(error)
    except ValueError as error:
        message = " ".join(str(error).split())
    sys.stderr.write(f"error: {message}\n")
    return BAD_INPUT_EXIT


def _is_flushed() -> bool:
    """Flush stdout; return whether it still has a reader."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # for what is left, which is flushed again at exit
        os.close(nowhere)
        return False
    return True


def _first_lines(message: str) -> str:
    lines = message.splitlines()
    left = len(lines) - _SHOWN_LINES
    return "\n".join([*lines[:_SHOWN_LINES], *([f"({left} more lines)"] if left > 0 else [])])
