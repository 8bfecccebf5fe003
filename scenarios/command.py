"""How every command ends: with an exit code, and one line where its input is bad."""

import sys
from collections.abc import Callable


class UsageError(ValueError):
    """The command line or the scenario file is wrong; its message is for the user."""


def exit_code_of(body: Callable[[], int | None]) -> int:
    """Run the body of a command; bad input becomes one line on stderr and exit code 2.

    Only ValueError, which carries our messages about bad input, and OSError are input errors.
    Anything else is a bug of ours and keeps its traceback.
    """
    try:
        return body() or 0
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        message = f"{error.filename}: {error.strerror}" if named else str(error)
    except ValueError as error:
        message = str(error)
    one_line = " ".join(message.split()) or "bad input"
    sys.stderr.write(f"error: {one_line}\n")
    return 2
