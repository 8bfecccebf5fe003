"""Files of loads that a training run replays: those of its own form, such as queues write."""

import csv
import io
from collections import defaultdict
from pathlib import Path

from des.base.checks import require_one_of
from des.base.text_files import read_text
from des.training.replayed_load import ReplayedLoad
from des.world.domain_load import DomainLoad
from des.world.topology import Topology

LOAD_COLUMNS = ("time_s", "domain", "gpu_utilisation", "memory_occupancy", "queue_length")
"""Columns of ``loads.csv``."""


def read_replayed_loads(path: Path, topology: Topology) -> tuple[ReplayedLoad | None, ...]:
    """Read a course of loads for each domain; None where the file has none.

    Raises
    ------
    ValueError
        If the file cannot be read, or a cell is not of its column.
    """
    reader = csv.DictReader(io.StringIO(read_text(path)))
    missing = [name for name in LOAD_COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"{path}: must have a column {missing[0]}, got {reader.fieldnames}")
    changes: dict[str, list[tuple[float, DomainLoad]]] = defaultdict(list)
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        require_one_of(where, "domain", row["domain"], topology.index_of)
        try:
            time_s, *figures = (float(row[name]) for name in LOAD_COLUMNS if name != "domain")
            changes[row["domain"]].append((time_s, _load(*figures)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error
    return tuple(
        ReplayedLoad(changes=tuple(changes[domain.name])) if changes[domain.name] else None
        for domain in topology.domains
    )


def _load(utilisation: float, memory_occupancy: float, queue_length: float) -> DomainLoad:
    return DomainLoad(
        utilisation=utilisation, memory_occupancy=memory_occupancy, queue_length=queue_length
    )
