"""ASTRA-sim's communicator group file: which ranks a named collective runs over."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from astra_sim.files.errors import AbortError
from astra_sim.files.json_fields import read_json_fields, shown

MAX_GROUP = 2**31 - 1

LEADING_INTEGER = re.compile(r"\s*([+-]?[0-9]+)")
"""Prefix that the original reads of a group's name; anything may follow."""


def read_comm_groups(path: str | Path) -> Mapping[int, tuple[int, ...]]:
    """Read ``{"1": [0, 1, 2, 3], ...}``: the ranks of each group, in ring order, by its number.

    Raises
    ------
    AbortError
        If the file cannot be read, or is no JSON object of lists of distinct ranks by positive
        group numbers.
    """
    fields = read_json_fields(path, kind="communicator group", missing=AbortError)
    groups: dict[int, tuple[int, ...]] = {}
    for key, ranks in fields.content.items():
        owner = f"{fields.source}: group {shown(key)}"
        number = _group_number(owner, key)
        if number in groups:
            raise AbortError(f"{owner}: number must be given once, got {number} twice")
        groups[number] = _ranks(owner, ranks)
    return groups


def _group_number(owner: str, key: str) -> int:
    match = LEADING_INTEGER.match(key)
    if match is None or not 1 <= int(match[1]) <= MAX_GROUP:
        raise AbortError(
            f"{owner}: must begin with a whole number from 1 to {MAX_GROUP}, got {shown(key)}"
        )
    return int(match[1])


def _ranks(owner: str, ranks: object) -> tuple[int, ...]:
    if not isinstance(ranks, list):
        raise AbortError(f"{owner}: must be a list of ranks, got {shown(ranks)}")
    for rank in ranks:
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
            raise AbortError(f"{owner}: rank must be a whole number from 0 on, got {shown(rank)}")
    for rank, count in Counter(ranks).items():
        if count > 1:
            raise AbortError(f"{owner}: ranks must be distinct, got {rank} {count} times")
    return tuple(ranks)
