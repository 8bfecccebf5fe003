"""One iteration on packets of ns-3 in place of the simulator's links, by the command."""

import json

import pytest
from ns3_extra import is_ns3_installed

from scenarios.iteration.command import main

SMALL = ["--model", "llama2_7b", "--num-layers", "6", "--microbatches", "2", "--network-engine"]


def makespan_s(folder, *flags):
    assert main([*SMALL, *flags, "--figures", "svg", "--out", str(folder)]) == 0
    return json.loads((folder / "result.json").read_text("utf-8"))["makespan_s"]


def test_packets_go_without_other_jobs(capsys, tmp_path):
    flags = ["ns3", "--other-jobs", "llama2_7b:0*16,1*16", "--out", str(tmp_path / "run")]

    assert main([*SMALL, *flags]) == 2

    note, error = capsys.readouterr().err.splitlines()
    assert note.startswith("note: num_layers 6: ")
    assert "--network-engine ns3 must come without --other-jobs" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(is_ns3_installed(), reason="ns-3 is installed")
def test_without_the_extra_the_error_says_what_to_install(capsys, tmp_path):
    assert main([*SMALL, "ns3", "--out", str(tmp_path / "run")]) == 2

    assert "pip install 'eastwest[ns3]'" in capsys.readouterr().err


@pytest.mark.skipif(not is_ns3_installed(), reason="the extra ns3 is not installed")
def test_windows_that_fill_the_links_take_as_long_as_ideal_links(tmp_path):
    packets_s = makespan_s(tmp_path / "packets", "ns3")

    assert packets_s == pytest.approx(makespan_s(tmp_path / "des", "des"), rel=0.015)
