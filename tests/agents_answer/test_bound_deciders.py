"""``python -m agents.decide --trainer X --deciders``: Hi-PPO's proposals bound, alone or both."""

import json

import pytest
from bound_cases import site, sites

from agents.decide import main
from agents.decision.plan_document import read_document
from des import simulate
from des.world.files.topology_writer import to_yaml

JOB = ("--model", "llama2_7b", "--microbatches", "8", "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Worlds of two and of 65 sites in files."""
    path = tmp_path_factory.mktemp("worlds")
    two = sites(site("A", 8), site("B", 8))
    many = sites(*(site(f"S{number}", 8) for number in range(65)))
    (path / "two.yaml").write_text(to_yaml(two), encoding="utf-8")
    (path / "many.yaml").write_text(to_yaml(many), encoding="utf-8")
    return path


@pytest.fixture
def asked(capsys, folder):
    """Run the command on two sites and return its document."""

    def run(*flags: str):
        assert main(["--network", str(folder / "two.yaml"), *JOB, *flags]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("trainer", ["megatron", "reference"])
def test_hi_ppo_answers_with_a_complete_document_that_is_repeated(asked, trainer):
    document = asked("--trainer", trainer, "--deciders", "hi_ppo")
    bound = read_document(document)

    assert simulate(bound.topology, bound.workload, bound.plan).makespan_s == bound.step_s
    assert document["step_s"] == bound.step_s
    assert document["answer"]["decided_by"] == "hi_ppo"
    assert document["answer"]["deciders"] == {"hi_ppo": bound.step_s}


@pytest.mark.parametrize("trainer", ["megatron", "torchtitan"])
def test_both_are_as_quick_as_the_quicker_one_and_name_it(asked, trainer):
    searched, proposed, both = (
        asked("--trainer", trainer, "--deciders", name) for name in ("search", "hi_ppo", "both")
    )
    answer = both["answer"]

    assert both["step_s"] == min(searched["step_s"], proposed["step_s"])
    assert answer["deciders"] == {"search": searched["step_s"], "hi_ppo": proposed["step_s"]}
    is_quicker = proposed["step_s"] < searched["step_s"]
    assert answer["decided_by"] == ("hi_ppo" if is_quicker else "search")
    assert {row["kind"] for row in searched["answer"]["kinds"]} <= {
        row["kind"] for row in answer["kinds"]
    }


def test_the_search_is_the_default_and_says_so(asked):
    found = asked()

    assert found == asked("--deciders", "search")
    assert found["answer"]["decided_by"] == "search"


def test_the_page_names_both(capsys, folder):
    flags = ["--network", str(folder / "two.yaml"), *JOB[:-1], "--deciders", "both"]
    assert main(flags) == 0
    text = capsys.readouterr().out

    assert "found by " in text
    assert "Hi-PPO, whose proposals are bound" in text


def test_more_domains_than_the_policies_take_are_left_to_the_search(capsys, folder):
    flags = ["--network", str(folder / "many.yaml"), *JOB]

    assert main([*flags, "--deciders", "hi_ppo"]) == 2
    assert "policies: network must have at most 16 domains, got 65" in capsys.readouterr().err
