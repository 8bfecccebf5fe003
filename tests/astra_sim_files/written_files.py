"""Files of ASTRA-sim's settings with some content, and the errors of those that are wrong."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_sim.files.errors import AstraSimError


def file_of(folder: Path, name: str, content: object) -> Path:
    """A file with a text, or with a value as JSON, which is YAML too."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def assert_ends(
    read: Callable[[Path], object],
    path: Path,
    message: str,
    *,
    error: type[AstraSimError] = AstraSimError,
    exit_code: int = 1,
) -> None:
    """The run ends with this exit code, and the message names the file and what is wrong."""
    with pytest.raises(error, match=f"{re.escape(path.name)}: {message}") as caught:
        read(path)
    assert caught.value.exit_code == exit_code
