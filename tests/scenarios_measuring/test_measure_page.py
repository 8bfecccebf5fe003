"""Page of measurements: its commands, one after the other, on files of two sites."""

import re
import shutil
from pathlib import Path

from command_output import printed_by
from documented import ROOT, section

PAGE = section("decide.md", "Measure")
SAMPLES = ROOT / "tests" / "calibration_measurements" / "samples"
SITES = "Frankfurt: ['10.1.0.0/16', 'fra-*']\nParis: ['10.2.0.0/16', 'par-*']\n"


def test_commands_of_the_page_go_from_files_to_a_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("measured").mkdir()
    for name in ("iperf3_3.12_bidir.json", "mtr_0.95.json", "nccl_2.18.json", "prometheus.json"):
        shutil.copy(SAMPLES / name, "measured")
    Path("sites_of_hosts.yaml").write_text(SITES, encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    made, decided, replayed = map(printed_by, block.splitlines())

    assert "written: now.yaml" in made
    assert "Answer: single domain" in decided
    assert "replay: 2 links at" in replayed
    assert "file: now_course.csv" in Path("now.yaml").read_text("utf-8")
