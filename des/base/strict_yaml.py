"""YAML that is as large as it looks: bounded, without tags, with aliases counted in full."""

from typing import Any

import yaml

MOST_CHARACTERS = 4 * 2**20
MOST_NODES = 200_000
"""Values and keys in a text; those of an alias count as if they were written out."""

MOST_DEPTH = 50
"""Nesting; the parser in C would not survive some thousands."""

LONGEST_PLAIN = 1000
"""Characters of a text without quotes, which may be a number."""

SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BASE_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def require_bounded_yaml(text: str) -> None:
    """Refuse a text before anything is made of it, if that would be too large or no plain values.

    Raises
    ------
    yaml.MarkedYAMLError
        If it is no YAML, nests too deep, has too many values, tags, or aliases of what holds them.
    """
    if len(text) > MOST_CHARACTERS:
        _refuse(f"must have at most {MOST_CHARACTERS} characters, got {len(text)}", None)
    sizes, anchors, names = [0], dict[str, int](), list[str | None]()
    for event in yaml.parse(text, Loader=SAFE_LOADER):
        mark = event.start_mark
        if isinstance(event, yaml.CollectionStartEvent | yaml.ScalarEvent) and _is_tagged(event):
            _refuse(f"tag {str(event.tag)[:100]!r} must not be given", mark)
        if isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            if name not in anchors:
                _refuse(f"alias {name[:100]!r} must be of a value before it", mark)
            sizes[-1] += anchors[name]
        elif isinstance(event, yaml.ScalarEvent):
            if event.implicit[0] and len(event.value) > LONGEST_PLAIN:
                _refuse(f"must have quotes around more than {LONGEST_PLAIN} characters", mark)
            sizes[-1] += 1
            anchors |= {event.anchor: 1} if event.anchor else {}
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(sizes) > MOST_DEPTH:
                _refuse(f"must nest at most {MOST_DEPTH} deep", mark)
            sizes.append(1)
            names.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = sizes.pop(), names.pop()
            sizes[-1] += size
            anchors |= {anchor: size} if anchor else {}
        if sum(sizes) > MOST_NODES:
            _refuse(f"must hold at most {MOST_NODES} values, aliases in full", mark)


def _is_tagged(event: Any) -> bool:
    """Return whether a value says of itself what it is; ``!`` alone says that it is text."""
    return event.tag not in (None, "!")


def _refuse(problem: str, mark: Any) -> None:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
