"""Hashes of what commands give: the rules that make runs alike, and the comparison of two files."""

import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import torch

from agents.ppo.checkpoint import pack_content
from bench.behaviour.__main__ import main
from bench.behaviour.cases import GROUPS, NEED_GOLDEN, Case, batches_of
from bench.behaviour.comparison import differences
from bench.behaviour.normalised import FIGURES, figures, normalised, normalised_text
from bench.behaviour.rules import NAMES, RULES, applied
from bench.behaviour.running import run_all

PATHS = {"/tmp/behaviour-1/case": "<here>", "/tmp": "<other>"}


@pytest.mark.parametrize(
    ("file", "text", "alike"),
    [
        ("kpi/a/terminal", "training time    65.69 %  \nnext", "training time 65.69 %\nnext"),
        ("kpi/a/out/kpi.json", '"source_revision": "3f2f-dirty",', '"source_revision": -,'),
        ("train/a/out/config.json", '"numpy": "2.4.6"', '"numpy": -'),
        ("train/a/events.out.tfevents", "128 wall_s [0.8] 0.0", "128 wall_s -"),
        ("astra/a/terminal", "[2026-11-23 04:10:08.632] [info] 7 cycles", "[time] [info] 7 cycles"),
        (
            "train/a/terminal",
            "training 128/256 steps  4/s  reward -0.746  iteration 62.6 s  ETA 30 s",
            "training 128/256 steps -/s reward -0.746 iteration 62.6 s",
        ),
        (
            "train/a/terminal",
            " exact     51.76±0.67    39.09±0.51    8.59±0   1,082±7,239    100±0 ",
            " exact 51.76±0.67 39.09±0.51 8.59±0 - 100±0",
        ),
        (
            "train/a/out/report.html",
            '<tr><th scope="row">exact</th><td><strong>1 ± 2</strong></td><td>3 ± 4</td>'
            "<td><strong>7 ± 8</strong></td><td>5 ± 6</td><td>9 ± 0</td></tr>",
            '<tr><th scope="row">exact</th><td>1 ± 2</td><td>3 ± 4</td><td>-</td><td>5 ± 6</td>'
            "<td>9 ± 0</td></tr>",
        ),
        (
            "decide/a/terminal",
            '"iteration_s": 3.5,\n"response_ms": {\n"move": 1.2,\n"inter_domain": 3.4\n},',
            '"iteration_s": 3.5,\n"response_ms": -,',
        ),
        (
            "compare/a/terminal",
            " H16   0.07   3.45   +0.06 %   0.0284 ms",
            " H16 0.07 3.45 +0.06 % -",
        ),
        (
            "kpi/a/terminal",
            " gap   1 %\n decision time against a search   29 x\n\nmissed: gap, "
            "decision time against a search, null\n",
            " gap 1 %\n\nmissed: gap, null\n",
        ),
        (
            "kpi/a/out/kpi.json",
            '[{"name": "gap"}, {"name": "decision time against", "asked": {"x": 1}, "value": 2}]',
            '[{"name": "gap"}, -]',
        ),
        ("learning/hi_ppo/terminal", "trained in 86 s\nnext", "trained\nnext"),
        ("learning/local/out/summary.json", '"cpu_p50_s": 0.0012,\n', '"cpu_p50_s": -,\n'),
        ("simulate/a/terminal", "written: /tmp/behaviour-1/case/x.csv", "written: <here>/x.csv"),
        ("simulate/a/result.json", '"time_s": 3.522', '"time_s": 3.522'),
    ],
)
def test_what_no_two_runs_share_is_taken_out_and_nothing_else(file, text, alike):
    assert normalised_text(text, file, PATHS) == alike


def test_only_the_cells_of_timed_columns_are_emptied():
    table = 'plan,time_s,timing_s\n"0*2,1*2",3.5,0.22\n1*4,4.5,0.02\n'

    assert normalised_text(table, "pareto/one_world/out/metrics.csv", {}) == (
        'plan,time_s,timing_s\n"0*2,1*2",3.5,\n1*4,4.5,\n'
    )
    assert normalised_text(table, "simulate/one/out/metrics.csv", {}) == table


def test_every_rule_has_a_reason_and_belongs_to_a_group():
    for rule in (*RULES, *NAMES):
        assert rule.reason
        assert bool(rule.pattern) != bool(rule.columns)
        group = rule.files.partition("/")[0]
        assert group in GROUPS or group.startswith("*")


def test_events_of_tensorboard_lose_time_and_host_in_their_name():
    name = "out/tensorboard/events.out.tfevents.1795406480.vm.6983.0"

    assert applied(name, "", NAMES) == "out/tensorboard/events.out.tfevents"


def test_figures_are_numbers_alone():
    assert figures("1f1b of llama2_7b: +0.06 % in 3,5e2 or -1.5e-07 s (v2)") == [
        *("+0.06", "3", "5e2", "-1.5e-07"),
    ]


def test_tensors_are_compared_by_contents_and_a_renamed_key_moves_no_figure(tmp_path):
    def forms(name: str, **weights: torch.Tensor) -> dict[str, bytes]:
        folder = tmp_path / name
        folder.mkdir()
        packed = pack_content({"seed": 7, "parameters": weights}, {})
        (folder / "policy.safetensors").write_bytes(packed)
        return normalised(folder, "learning/x", {})

    first = forms("first", inner=torch.arange(3.0), outer=torch.zeros(2, 2))
    same = forms("same", inner=torch.arange(3.0), outer=torch.zeros(2, 2))
    renamed = forms("renamed", core=torch.arange(3.0), outer=torch.zeros(2, 2))
    other = forms("other", inner=torch.arange(3.0) + 1e-6, outer=torch.zeros(2, 2))

    figures_of = "policy.safetensors" + FIGURES
    assert first == same
    assert first["policy.safetensors"] != renamed["policy.safetensors"]
    assert first[figures_of] == renamed[figures_of] != other[figures_of]
    assert b".parameters.outer = array float32 (2, 2) " in first["policy.safetensors"]


def test_arrays_and_stores_of_runs_are_read_not_hashed_as_bytes(tmp_path):
    np.savez(tmp_path / "tables.npz", times=np.ones(3), kinds=np.arange(2))
    store = sqlite3.connect(tmp_path / "runs.sqlite")
    store.execute("CREATE TABLE runs (key TEXT, backend TEXT, created_s REAL)")
    store.executemany("INSERT INTO runs VALUES (?, ?, ?)", [("b", "aware", 2.0), ("a", "aa", 1.0)])
    store.commit()
    store.close()

    found = normalised(tmp_path, "calibration/x", {})

    assert found["runs.sqlite"] == b"runs: backend='aa'\nruns: backend='aware'\n"
    assert found["tables.npz"].startswith(b"kinds = array int64 (2,) ")


def test_differences_tell_words_from_figures():
    before = {"a/1": {"x.csv": "1", "x.csv#figures": "2", "y.png": "3"}, "a/2": {"z": "4"}}
    words = {"a/1": {"x.csv": "9", "x.csv#figures": "2", "y.png": "3"}, "a/2": {"z": "4"}}
    numbers = {"a/1": {"x.csv": "9", "x.csv#figures": "9", "new.csv": "1"}, "a/3": {"z": "4"}}

    assert differences(before, before) == {}
    assert differences(before, words) == {"a/1": ["x.csv: differs, but no figure in it"]}
    assert differences(before, numbers) == {
        "a/1": ["new.csv: new", "x.csv: differs", "y.png: gone"],
        "a/2": ["(case): gone"],
        "a/3": ["(case): new"],
    }


def test_two_files_are_compared_group_by_group(tmp_path, capsys):
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps({"kpi/a": {"terminal": "1"}, "train/a": {"terminal": "1"}}))
    after.write_text(json.dumps({"kpi/a": {"terminal": "1"}, "train/a": {"terminal": "2"}}))
    flags = ["--against", str(before), "--results", str(after)]

    assert main([*flags, "--only", "kpi"]) == 0
    assert capsys.readouterr().out == "0 of 1 cases differ\n"
    assert main(flags) == 1
    assert capsys.readouterr().out == "train/a/terminal: differs\n1 of 2 cases differ\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--out or --against must be given"),
        (
            ["--out", "x.json", "--only", "simulat"],
            "--only: must be some of simulate, .* 'simulat'",
        ),
        (["--against", "absent.json"], r"absent\.json: must be a file of digests"),
        (["--out", "x.json", "--only", "astra", "--golden", "."], "must hold recorded cases"),
    ],
)
def test_bad_flags_are_one_line(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(flags)

    assert end.value.code == 2
    assert re.search(message, capsys.readouterr().err.replace("\n", " "))
    assert not list(tmp_path.iterdir())


def test_groups_that_need_a_folder_are_left_out_without_it():
    groups = {case.group for batch in batches_of(list(GROUPS), None) for case in batch}

    assert groups == set(GROUPS) - NEED_GOLDEN


def test_names_of_cases_are_their_own():
    names = [case.name for batch in batches_of(list(GROUPS), None) for case in batch]

    assert len(names) == len(set(names))
    assert all(Path(name).parts[0] in GROUPS for name in names)


def test_commands_say_the_same_in_a_process_of_their_own_and_one_after_the_other(tmp_path):
    month = Case(name="suites/month", commands=(("calendar", "2026", "1"),))
    none = Case(name="suites/none", commands=(("calendar", "--nothing"),))
    told = []

    apart = run_all([[month], [none]], None, tmp_path / "kept", 2, told.append)
    together = run_all([[month, none]], None, None, 1, told.append)

    assert [each.case for each in told] == [month, none] * 2
    assert [each.digests for each in apart] == [each.digests for each in together]
    said = (tmp_path / "kept" / "suites" / "none" / "terminal").read_text("utf-8")
    assert "--- exit code 2" in said
