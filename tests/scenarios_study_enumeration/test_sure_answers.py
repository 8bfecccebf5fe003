"""Statements of doubt of drawn answers: no search contradicts them, and true times lie in range."""

import re

import numpy as np
import pytest

from agents.decision.training_job import TrainingJob
from des import Topology
from scenarios.enumerate_plans import main
from scenarios.study.enumeration.drawn_worlds import drawn_case
from scenarios.study.enumeration.sure_answers import sure_row


def slow_links(topology: Topology) -> Topology:
    ones = np.ones(len(topology.links))
    return topology.scaled(1e-3 * ones, ones)


def test_no_statement_of_a_drawn_answer_is_contradicted():
    row = sure_row("seed 3", *drawn_case(3), 20)

    assert row.num_cases > 2
    assert row.num_contradicted == 0
    assert row.num_held == row.num_draws == 20


@pytest.mark.parametrize("seed", [5072, 5115, 5118])
def test_what_wins_only_where_something_is_otherwise_is_found(seed):
    """Settings that are far from the best here, and plans that only layers moved make the best."""
    row = sure_row(f"seed {seed}", *drawn_case(seed), 1)

    assert (row.num_contradicted, row.num_held) == (0, 1)


def test_an_answer_on_one_site_has_no_link_that_could_be_lost():
    """Links of a thousandth of the bandwidth: two cases of bandwidths, two of layers, one site."""
    topology, _ = drawn_case(3)
    row = sure_row(
        "slow", slow_links(topology), TrainingJob(model="llama3_8b", num_sequences=64), 3
    )

    assert (row.num_cases, row.num_contradicted, row.num_held) == (5, 0, 3)


def test_the_command_adds_the_worlds_up(capsys):
    assert main(["--sureness", "--drawn", "2", "--seed", "2", "--draws", "2"]) == 0
    first, second, both = capsys.readouterr().out.splitlines()
    counts = [re.findall(r"(\d+) of (\d+)", line) for line in (first, second)]
    cases = sum(int(one[0][1]) for one in counts)

    assert both == f"2 worlds: 0 of {cases} cases contradicted, 100.0% of 4 draws in the range"
    assert main(["--sureness", "--draws", "0"]) == 2
    assert "draws must be at least 1, got 0" in capsys.readouterr().err
