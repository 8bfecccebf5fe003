"""Page of devices: the commands in it print what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from scenarios.devices.command import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/cluster.md").read_text("utf-8")
SHOWN = re.findall(r"```\n\$ python -m scenarios\.devices (.+)\n([^`]*)```", PAGE)
(SERVERS,) = re.findall(r"```\n(servers:\n[^`]*)```", PAGE)


def test_the_page_shows_commands():
    assert len(SHOWN) >= 6
    assert {line.split()[0] for line, _ in SHOWN} >= {"place", "group", "compare"}


@pytest.mark.parametrize(("line", "expected"), SHOWN, ids=lambda text: text.split("\n")[0][:60])
def test_a_command_prints_what_the_page_shows(line, expected, tmp_path, capsys, monkeypatch):
    (tmp_path / "servers.yaml").write_text(SERVERS, "utf-8")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)

    code = main(shlex.split(line))

    shown = capsys.readouterr()
    assert (shown.out or shown.err) == expected
    assert code == (2 if expected.startswith("error: ") else 0)
