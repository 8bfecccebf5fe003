"""The summary of trainings: gains by hand, cost at equal attainment, the picture, bad folders."""

import pytest

from agents.serving.table import RULES
from scenarios.autoscale.comparison import cost_at_equal_attainment
from scenarios.train.east_west.command import main

HEAD = "day,policy,reward,attainment,usd,num_flaps\n"


def rows_of(day, learnt):
    """Days on which the rules are worth -1, `predictive` -0.5 and `oracle` -0.1."""
    worth = dict.fromkeys(RULES, -1.0) | {"predictive": -0.5, "oracle": -0.1, "rl": learnt}
    return "".join(f"{day},{name},{reward},0.9,20,3\n" for name, reward in worth.items())


def test_seeds_of_a_folder_are_put_together(tmp_path, capsys):
    for seed, learnt in ((0, -0.4), (1, -0.2)):
        rows = HEAD + rows_of(1000, learnt) + rows_of(1001, learnt - 0.1)
        (tmp_path / f"days-{seed}.csv").write_text(rows)
        curve = "step,mean_reward,entropy,explained_variance\n64,-0.9,1,0\n128,-0.5,1,0\n"
        (tmp_path / f"curve-{seed}.csv").write_text(curve)

    assert main(["autoscale", "--summary", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 seeds" in said
    assert "over that of predictive on the same day: +0.150" in said
    assert "(4 pairs of seed and day)" in said
    assert said.count("cost over that of predictive at equal attainment: 1.000") == 2
    assert (tmp_path / "autoscale_curves.png").read_bytes().startswith(b"\x89PNG")


def test_cost_at_equal_attainment_is_interpolated_between_margins():
    """At 0.85 `predictive` costs 15, the mean of 10 at 0.8 and 20 at 0.9; 12 at 0.7 is no use."""
    rows = [
        {"day": 1, "policy": name, "attainment": attainment, "usd": usd}
        for name, attainment, usd in (
            ("predictive_0.7", 0.7, 12.0),
            ("predictive", 0.8, 10.0),
            ("predictive_2", 0.9, 20.0),
            ("rl", 0.85, 12.0),
        )
    ]
    (line,) = cost_at_equal_attainment([*rows, *({**row, "day": 2} for row in rows)])
    assert ": 0.800 ± 0.000 on 2 days" in line


@pytest.mark.parametrize("flags", [["--summary"], ["--steps", "0"], ["--seed", "-1"]])
def test_bad_folders_and_flags_give_one_line(tmp_path, capsys, flags):
    assert main(["autoscale", *flags, "--out", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
