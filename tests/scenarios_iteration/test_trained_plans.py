"""Placements given by hand for a trainer: complete plans, refusals, and perfect devices."""

import json

import pytest
from command_output import assert_refused

from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.iteration.command import main

JOB = ("--model", "llama2_7b", "--microbatches", "4")
HAND = ("--placement", "East*10,Central*12,West*10")


def said(capsys, out, *flags):
    """Document of the command, and the last line for people that names no file."""
    assert main([*flags, "--figures", "", "--out", str(out), "--json"]) == 0
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if not line.startswith("written")]
    return json.loads(shown.out), lines


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "deepspeed", "reference"])
def test_a_trainer_completes_a_placement_and_the_plan_repeats_its_time(name, tmp_path, capsys):
    found, lines = said(capsys, tmp_path / "a", *JOB, *HAND, "--trainer", name)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(found["plan"]["document"]), "utf-8")

    again, _ = said(capsys, tmp_path / "b", "--plan", str(path))

    assert found["plan"]["trainer"] == name
    assert again["makespan_s"] == found["makespan_s"] == found["plan"]["step_s"]
    assert "devices" not in found
    assert f"for trainer {name}: {found['makespan_s']!r} s a step" in lines[-1]


def test_degrees_that_are_given_stay(tmp_path, capsys):
    flags = (*JOB, *HAND, "--trainer", "megatron", "--parallelism", "8x1x1")

    found, _ = said(capsys, tmp_path, *flags)

    assert [one["tensor"] for one in found["parallelism"]] == [8, 8, 8]
    assert found["plan"]["document"]["plan"]["sends"] == "blocking"


@pytest.mark.parametrize("flags", [(), ("--trainer", "ideal")])
def test_perfect_devices_are_called_so(flags, tmp_path, capsys):
    found, lines = said(capsys, tmp_path, *JOB, *HAND, *flags)

    assert found["devices"] == PERFECT_DEVICES
    assert PERFECT_DEVICES in lines
    assert PERFECT_DEVICES.capitalize() in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--trainer", "other"), "trainer: must be one of megatron, .*; got 'other'"),
        (
            ("--trainer", "megatron", "--schedule", "zb_auto"),
            "schedules must be some of 1f1b, interleaved_1f1b; got 'zb_auto'",
        ),
        (
            ("--trainer", "ideal", "--parallelism", "8x1x1"),
            "trainer ideal: parallelism must be left out",
        ),
        (
            ("--trainer", "torchtitan", "--gradient-precision", "bf16"),
            "gradient_precision must be one of fp32; got 'bf16'",
        ),
    ],
)
def test_what_a_trainer_cannot_run_is_refused(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    argv = [*JOB, *HAND, *flags, "--out", str(out)]
    assert_refused(main, argv, message, capsys, unwritten=out)
