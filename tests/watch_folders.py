"""Folders of a watch for tests: a world, lines of observations, and what the watch made of them."""

import json
from pathlib import Path

from watched_job import START_S, WORLD

from des.world.files.topology_writer import to_yaml


def begin(folder: Path) -> None:
    """Write a world and an empty folder for measurements."""
    (folder / "in").mkdir()
    (folder / "world.yaml").write_text(to_yaml(WORLD), encoding="utf-8")


def flags_of(folder: Path) -> list[str]:
    """Flags of the command without its state."""
    return [
        *("--network", str(folder / "world.yaml"), "--model", "llama2_7b", "--microbatches", "8"),
        *("--from", str(folder / "in"), "--restart", "60s"),
    ]


def add_lines(folder: Path, *events: dict[str, object], name: str = "seen.jsonl") -> None:
    """Append events, each at its minute, to a file of lines."""
    with (folder / "in" / name).open("a", encoding="utf-8") as file:
        for event in events:
            minute = event["minute"]
            assert isinstance(minute, int | float)
            rest = {key: one for key, one in event.items() if key != "minute"}
            file.write(json.dumps({"time": START_S + 60.0 * minute, **rest}) + "\n")


def state_of(folder: Path) -> dict[str, object]:
    """Content of the state."""
    content: dict[str, object] = json.loads((folder / "state.json").read_text("utf-8"))
    return content
