"""Loads of domains as users give them: in a file, or in one text."""

from collections.abc import Mapping
from pathlib import Path

from des.base.checks import require_known
from des.base.strict_forms import StrictForm, form_errors
from des.base.text_files import read_json, read_yaml
from des.world.domain_load import IDLE, DomainLoad
from des.world.topology import Topology

_FIELDS = ("utilisation", "memory_occupancy", "queue_length")


class _LoadForm(StrictForm):
    """Load of a domain in a file."""

    utilisation: float = IDLE.utilisation
    memory_occupancy: float = IDLE.memory_occupancy
    queue_length: float = IDLE.queue_length


def read_loads(given: str, topology: Topology) -> tuple[DomainLoad, ...]:
    """Read the load of each domain; those that are not named are idle.

    Parameters
    ----------
    given
        ``East=0.2/0.1/3,West=0.5``, of which later numbers may be left out, or the path of a
        ``.yaml``, ``.yml`` or ``.json`` file, such as ``{East: {utilisation: 0.2}}``.

    Raises
    ------
    ValueError
        If the file cannot be read, a domain is unknown or named twice, or a number is wrong; the
        message names the domain, the field, what is allowed and what came.
    """
    path = Path(given)
    kind = path.suffix.lower()
    if kind not in (".json", ".yaml", ".yml"):
        return _loads_of(_parse_named(given), topology, "loads")
    content = read_json(path) if kind == ".json" else read_yaml(path)
    if not isinstance(content, Mapping):
        raise ValueError(f"{path}: must be a mapping of domains to loads, got {content!r}")
    return _loads_of(content, topology, str(path))


def _parse_named(text: str) -> dict[str, object]:
    named: dict[str, object] = {}
    for item in text.split(","):
        name, equals, numbers = item.strip().rpartition("=")
        if not equals or name in named:
            raise ValueError(
                "loads: must be DOMAIN=utilisation/memory_occupancy/queue_length, each domain once "
                f"and commas between them, or a .yaml or .json file; got {item!r}"
            )
        named[name] = numbers
    return named


def _loads_of(
    named: Mapping[object, object] | Mapping[str, object], topology: Topology, owner: str
) -> tuple[DomainLoad, ...]:
    loads = dict.fromkeys(topology.index_of, IDLE)
    for name, said in named.items():
        require_known(f"{owner}: unknown domain", name, loads)
        with form_errors(f"{owner}: {name}"):
            loads[str(name)] = _load(said)
    return tuple(loads.values())


def _load(said: object) -> DomainLoad:
    if isinstance(said, Mapping):
        return DomainLoad(**dict(_LoadForm.model_validate(said)))
    numbers = str(said).split("/")
    try:
        if len(numbers) > len(_FIELDS):
            raise ValueError("too many numbers")
        values = [float(number) for number in numbers]
    except ValueError as error:
        raise ValueError(
            f"must be one to three numbers {'/'.join(_FIELDS)}, got {said!r}"
        ) from error
    return DomainLoad(**dict(zip(_FIELDS, values, strict=False)))
