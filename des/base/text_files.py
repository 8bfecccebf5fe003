"""Text files that users write, read with errors that name the file and the line."""

import re
from pathlib import Path
from typing import Any

import yaml

from des.base.bounded_files import read_at_most
from des.base.checks import prefixed_errors
from des.base.strict_json import parse_json, require_digits
from des.base.strict_yaml import SAFE_LOADER, require_bounded_yaml

MOST_BYTES = 64 * 2**20
"""Largest file of text that is read; also where a name is that of an endless device."""


def read_text(path: Path, kind: str = "") -> str:
    """Read a UTF-8 file, of some ``kind`` in messages.

    Raises
    ------
    ValueError
        If it cannot be read, is not UTF-8 or is too large, naming the file.
    """
    try:
        return _with_plain_lines(read_at_most(path, MOST_BYTES).decode())
    except OSError as error:
        raise ValueError(f"{path}: {kind}cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {kind}cannot be read: not UTF-8 text") from error


def read_json(path: Path) -> object:
    """Read a JSON file.

    Raises
    ------
    ValueError
        If it cannot be read or is not JSON, naming the file and the line.
    """
    text = read_text(path)
    with prefixed_errors(f"{path}: "):
        return parse_json(text)


def read_yaml(path: Path) -> object:
    """Read a YAML file, in which 3e-4 is a number and a repeated key is an error.

    Raises
    ------
    ValueError
        If it cannot be read or is not YAML, naming the file and the line.
    """
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str, path: Path) -> object:
    """Parse the text of a YAML file, as `read_yaml`."""
    try:
        require_bounded_yaml(text)
        root = yaml.compose(text, Loader=_YamlLoader)
        loaded = yaml.load(text, Loader=_YamlLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: not YAML: {error}") from error
    except (RecursionError, TypeError) as error:  # TypeError: a key that is a list or a mapping
        raise ValueError(f"{path}: not YAML: nested too deeply, or no plain key") from error
    seen: set[object] = set()
    for key, _ in root.value if isinstance(root, yaml.MappingNode) else []:
        name = key.value if isinstance(key, yaml.ScalarNode) else id(key)
        if name in seen:  # PyYAML lets the last one win silently
            line = key.start_mark.line + 1
            raise ValueError(f"{path}, line {line}: {name} is given twice")
        seen.add(name)
    return loaded


def _with_plain_lines(text: str) -> str:
    """Return a text with the line ends that Python has, as files opened as text have."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class _YamlLoader(SAFE_LOADER):  # type: ignore[misc]
    """PyYAML takes 3e-4 for text, as YAML 1.1 had it."""


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _whole_number(loader: Any, node: yaml.ScalarNode) -> int:
    require_digits(node.value)
    number: int = loader.construct_yaml_int(node)
    return number


_YamlLoader.add_constructor("tag:yaml.org,2002:int", _whole_number)
