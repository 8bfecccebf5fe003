"""Ends of calibration's commands: bad input, programs that misbehave, Ctrl-C."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from calibration_command_runs import SMALL, check, content_of, fit
from processes import python
from reference_programs import fake_programs

from calibration.commands.main import main
from calibration.measuring.environment import BINARIES_VARIABLE
from calibration.runs.store import Store
from des.base.command import READER_GONE
from des.base.interruption import INTERRUPTED


@pytest.fixture(autouse=True)
def _our_engine(monkeypatch, tmp_path):
    """No programs of the original, and a folder in which defaults do no harm."""
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Corrections of a calibration."""
    folder = tmp_path_factory.mktemp("fitted") / "fit"
    assert fit("--store", "none", out=str(folder)) == 0
    return folder / "corrections.json"


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (("--model", "llama2_7b"), "model"),
        (("--microbatch-sizes", "2"), "model"),
        (("--network", "four_uneven"), "network"),
        (("--endpoints", "one_in_flight"), "network"),
    ],
)
def test_factors_for_something_else_are_refused(flags, field, fitted, capsys):
    assert check("--corrections", str(fitted), *flags) == 2

    out, errors = capsys.readouterr()
    assert out == ""
    assert f"fitted_for.{field}: factors must be used for the {field}" in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("way", "reason", "last"),
    [
        ("hang", "it did not end within 2 s", "sys[0] finished"),
        ("crash", "the first one missing is that of rank 0", "std::bad_alloc"),
        ("partial", "got 2; the first one missing is that of rank 2", "sys[1] finished"),
    ],
)
def test_a_program_that_misbehaves_ends_a_calibration_without_files(
    way, reason, last, tmp_path, capsys
):
    programs = fake_programs(tmp_path / "bin", way)
    flags = ("--astra-bin", str(programs), "--endpoints", "one_in_flight", "--time-limit", "2")

    assert fit(*flags) == 2

    errors = capsys.readouterr().err
    assert errors.startswith("error: case ")
    assert reason in errors
    assert last in errors
    assert content_of("fit") == {}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            (),
            "python -m calibration: COMMAND must be one of run, check, kernels, devices, serving, "
            "runs, profile,",
        ),
        (("rnu",), "show, prune, got 'rnu'; did you mean 'run'?"),
        (("run", "--samples", "0"), "argument --samples: must be a whole number from 1 to"),
        (("run", "--samples", "many"), "argument --samples: must be an integer, got 'many'"),
        (("run", "--microbatches", "9,8"), "--microbatches: must be LEAST,MOST, such as 8,64"),
        (("run", "--time-limit", "-1"), "--time-limit: must be positive and finite, got -1"),
        (("run", "--sample", "4"), "unknown argument '--sample'; did you mean '--samples'?"),
        (
            ("run", "--backend", "exact"),
            "--backend: must be one of unaware, aware, pairwise, ns3, got 'exact'",
        ),
        (
            ("run", "--backend", "astra-ns3"),
            "--backend: must be one of unaware, aware, pairwise, ns3, got 'astra-ns3'",
        ),
        (("run", "--ns3-bin", "a"), "unknown argument '--ns3-bin'"),
        (("run", "--model", "llama"), "model: must be one of llama2_7b"),
        (("run", "--model", "llama2_7b,llama2_70b"), "--model takes a single model: factors"),
        (("run", "--network", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "--schedules", "1f2b"), "must be one of gpipe"),
        (("run", *SMALL, "--samples", "4"), "fit: cases must leave more than the 6 factors"),
        (
            ("run", "--astra-bin", "nowhere", "--endpoints", "one_in_flight"),
            "must be a program, got no such file",
        ),
        (
            ("run", "--astra-bin", "nowhere"),
            "the programs in nowhere: have one communication slot per NPU",
        ),
        (("run", "--backend", "pairwise", "--astra-bin", "x"), "--astra-bin has programs for unaw"),
        (("run", "--out", "file"), "file: File exists"),
        (("run", "--store", "file"), "store file: must be a store of runs"),
        (("check", "--corrections", "none.json"), "none.json: corrections file cannot be read"),
        (("check", "--corrections", "file"), "file: not readable as JSON in line 1"),
        (("compare", "--num-domains", "3"), "num_domains must be left out where the worlds are"),
        (
            ("compare", "--backends", "aware,exact"),
            "each element one of unaware, aware, pairwise, ns3, got 'aware,exact'",
        ),
        (("export", "--out", "o", "--placement", "0*3"), "placement"),
        (("export", "--out", "o", "--parallelism", "8"), "must be TENSORxDATAxPIPELINE"),
        (("list", "--store", "none.sqlite"), "store none.sqlite: cannot be opened"),
        (("show", "ab", "--store", "none.sqlite"), "store none.sqlite: cannot be opened"),
        (("show", "", "--store", "empty.sqlite"), "got '', which is that of 0 of 0"),
        (("prune",), "one of --older-than-days, --keep-newest and --backend must be given"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys):
    Path("file").write_text("no store", "utf-8")
    Store.open("empty.sqlite")

    assert main(flags) == 2

    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert message in errors
    assert errors.count("\n") == 1


def started(*flags):
    """Start a command as a process; on a busy machine it would say how long it takes."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return python("-m", "calibration", *flags, "--quiet", text=True, **streams)


def test_ctrl_c_ends_a_calibration_with_one_line():
    """The signal goes to all processes of the command, as that of a terminal does."""
    with started("run", "--samples", "300", "--workers", "1", "--quiet") as process:
        assert process.stdout.readline().startswith("300 placements of llama2_70b")
        assert process.stdout.readline().startswith("reference: our ASTRA-sim engine")
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()

    assert (process.returncode, errors) == (INTERRUPTED, "interrupted\n")
    assert content_of("runs/calibration") == {}


def test_a_reader_that_goes_away_is_no_error():
    Store.open("runs.sqlite")
    flags = ("list", "--store", "runs.sqlite")
    with started(*flags) as process:
        process.stdout.close()
        _, errors = process.communicate()

    assert (process.returncode, errors) == (READER_GONE, "")
