"""Exit codes of commands, and the one line on stderr for bad input."""

import errno
import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from des.base.document import DOCUMENT
from des.base.extras import EXTRA_OF, needed_extra
from des.base.interruption import INTERRUPTED, interruptible, is_interrupted
from des.base.names import one_line
from des.base.spelling import SPELLING

BAD_INPUT = 2
"""Exit code of bad input, and of another program that gave no result."""

READER_GONE = 141
"""Exit code of a command whose reader closes the pipe early: 128 and the number of SIGPIPE."""

EXIT_CODES = f"{INTERRUPTED} interrupted; {READER_GONE} the reader of the output went away"
"""The last words of every list of exit codes."""


_SHOWN_LINES = 30

_OBJECTS_BETWEEN_COLLECTIONS = 50_000, 20, 20
"""Thresholds of the garbage collector: at Python's own, of 700 objects, loading modules and a first
decision take a tenth more CPU time, for next to no garbage."""


class UsageError(ValueError):
    """The command line or the scenario file is wrong; its message is for the user."""


def exit_code_of(
    body: Callable[[], int | None], *, with_output: type[Exception] | tuple[()] = ()
) -> int:
    """Run the body of a command; bad input becomes one line on stderr and exit code 2.

    An error of type ``with_output`` ends alike, with the output of another program below its line.

    Only ValueError, which carries our messages about bad input, OSError and modules of extras that
    are not installed are input errors.
    Anything else is a bug of ours and keeps its traceback. Ctrl-C, SIGTERM and SIGHUP become one
    line as well, see `des.base.interruption`; an output whose reader goes away, such as
    ``| head -1``, becomes an exit code alone. A stdout that is closed from the start is bad input,
    before anything is done; a stderr that is takes nothing.
    """
    if not _has_outputs():
        return BAD_INPUT
    gc.set_threshold(*_OBJECTS_BETWEEN_COLLECTIONS)
    with interruptible():
        return _flushed_code_of(body, with_output)


def _has_outputs() -> bool:
    """Tell whether there is a stdout, and say so if not; let lost outputs go nowhere.

    Where one is closed the next file that is opened would take its number, and what a library
    prints would be written into that file.
    """
    has_stdout = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # opened in turn, so each gets the number that is free
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(nowhere, mode, closefd=False))  # noqa: SIM115 for good
    if not has_stdout:
        sys.stderr.write("error: stdout must be open, got a closed one; > /dev/null drops output\n")
        sys.stderr.flush()
    return has_stdout


def _flushed_code_of(
    body: Callable[[], int | None], with_output: type[Exception] | tuple[()]
) -> int:
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
        return _interrupted()
    except OSError as error:
        if _is_gone(error) and not _is_read(sys.stdout):
            return READER_GONE
        named = error.filename is not None and error.strerror is not None
        message = f"{error.filename}: {error.strerror}" if named else str(error)
    except with_output as error:
        sys.stderr.write(f"error: {_first_lines(str(error))}\n")
        return BAD_INPUT
    except ValueError as error:
        message = str(error)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRA_OF:
            raise
        message = f"{module} is not installed: {needed_extra(EXTRA_OF[module])}"
    except Exception:  # any type: libraries raise errors of their own after they swallow a signal
        if is_interrupted():
            return _interrupted()
        raise
    sys.stderr.write(f"error: {SPELLING.of(one_line(message)) or 'bad input'}\n")
    return BAD_INPUT


def _interrupted() -> int:
    with suppress(OSError):  # the terminal may be closed
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
    return INTERRUPTED


def _code_with_document(body: Callable[[], int | None]) -> int:
    """Run the body; print its document, if one is wanted and the body has ended by itself."""
    code, is_whole = INTERRUPTED, False
    try:
        code = body() or 0
        is_whole = code != INTERRUPTED
    finally:
        DOCUMENT.end(is_whole=is_whole)
    return code


def _first_lines(message: str) -> str:
    lines = [one_line(line) for line in message.splitlines()]
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
    except OSError as error:
        if _is_gone(error):
            return False
        raise
    return _is_flushed(stream)


def _is_flushed(stream: IO[str]) -> bool:
    try:
        stream.flush()
    except OSError as error:
        if not _is_gone(error):
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # for what is left, which is flushed again at the end
        os.close(nowhere)
        return False
    return True


def _is_gone(error: OSError) -> bool:
    """Return whether an output has lost its reader: a pipe, or a terminal that was closed."""
    return error.errno in (errno.EPIPE, errno.EIO)
