"""Exit codes of commands, and the one line on stderr for bad input."""

import os
import sys
from collections.abc import Callable
from typing import IO

from des.base.document import DOCUMENT
from des.base.spelling import SPELLING

BAD_INPUT = 2
"""Exit code of bad input, and of another program that gave no result."""

INTERRUPTED = 130
"""Exit code of a command ended by Ctrl-C: 128 and the number of SIGINT, as shells have it."""

READER_GONE = 141
"""Exit code of a command whose reader closes the pipe early: 128 and the number of SIGPIPE."""

EXIT_CODES = f"{INTERRUPTED} interrupted; {READER_GONE} the reader of the output went away"
"""The last words of every list of exit codes."""


_SHOWN_LINES = 30


class UsageError(ValueError):
    """The command line or the scenario file is wrong; its message is for the user."""


def exit_code_of(
    body: Callable[[], int | None], *, with_output: type[Exception] | tuple[()] = ()
) -> int:
    """Run the body of a command; bad input becomes one line on stderr and exit code 2.

    An error of type ``with_output`` ends alike, with the output of another program below its line.

    Only ValueError, which carries our messages about bad input, and OSError are input errors.
    Anything else is a bug of ours and keeps its traceback. Ctrl-C becomes one line as well; an
    output whose reader goes away, such as ``| head -1``, becomes an exit code alone.
    """
    try:
        code = _code_of(body, with_output)
    except BrokenPipeError:  # stderr went away
        code = READER_GONE
    except SystemExit as stop:  # the end of --help, or of a console of rich whose reader went away
        if not _flushed() or isinstance(stop.__context__, BrokenPipeError):
            return READER_GONE
        raise
    return code if _flushed() else READER_GONE


def _code_of(body: Callable[[], int | None], with_output: type[Exception] | tuple[()]) -> int:
    try:
        return _code_with_document(body)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except OSError as error:
        if isinstance(error, BrokenPipeError) and not _is_read(sys.stdout):
            return READER_GONE
        named = error.filename is not None and error.strerror is not None
        message = f"{error.filename}: {error.strerror}" if named else str(error)
    except with_output as error:
        sys.stderr.write(f"error: {_first_lines(str(error))}\n")
        return BAD_INPUT
    except ValueError as error:
        message = str(error)
    one_line = SPELLING.of(" ".join(message.split())) or "bad input"
    sys.stderr.write(f"error: {one_line}\n")
    return BAD_INPUT


def _code_with_document(body: Callable[[], int | None]) -> int:
    """Run the body; print its document, if one is wanted and the body has come to its end."""
    code, is_whole = INTERRUPTED, False
    try:
        code = body() or 0
        is_whole = code != INTERRUPTED
    finally:
        DOCUMENT.end(is_whole=is_whole)
    return code


def _first_lines(message: str) -> str:
    lines = message.splitlines()
    left = len(lines) - _SHOWN_LINES
    return "\n".join([*lines[:_SHOWN_LINES], *([f"({left} more lines)"] if left > 0 else [])])


def _flushed() -> bool:
    """Write out what is left of stdout and stderr; tell whether both are still read."""
    read = [_is_flushed(stream) for stream in (sys.stdout, sys.stderr)]  # each of them, always
    return all(read)


def _is_read(stream: IO[str]) -> bool:
    """Return whether the stream has a reader, by an empty line: a failed text may be lost."""
    try:
        stream.write("\n")
    except BrokenPipeError:
        return False
    return _is_flushed(stream)


def _is_flushed(stream: IO[str]) -> bool:
    try:
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # for what is left, which is flushed again at the end
        os.close(nowhere)
        return False
    return True
