"""InfraGraph: devices, their instances, and links between these, as ASTRA-sim 3.0 reads them.

``Infrastructure`` of https://github.com/Keysight/infragraph, ``artifacts/openapi.yaml`` (0.1.0), as
JSON or YAML. Figures are those that someone wrote down, so that measured ones take their place.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

from calibration.measurements.reading import Quantity, Reading
from calibration.measurements.source_text import JsonField, SourceText
from des.base.text_files import parse_yaml

ValueT = TypeVar("ValueT")

NAME = "InfraGraph"
_KEYS = ("devices", "instances", "edges")
_BYTES_PER_S = {"gigabits_per_second": 1.25e8, "gigabytes_per_second": 1e9}
_SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def holds(file: SourceText) -> bool:
    """Whether it has devices, instances and edges at its top."""
    if file.is_json:
        return file.has_keys(*_KEYS)
    return all(re.search(rf"^{key}:", file.text, re.MULTILINE) for key in _KEYS)


def read(file: SourceText) -> Iterator[Reading]:
    """Read GPUs of devices, and rates and round trips between instances.

    Raises
    ------
    ValueError
        If a field is missing, or names what is not there; naming file and field.
    """
    value = file.json.value if file.is_json else parse_yaml(file.text, file.path)
    root = JsonField(file=str(file.path), name="", value=value)
    components = {
        device.at("name").text(): {
            one.at("name").text(): (one.at("choice").text(), int(one.at("count").positive()))
            for one in device.at("components").items()
        }
        for device in root.at("devices").items()
    }
    for device, parts in components.items():
        gpus, cards = (
            sum(count for kind, count in parts.values() if kind == wanted)
            for wanted in ("npu", "nic")
        )
        if gpus:
            facts = (("device", device), ("network_cards", f"{cards}"))
            yield _reading(root, "server", float(gpus), facts=facts)
    instances = {one.at("name").text(): one for one in root.at("instances").items()}
    links = root.get("links")
    link_of = {} if links is None else {one.at("name").text(): one for one in links.items()}
    for edge in root.at("edges").items():
        yield from _of_edge(edge, instances, components, link_of)


def _of_edge(
    edge: JsonField,
    instances: Mapping[str, JsonField],
    components: Mapping[str, Mapping[str, tuple[str, int]]],
    link_of: Mapping[str, JsonField],
) -> Iterator[Reading]:
    """Both directions of an edge, whose single links carry together."""
    ends, sizes = [], []
    for end in (edge.at("ep1"), edge.at("ep2")):
        name, indices = _index(end.at("instance"))
        instance = _name(end.at("instance"), name, instances)
        device = instance.at("device")
        component, places = _index(end.at("component"))
        parts = _name(device, device.text(), components)
        _, count = _name(end.at("component"), component, parts)
        sizes.append(
            len(range(int(instance.at("count").positive()))[indices]) * len(range(count)[places])
        )
        ends.append(name)
    if ends[0] == ends[1]:
        return
    scheme = edge.get("scheme")
    kind = "one2one" if scheme is None else scheme.text()
    if kind == "one2one" and sizes[0] == sizes[1]:
        count = sizes[0]
    elif kind == "many2many":
        count = sizes[0] * sizes[1]
    else:
        raise edge.wrong("between two instances one2one, of as many ends, or many2many")
    link = _name(edge.at("link"), edge.at("link").text(), link_of)
    rate = _quantity(link.get("physical", "bandwidth"), _BYTES_PER_S)
    latency_s = _quantity(link.get("physical", "latency"), _SECONDS)
    for source, target in (ends, ends[::-1]):
        if rate and count:
            yield _reading(edge, "bandwidth", count * rate, source=source, target=target)
    if latency_s:
        yield _reading(edge, "round_trip", 2.0 * latency_s, source=ends[0], target=ends[1])


def _reading(
    field: JsonField,
    what: Quantity,
    value: float,
    *,
    source: str = "",
    target: str = "",
    facts: tuple[tuple[str, str], ...] = (),
) -> Reading:
    return Reading(
        file=field.file,
        format=NAME,
        what=what,
        value=value,
        source=source,
        target=target,
        facts=facts,
        note="as written down, not measured" if source else "",
    )


def _name(field: JsonField, name: str, known: Mapping[str, ValueT]) -> ValueT:
    if name not in known:
        raise field.wrong(f"one of {', '.join(known)}")
    return known[name]


def _index(field: JsonField) -> tuple[str, slice]:
    """Name, and the indices in brackets behind it as in Python; all without."""
    found = re.fullmatch(r"([^\[\]]+)(?:\[(-?\d*)(?:(:)(-?\d*)(?::(\d*))?)?\])?", field.text())
    if found is None:
        raise field.wrong("a name, and maybe indices such as [0:2]")
    name, begin, colon, end, step = found.groups()
    if begin and not colon:
        return name, slice(int(begin), int(begin) + 1)
    return name, slice(*(int(one) if one else None for one in (begin, end, step)))


def _quantity(field: JsonField | None, units: Mapping[str, float]) -> float | None:
    """Value in SI units; None where it is not given."""
    if field is None:
        return None
    unit = field.at("choice")
    return field.at(unit.text()).positive() * _name(unit, unit.text(), units)
