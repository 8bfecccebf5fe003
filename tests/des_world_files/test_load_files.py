"""Loads of domains from a text and from files."""

import re

import pytest
from strategies import world

from des.world.domain_load import IDLE, DomainLoad
from des.world.files.load_files import read_loads

PAIR = world("AB", {"AB": (4.0, 0.0), "BA": (4.0, 0.0)})
BUSY = DomainLoad(utilisation=0.2, memory_occupancy=0.1, queue_length=3.0)


def test_a_text_names_domains_and_the_others_are_idle():
    assert read_loads("B=0.2/0.1/3", PAIR) == (IDLE, BUSY)
    assert read_loads("B=0.2/0.1/3, A=0.5", PAIR) == (DomainLoad(utilisation=0.5), BUSY)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "B: {utilisation: 0.2, memory_occupancy: 0.1, queue_length: 3}\n"),
        ("a.yml", "B: 0.2/0.1/3\n"),
        ("a.json", '{"B": {"utilisation": 0.2, "memory_occupancy": 0.1, "queue_length": 3}}'),
    ],
)
def test_files_say_the_same(name, text, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert read_loads(str(tmp_path / name), PAIR) == (IDLE, BUSY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C=0.2", "loads: unknown domain 'C'; allowed are A, B"),
        ("A", "loads: must be DOMAIN=utilisation/memory_occupancy/queue_length, .* got 'A'"),
        ("A=0.1,A=0.2", "loads: .* each domain once .* got 'A=0.2'"),
        ("A=0.1/0.2/3/4", "loads: A: must be one to three numbers .* got '0.1/0.2/3/4'"),
        ("A=x", "loads: A: must be one to three numbers .* got 'x'"),
        ("A=1", r"loads: A: domain load: utilisation must be within \[0, 1\), got 1.0"),
        ("A=0/0/-1", "loads: A: domain load: queue_length must be finite and not negative, got -1"),
        ("A=nan", r"loads: A: domain load: utilisation must be within \[0, 1\), got nan"),
    ],
)
def test_wrong_loads_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_loads(text, PAIR)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "must be a mapping of domains to loads, got [1]"),
        ("C: 0.1", "unknown domain 'C'; allowed are A, B"),
        ("A: {memory: 0.1}", "A: memory: unknown key; allowed are utilisation"),
        ("A: {utilisation: lots}", "A: utilisation: "),
    ],
)
def test_wrong_files_are_refused_by_name(text, message, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_loads(str(path), PAIR)
