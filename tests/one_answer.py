"""An answer of the decision command by itself, without what would change it."""

import io
import sys
from contextlib import redirect_stdout

import pytest

from agents.decide import main


def write_answer(path, *flags):
    """Write the plan of the first line of a stream, whose other cases are not searched."""
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(io.StringIO()) as shown:
        patched.setattr(sys, "stdin", io.StringIO("{}\n"))
        assert main([*flags, "--stream"]) == 0
    path.write_text(shown.getvalue(), "utf-8")
