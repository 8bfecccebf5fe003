"""The commands of calibration: what they print and write."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from calibration_command_runs import SMALL, check, content_of, fit
from reference_programs import fake_programs

from calibration import read_corrections, write_corrections
from calibration.commands.main import TABLE, main
from calibration.measuring.environment import BINARIES_VARIABLE
from calibration.runs.store import Store
from des import NO_CORRECTIONS, Corrections

FILES = {"corrections.json", "samples.csv", "report.md", "predicted_versus_reference.png"}


@pytest.fixture(autouse=True)
def _our_engine(monkeypatch, tmp_path):
    """No programs of the original, and a folder in which defaults do no harm."""
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


def errors_of(text, title, figure="makespan"):
    """Mean, p95, bias and worst error over all cases of a printed table, in per cent."""
    table = text[text.index(title) :]
    line = next(line for line in table[table.index(" all ") :].splitlines() if figure in line)
    return [float(number) for number in re.findall(r"[+-]?\d+(?:\.\d{3}|e-\d+)\b", line)]


@pytest.mark.parametrize("command", TABLE.commands)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main([command, "--help"])

    text = capsys.readouterr().out
    assert f"usage: python -m calibration {command}" in text
    assert "example" in text
    assert "exit codes: 0 done" in text


def test_a_calibration_prints_the_uncorrected_error_first_and_writes_its_files(capsys):
    """At one NPU per domain the simulator is exact: nothing is fitted, all factors stay at 1.

    Another seed has other placements.
    """
    assert fit("--backend", "pairwise") == 0
    assert fit("--backend", "pairwise", "--seed", "8", "--figures", "", out="other") == 0

    text = capsys.readouterr().out
    assert errors_of(text, "Without factors") == pytest.approx([0.0] * 4, abs=1e-4)
    assert text.index("Without factors") < text.index("factors: not kept, des stays uncorrected")
    assert set(content_of("fit")) == FILES
    assert content_of("fit")["samples.csv"] != content_of("other")["samples.csv"]
    assert read_corrections("fit/corrections.json") == NO_CORRECTIONS
    samples = pd.read_csv("fit/samples.csv")
    assert samples["position"].tolist() == list(range(12))
    reference_s, uncorrected_s = samples["reference_makespan_s"], samples["uncorrected_makespan_s"]
    assert uncorrected_s.to_numpy() == pytest.approx(reference_s.to_numpy(), rel=1e-6)
    assert (reference_s > 0).all()
    assert Path("fit/predicted_versus_reference.png").read_bytes().startswith(b"\x89PNG")
    assert "needs no correction" in Path("fit/report.md").read_text("utf-8")


def test_what_does_not_follow_the_simulator_gets_factors_and_errors_before_and_after(capsys):
    """Sums inside a domain cost time in the memory of the GPUs, which `des` leaves out."""
    flags = ("--granularity", "gpu", "--backend", "unaware", "--network-aggregation", "min")
    assert fit(*flags, "--figures", "svg", samples=24) == 0
    assert "](predicted_versus_reference.svg)" in Path("fit/report.md").read_text("utf-8")
    assert "<svg" in Path("fit/predicted_versus_reference.svg").read_text("utf-8")

    text = capsys.readouterr().out
    assert "(no queues: des runs with transport.sharing none); it knows" in text
    assert "are made equal (network_aggregation min), and des runs the same" in text
    mean, p95, bias, worst = errors_of(text, "Without factors")
    assert 0 < -bias <= mean <= p95 <= -worst  # what is left out makes nothing later
    order = [
        text.index("Without factors"),
        text.index("compute_time_factor = "),
        text.index("intra_bandwidth_factor = "),
        text.index("message_overhead_s: not identified, cannot be told from 0"),
        text.index("factors: kept"),
        text.index("Before and after (held out)"),
    ]
    assert order == sorted(order)
    for regime in ("all", "gpipe", "1f1b", "interleaved_1f1b", "zb_h1"):
        assert f" {regime}: before " in text
        assert f" {regime}: after " in text
    report = Path("fit/report.md").read_text("utf-8")
    assert "| all: after | 24 | exposed communication |" in report


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_workers():
    """At one NPU per GPU, where there is something to fit."""
    flags = ("--granularity", "gpu", "--backend", "unaware")
    sevenths = (*flags, "--seed", "7", "--store", "none")
    assert fit(*sevenths, out="one", samples=9) == 0
    assert fit(*sevenths, "--workers", "2", out="two", samples=9) == 0

    assert read_corrections("one/corrections.json") != NO_CORRECTIONS
    assert content_of("one") == content_of("two")


def test_a_check_is_within_its_bounds_without_an_error(capsys):
    assert fit() == 0

    assert check("--corrections", "fit/corrections.json") == 0

    assert "all errors are within their bounds" in capsys.readouterr().out


def test_a_check_of_wrong_factors_exceeds_its_bound(capsys):
    """Everything takes 10 % longer when computation and messages do, so the error is 10 %."""
    slower = Corrections(
        compute_time_factor=1.1, wan_bandwidth_factor=1 / 1.1, wan_latency_factor=1.1
    )
    write_corrections(slower, "slower.json")
    flags = ("--corrections", "slower.json", "--backend", "pairwise")

    assert check(*flags, store="runs.sqlite") == 1
    text = capsys.readouterr().out
    assert errors_of(text, "With the factors") == [10.0, 10.0, 10.0, 10.0]
    assert "EXCEEDED: mean error of iteration time is 10 %, allowed 0.3 %" in text
    assert "EXCEEDED: p95 error of exposed communication is" in text
    assert "communication volume" not in text[text.index("EXCEEDED") :]

    assert check(*flags, "--bound", "0.2", "--p95-bound", "0.2", store="runs.sqlite") == 0


def test_backends_and_des_are_compared_side_by_side(capsys):
    flags = ("--samples", "4", "--store", "none", "--out", "rows/compare.csv", "--show", "2")

    assert main(["compare", *SMALL, *flags]) == 0

    text = capsys.readouterr().out
    assert "des for pairwise" in text
    assert "#1 " in text[text.index("Iteration time, s") : text.index("des against unaware")]
    assert "#2 " not in text[text.index("Iteration time, s") : text.index("des against unaware")]
    assert errors_of(text, "des against pairwise") == pytest.approx([0.0] * 4, abs=1e-4)
    rows = pd.read_csv("rows/compare.csv")
    for backend in ("unaware", "aware", "pairwise"):
        reference_s = rows[f"{backend}: makespan_s"].to_numpy()
        predicted_s = rows[f"des for {backend}: makespan_s"].to_numpy()
        assert predicted_s == pytest.approx(reference_s, rel=1e-6)


def test_worlds_of_several_sizes_are_compared_regime_by_regime(capsys):
    flags = ("--worlds", "drawn", "--num-domains", "3,5", "--samples", "4", "--store", "none")

    assert main(["compare", *SMALL, *flags, "--backends", "pairwise", "--show", "0"]) == 0

    text = capsys.readouterr().out
    assert "Iteration time, s" not in text
    assert re.search(r" 3 domains +2 +makespan", text)
    assert re.search(r" 5 domains +2 +makespan", text)


def test_the_original_s_programs_are_run_where_they_are_given(tmp_path, monkeypatch, capsys):
    """Programs that are our engine say what our engine says; the variable names their folder."""
    flags = ("compare", *SMALL, "--samples", "2", "--endpoints", "one_in_flight", "--store", "none")
    flags += ("--backends", "aware", "--show", "0", "--out")
    assert main([*flags, "ours.csv"]) == 0
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin")))
    capsys.readouterr()

    assert main([*flags, "theirs.csv"]) == 0

    assert "the original's ASTRA-sim program, backend aware" in capsys.readouterr().out
    assert Path("ours.csv").read_bytes() == Path("theirs.csv").read_bytes()


def test_an_exported_folder_runs_by_the_command_in_its_readme(capsys):
    flags = ["--num-layers", "6", "--microbatches", "4", "--placement", "0*2,1*3,2*1"]

    assert main(["export", *flags, "--out", "trace"]) == 0

    assert "written: trace" in capsys.readouterr().out
    readme = Path("trace/README.md").read_text("utf-8")
    assert "AstraSim_Analytical_Congestion_Aware" in readme
    assert "communication-slots" not in Path("trace/system.json").read_text("utf-8")
    command = re.search(r"```sh\n(python -m astra_sim.*?)```", readme, re.S)[1]
    words = shlex.split(command.replace("\\\n", " "))
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd="trace", capture_output=True, text=True, check=True
    )
    assert len(re.findall(r"sys\[\d\] finished, \d+ cycles", done.stdout)) == 3


def test_an_interleaved_schedule_is_exported_on_a_placement_that_it_can_have(capsys):
    flags = ["--num-layers", "12", "--microbatches", "3", "--schedule", "interleaved_1f1b"]

    assert main(["export", *flags, "--out", "trace", "--json"]) == 0

    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"out": "trace", "num_npus": 3, "only_our_engine": None}
    assert "interleaved_1f1b: 0*2,1*2,2*2,0*2,1*2,2*2\n" in shown.err


def test_an_exported_folder_of_an_epoch_has_other_links():
    for name, flags in {"base": (), "epoch": ("--seed", "3")}.items():
        assert main(["export", *flags, "--backend", "pairwise", "--out", name]) == 0

    base, epoch = (Path(name, "network.yml").read_text("utf-8") for name in ("base", "epoch"))
    assert base != epoch
    assert Path("base/trace.0.et").read_bytes() == Path("epoch/trace.0.et").read_bytes()


def test_runs_are_listed_shown_and_pruned_and_never_repeated(capsys):
    flags = ("compare", *SMALL, "--samples", "3", "--store", "runs.sqlite", "--show", "0")
    assert main([*flags, "--backends", "aware,pairwise"]) == 0
    rows = Store.open("runs.sqlite").rows()
    assert main([*flags, "--backends", "aware"]) == 0
    assert Store.open("runs.sqlite").rows().equals(rows)  # with the same times of creation
    capsys.readouterr()

    assert main(["list", "--store", "runs.sqlite", "--newest", "2"]) == 0
    text = capsys.readouterr().out
    assert "2 of 6 runs" in text
    assert [key[:16] in text for key in rows["key"]] == [False] * 4 + [True] * 2

    assert main(["show", rows["key"][0][:12], "--store", "runs.sqlite"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["key"] == rows["key"][0]
    assert shown["makespan_s"] == rows["makespan_s"][0]
    assert tuple(shown["exposed_s"]) == rows["exposed_s"][0]

    assert main(["list", "--store", "runs.sqlite", "--out", "runs.csv"]) == 0
    assert pd.read_csv("runs.csv")["key"].tolist() == rows["key"].tolist()
    capsys.readouterr()

    assert main(["prune", "--store", "runs.sqlite", "--backend", "aware"]) == 0
    assert capsys.readouterr().out == "removed 3 runs from runs.sqlite\n"
    left = Store.open("runs.sqlite").rows()
    assert left["backend"].tolist() == ["pairwise"] * 3
