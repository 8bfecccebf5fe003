"""The same placements at all levels of detail, by the command."""

import json

import pandas as pd
import pytest
from command_output import error_of

from scenarios.study.fidelity.command import main
from scenarios.study.fidelity.levels import choices_kept

SMALL = ["--num-layers", "6", "--microbatches", "2", "--samples", "4"]
DES = ["compiled", "simpy", "unaware", "aware", "pairwise"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fidelity") / "run"
    assert main([*SMALL, "--transports", "none", "--out", str(path)]) == 0
    return path


def test_every_level_measures_the_same_placements(folder):
    rows = pd.read_csv(folder / "placements.csv")

    assert list(rows["level"].unique()) == DES
    assert (rows.groupby("level").size() == 4).all()
    by_level = rows.pivot_table(index="placement", columns="level", values="iteration_s")
    assert by_level["compiled"].equals(by_level["simpy"])
    assert by_level["pairwise"].to_numpy() == pytest.approx(
        by_level["compiled"].to_numpy(), rel=1e-5
    )


def test_equal_levels_agree_on_ranks_and_on_the_best_plan(folder):
    levels = pd.read_csv(folder / "levels.csv").set_index("level")

    assert list(levels.index) == DES
    assert levels.loc["simpy", "kendall_tau"] == 1.0
    assert levels.loc["simpy", "regret_fraction"] == 0.0
    assert levels.loc["simpy", "error_before_fraction"] == 0.0
    assert json.loads((folder / "config.json").read_text())["config"]["transports"] is None


def test_a_second_run_gives_the_same_rows(folder, tmp_path, capsys):
    capsys.readouterr()
    assert main([*SMALL, "--transports", "none", "--out", str(tmp_path / "again"), "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert [row["level"] for row in said["levels"]] == pd.read_csv(folder / "levels.csv")[
        "level"
    ].tolist()

    for name in ("placements.csv", "levels.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_a_choice_that_costs_time_on_the_next_level_is_told():
    frame = pd.DataFrame(
        [
            {"level": "rough", "regret_fraction": None},
            {"level": "fine", "regret_fraction": 0.025},
            {"level": "finer", "regret_fraction": 0.0},
        ]
    )

    assert choices_kept(frame) == [
        "the best plan of rough costs 2.50 % more on fine",
        "the best plan of fine stays the best on finer",
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--transports", "reno"], "transports must be some of line_rate_window, cubic, bbr"),
        (["--samples", "0"], "samples"),
        (["--network", "nowhere"], "nowhere"),
    ],
)
def test_bad_flags_are_one_line_and_exit_code_2(flags, said, tmp_path, capsys):
    assert said in error_of(main, [*flags, "--out", str(tmp_path / "run")], capsys)
    assert not (tmp_path / "run").exists()
