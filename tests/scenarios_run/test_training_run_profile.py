"""Training runs with layer times from a profile: of the world, and of the plan that stays."""

from importlib.resources import files

import pytest

from des.worlds import WORLDS
from scenarios.run.training_run_config import Config
from scenarios.run.training_run_scenario import load_training_run

FOLDER = files("scenarios.reproduce") / "data" / "sailor"


def config(**changes: object) -> Config:
    """OPT-350M on the shipped world, whose GPUs take the times of GH200."""
    given: dict[str, object] = {
        "network": str(WORLDS["east_central_west"]),
        "model": str(FOLDER / "opt_350m.yaml"),
        "sequence_length": 2048,
        "profile": (str(FOLDER / "opt_350m_profile.csv"),),
        "profile_gpu": "gh200",
        "trainer": "ideal",
    }
    return Config(**(given | changes))


def test_all_domains_have_the_profile():
    domains = load_training_run(config()).topology.domains

    assert {one.layer_times for one in domains} == {"profile opt_350m_profile.csv of gh200"}
    assert {one.attainable_fraction for one in domains} == {1.0}


def test_flags_of_a_profile_alone_are_refused():
    with pytest.raises(ValueError, match=r"^profile_gpu needs a profile, got none$"):
        load_training_run(config(profile=()))
