"""Text files that users write, read with errors that name the file and the line."""

import itertools
import re
from pathlib import Path

import yaml

from des.base.strict_json import parse_json


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Raises
    ------
    ValueError
        If it cannot be read or is not UTF-8, naming the file.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read: not UTF-8 text") from error


def read_json(path: Path) -> object:
    """Read a JSON file.

    Raises
    ------
    ValueError
        If it cannot be read or is not JSON, naming the file and the line.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_yaml(path: Path) -> object:
    """Read a YAML file, in which 3e-4 is a number and a repeated key is an error.

    Raises
    ------
    ValueError
        If it cannot be read or is not YAML, naming the file and the line.
    """
    text = read_text(path)
    try:
        root = yaml.compose(text, Loader=_YamlLoader)
        loaded = yaml.load(text, Loader=_YamlLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: not YAML: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: not YAML: nested too deeply") from error
    keys = [key for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
    for earlier, later in itertools.combinations(keys, 2):
        if earlier.value == later.value:  # PyYAML lets the last one win silently
            line = later.start_mark.line + 1
            raise ValueError(f"{path}, line {line}: {later.value} is given twice")
    return loaded


class _YamlLoader(yaml.SafeLoader):
    """PyYAML takes 3e-4 for text, as YAML 1.1 had it."""


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
