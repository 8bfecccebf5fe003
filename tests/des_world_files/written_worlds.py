"""The shipped world in both forms of file, edited and read."""

import json
from pathlib import Path

from des import Topology, read_topology
from des.worlds import EAST_CENTRAL_WEST

YAML = EAST_CENTRAL_WEST.read_text(encoding="utf-8")
JSON = json.loads(EAST_CENTRAL_WEST.with_suffix(".json").read_text(encoding="utf-8"))


def read(folder: Path, content: object, suffix: str) -> Topology:
    """Write a file and read the world in it."""
    path = folder / f"world{suffix}"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return read_topology(path)


def edited_yaml(old: str, new: str) -> str:
    """The shipped YAML with the first ``old`` replaced."""
    assert old in YAML
    return YAML.replace(old, new, 1)


def edited_json(*keys: object, value: object) -> dict:
    """The shipped JSON with one entry, given by its path, replaced."""
    content = json.loads(json.dumps(JSON))
    holder = content
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    return content
