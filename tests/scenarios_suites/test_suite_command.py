"""The command that lists suites and writes them to files."""

import dataclasses

import pytest
from command_output import assert_refused, error_of, examples_of, help_of

from des import read_topology
from scenarios.frame.files import read_csv
from scenarios.suites import NAMES, suite
from scenarios.suites.command import Config, main


def run(capsys, *flags):
    """Run the command and return what it printed."""
    assert main(list(flags)) == 0
    return capsys.readouterr().out


def test_the_command_lists_the_worlds_and_their_ranges(capsys):
    shown = run(capsys, "hard", "--num", "4", "--seed", "3").splitlines()
    worlds = suite("hard").worlds(4, seed=3)

    assert len(shown) == 6
    for line, found in zip(shown[1:5], worlds, strict=True):
        cells = line.split()
        model, domains = found.workload.name, str(found.num_domains)
        assert cells[:6] == [found.name, domains, model, "32", "131", f"{found.ratio:.3g}"]
        assert cells[-1] == "bytes"
    ratios = [one.ratio for one in worlds]
    assert shown[5].startswith("4 worlds of hard: K ")
    assert f"R {min(ratios):.3g}-{max(ratios):.3g}, M 32, 0.131 million tokens a step, " in shown[5]


def test_the_files_are_the_worlds(tmp_path, capsys):
    out = tmp_path / "new" / "worlds"
    shown = run(capsys, "cheap_moves", "--num", "5", "--seed", "1", "--out", str(out))
    worlds = suite("cheap_moves").worlds(5, seed=1)

    assert shown.endswith(f"written: {out} (6 files)\n")
    index = read_csv(out / "index.csv")
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["index.csv", *index["topology_file"]]
    )
    for (_, row), found in zip(index.iterrows(), worlds, strict=True):
        assert read_topology(out / row["topology_file"]) == found.topology
        assert (row["world"], row["model"]) == (found.name, found.workload.name)
        assert (row["ratio"], row["epoch_s"]) == (found.ratio, found.epoch_s)
        assert row["iterations_per_epoch"] == found.iterations_per_epoch
        assert not row["pays_bytes"]
        assert row["digest"] == found.digest
    text = (out / f"{worlds[0].name}.yaml").read_text("utf-8")
    assert "# python -m scenarios.suites cheap_moves --num 5 --seed 1 --out DIR\n" in text


def test_the_same_command_writes_the_same_bytes(tmp_path, capsys):
    for name in ("one", "two"):
        run(capsys, "train", "--num", "3", "--out", str(tmp_path / name))

    first, again = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert first == again


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], r"name is required \(NAME\): suite, one of train, .*, sites_hard"),
        (
            ["--num", "3"],
            r"name is required \(NAME\): suite, one of train, .*, sites_hard",
        ),
        (["hrd"], "unknown suite 'hrd'; did you mean 'hard'?"),
        (["hard", "--num", "0"], "suite hard: num must be a whole number from 1 to 100000, got 0"),
        (["hard", "--seed", "-1"], "suite hard: seed must be a whole number within .*, got -1"),
        (["hard", "--num", "few"], "argument --num: .*'few'"),
        (["hard", "easy"], "unknown argument 'easy'"),
    ],
)
def test_bad_flags_are_refused_in_one_line_and_nothing_is_written(flags, message, tmp_path, capsys):
    out = tmp_path / "out"

    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)


def test_a_folder_with_files_stays_as_it_is(tmp_path, capsys):
    (tmp_path / "index.csv").write_text("mine")
    (tmp_path / "file").touch()

    assert main(["hard", "--num", "1", "--out", str(tmp_path)]) == 2
    assert "must be a new or empty folder, got one with files" in capsys.readouterr().err
    shown = error_of(main, ["hard", "--num", "1", "--out", str(tmp_path / "file")], capsys)
    assert "cannot be written" in shown
    assert (tmp_path / "index.csv").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "index.csv"]


def test_help_names_every_suite_and_flag_and_its_examples_run(tmp_path, monkeypatch, capsys):
    shown = help_of(main, capsys, fields=dataclasses.fields(Config))
    monkeypatch.chdir(tmp_path)

    for name in NAMES:
        assert f"\n  {name} " in shown
    examples = examples_of(shown, "scenarios.suites")
    assert len(examples) == 2
    for example in examples:
        assert main(example) == 0
    assert len(list((tmp_path / "eval_static").iterdir())) == 21
