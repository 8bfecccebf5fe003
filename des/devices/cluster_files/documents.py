"""YAML and JSON documents whose every value is text, as names such as 0012 or on must stay."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from des.base.checks import require_known
from des.base.strict_json import parse_json
from des.base.strict_yaml import BASE_LOADER, require_bounded_yaml

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_JSON = re.compile(r'\s*[\[{][\s\[{]*"')
"""Start of JSON text that holds anything; YAML in braces has no quotes there."""


class _TextLoader(BASE_LOADER):  # type: ignore[misc]
    """Scalars stay text; a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                raise ValueError(f"line {line}: a key must be text")
            if key.value in seen:
                line = key.start_mark.line + 1
                raise ValueError(f"line {line}: {key.value} is given twice")
            seen.add(key.value)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return found


def read_documents(text: str) -> list[object]:
    """Documents of YAML or JSON text: mappings, lists and text; an empty one is left out.

    Raises
    ------
    ValueError
        If it is neither, naming the line, or a key is given twice.
    """
    if _JSON.match(text):
        return [_as_text(parse_json(text))]
    try:
        require_bounded_yaml(text)
        return [each for each in yaml.load_all(text, Loader=_TextLoader) if each]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"line {line}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    except RecursionError as error:
        raise ValueError("not YAML: nested too deeply") from error


def _as_text(value: object) -> object:
    if isinstance(value, dict):
        return {key: _as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_documents(documents: Iterable[object]) -> str:
    """Documents as YAML, keys in their order."""
    return yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=100
    )


def mapping_in(owner: str, value: object, allowed: Sequence[str] | None = None) -> dict[str, Any]:
    """Check a mapping; with ``allowed``, its keys too. Nothing at all is an empty one.

    Raises
    ------
    ValueError
        If it is none, or a key is unknown, with the one that was probably meant.
    """
    if value in ("", None):
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{owner}: must be a mapping, got {str(value)[:60]!r}")
    for key in value if allowed is not None else ():
        require_known(f"{owner}: unknown key", key, allowed or ())
    return value


def list_in(owner: str, value: object) -> list[Any]:
    """Check a list; nothing at all is an empty one."""
    if value in ("", None):
        return []
    if not isinstance(value, list):
        raise ValueError(f"{owner}: must be a list, got {str(value)[:60]!r}")
    return value


def text_in(owner: str, value: object) -> str:
    """Check a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{owner}: must be text, got {str(value)[:60]!r}")
    return value


def number_in(owner: str, value: object) -> int:
    """Check a whole number that is not negative."""
    if not isinstance(value, str) or not value.isdecimal():
        raise ValueError(f"{owner}: must be a whole number, got {str(value)[:60]!r}")
    return int(value)


def labels_in(owner: str, value: object) -> tuple[tuple[str, str], ...]:
    """Check keys and values that are all text."""
    found = mapping_in(owner, value)
    for key, inner in found.items():
        if not isinstance(inner, str):
            raise ValueError(f"{owner}.{key}: must be text, got {str(inner)[:60]!r}")
    return tuple(found.items())


def kubernetes_items(documents: Iterable[object]) -> Iterator[Mapping[str, Any]]:
    """Objects of Kubernetes in documents, those inside lists too; each has ``kind``."""
    for at, document in enumerate(documents):
        item = mapping_in(f"document {at + 1}", document)
        kind = item.get("kind")
        if not isinstance(kind, str):
            raise ValueError(f"document {at + 1}: kind must be given")
        if kind.endswith("List") or kind == "List":
            yield from kubernetes_items(list_in(f"document {at + 1}: items", item.get("items")))
        else:
            yield item
