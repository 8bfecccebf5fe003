"""Page of the watch: its commands, one after the other, on the lines that it shows."""

import re
from pathlib import Path

from command_output import printed_by
from documented import section
from watched_job import WORLD

from des.world.files.topology_writer import to_yaml

PAGE = section("decide.md", "Watch")


def test_commands_of_the_page_watch_the_lines_that_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (lines,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    Path("measured").mkdir()
    Path("measured/seen.jsonl").write_text(lines.replace("East", "A").replace("West", "B"))
    Path("now.yaml").write_text(to_yaml(WORLD), encoding="utf-8")
    block = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]
    once, replayed = map(printed_by, block.splitlines())

    assert once.count("\n") == 1
    assert " first, " in once
    assert replayed.splitlines()[-1].startswith("3 decisions over 3.33 min: "), replayed
    assert Path("day.png").exists()
