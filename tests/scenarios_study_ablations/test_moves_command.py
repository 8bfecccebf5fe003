"""The comparison of a learned move policy for all families with fixed rules."""

import numpy as np
import pandas as pd
import pytest
from command_output import PAPER, assert_measurement_is_written, error_of

from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.moves.move_rules import WHOLE_RULES
from scenarios.study.ablations.move_games import (
    FIXED,
    SIZES,
    WorldGames,
    excess_of_rule,
    games_of,
    training_worlds,
)
from scenarios.study.ablations.moves import main


@pytest.fixture(scope="module")
def game():
    """A small world whose links are held for eight epochs."""
    (found,), varied = games_of(WorldGames(suite="sites_held", index=2, seed=5))
    assert not varied
    return found


def test_no_rule_is_quicker_than_the_clairvoyant_and_never_moving_keeps_the_plan(game):
    least = game.least()

    assert float(game.epoch_costs(least)[0]) == pytest.approx(1.0)
    excess = {name: excess_of_rule(game, rule) for name, rule in FIXED.items()}
    assert min(excess.values()) >= -1e-9
    stays = game.chosen[np.arange(game.num_states), game.choice_of_rule[:, FIXED["never"]]]
    assert (stays == game.plan).all()


def test_fixed_rules_reach_every_family():
    for name, rule in FIXED.items():
        level = WHOLE_RULES.rules[rule].level
        assert level == ("nothing" if name == "never" else WHOLE_RULES.top)


def test_worlds_of_the_training_move_and_are_of_the_sizes_asked():
    worlds = [one.world for one in training_worlds(4, 6, 1, 0)]

    assert all(world.num_epochs > 1 for world in worlds)
    assert {world.num_domains for world in worlds} <= set(SIZES)


def test_every_method_is_judged_on_every_world_and_the_bound_is_printed(tmp_path, capsys):
    out = tmp_path / "moves"
    flags = ["--num-worlds", "1", "--num-judged", "1", "--updates", "1", "--seeds", "0,1"]
    flags += ["--num-draws", "1", "--num-variants", "0", "--seed", "15"]  # few sites and passes

    assert main(["--out", str(out), *flags, *PAPER]) == 0

    printed = capsys.readouterr().out
    assert "no policy can gain more" in printed
    assert "learned against untrained: " in printed
    rows = pd.read_csv(out / "moves.csv")
    networks = rows["network"].nunique()
    counts = rows.groupby("method")["network"].size()
    assert counts.to_dict() == {
        **dict.fromkeys(FIXED, networks),
        "untrained": 2 * networks,
        "learned": 2 * networks,
    }
    assert (rows["excess"] >= -1e-9).all()
    assert_measurement_is_written(out, rows="moves", figure="methods")
    for seed in (0, 1):
        assert MovePolicy.load(out / f"moves-{seed}.safetensors").rule_set == WHOLE_RULES
        assert len(pd.read_csv(out / f"moves-{seed}.csv")) == 1  # one update


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num-judged", "0"], "num_judged must be a whole number"),
        (["--seeds", "-1"], "got -1"),
        (["--seeds", ""], "seeds must be one or more, each once; got none"),
        (["--seeds", "1,1"], "seeds must be one or more, each once; got 1,1"),
        (["--num-variants", "-1"], "num_variants"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, flags, message):
    assert message in error_of(main, ["--out", str(tmp_path / "moves"), *flags], capsys)
    assert not (tmp_path / "moves").exists()
