"""Queues as Blox simulates them: the cases that come with EastWest, and rules that they lack."""

import dataclasses
import json

import pytest
from command_output import assert_refused
from queues import finishes, policy, queued

from agents.cluster.admission import LoadThreshold
from agents.cluster.key_orderings import LeastAttained
from des.cluster.node_set import ClusterPlace, NodeSet
from des.cluster.running import run
from des.cluster.world import BloxRules, World
from scenarios.reproduce.blox import compare
from scenarios.reproduce.blox_cases import read_blox_cases
from scenarios.reproduce.cases import PUBLISHED
from scenarios.reproduce.command import main

FOLDER = PUBLISHED / "blox"


@pytest.fixture(scope="module")
def frame():
    return compare(read_blox_cases(FOLDER)).set_index("case")


def blox(jobs, parts=None, *, joins=(0.0,), gpus=4, **rules):
    """History of jobs under the rules of Blox, in rounds of 10 s."""
    nodes = tuple(
        ClusterPlace(name=f"n{number}", num_gpus=gpus, joins_at_s=at)
        for number, at in enumerate(joins)
    )
    world = World(nodes=NodeSet(nodes=nodes), jobs=jobs, round_s=10.0, blox=BloxRules(**rules))
    return run(world, parts or policy())


def test_every_job_round_and_total_is_that_of_blox(frame):
    assert len(frame) == 6
    assert frame[["unequal_jobs", "unequal_rounds", "unequal_totals"]].sum().tolist() == [0, 0, 0]


def test_the_accidents_of_blox_cost_what_another_program_found(frame):
    """A short program of others, without the two accidents: -14, -11, -5, -9 and -5 %."""
    changes = (100 * frame["sound_change"]).round().to_dict()

    assert changes == {
        "fifo_multi_gpu_wide": -14,
        "las_multi_gpu": -11,
        "srtf_multi_gpu": -5,
        "las_load_threshold_1_2": -9,
        "optimus_artifact_load3": -5,
        "generator_fifo_16gpu": 0,
    }


def test_a_changed_figure_is_found(tmp_path, capsys):
    """One round and one time off by a little are a difference each, and exit code 1."""
    case = json.loads((FOLDER / "las_multi_gpu.json").read_text("utf-8"))
    case["expected"]["jobs"][3]["finish_s"] += 300
    case["expected"]["series"][9]["free_gpus"] += 1
    (tmp_path / "las.json").write_text(json.dumps(case), "utf-8")

    assert main(["blox", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert "FAILED: unequal jobs of 40: 1, allowed at most 0" in shown
    assert "FAILED: unequal rounds of 103: 1, allowed at most 0" in shown
    assert "met: unequal totals" in shown


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("scheduler", "lass", "unknown scheduler 'lass'; did you mean 'las'"),
        ("admission", {"kind": "load_threshold"}, "threshold must be given"),
        ("admission", {"kind": "all"}, "admission.kind"),
    ],
)
def test_a_wrong_case_is_one_line(tmp_path, capsys, field, value, message):
    case = json.loads((FOLDER / "las_multi_gpu.json").read_text("utf-8"))
    case["policy"][field] = value
    (tmp_path / "las.json").write_text(json.dumps(case), "utf-8")
    out = tmp_path / "out"

    argv = ["blox", "--cases", str(tmp_path), "--out", str(out)]
    assert_refused(main, argv, message, capsys, unwritten=out)


def test_two_jobs_of_one_number_are_one_line(tmp_path, capsys):
    case = json.loads((FOLDER / "las_multi_gpu.json").read_text("utf-8"))
    case["jobs"][1]["id"] = case["jobs"][4]["id"]
    (tmp_path / "las.json").write_text(json.dumps(case), "utf-8")
    out = tmp_path / "out"

    argv = ["blox", "--cases", str(tmp_path), "--out", str(out)]
    message = rf"las.json: jobs: id must be that of one job each, got {case['jobs'][4]['id']} in 2"
    assert_refused(main, argv, message, capsys, unwritten=out)


def test_an_empty_folder_is_refused(tmp_path, capsys):
    out = tmp_path / "out"
    argv = ["blox", "--cases", str(tmp_path), "--out", str(out)]
    assert_refused(main, argv, "must hold cases", capsys, unwritten=out)


def test_a_whole_number_of_rounds_costs_no_further_one():
    history = blox(queued((0, 1, 20), (0, 1, 21)))
    assert finishes(history) == {0: 20, 1: 30}


def test_a_rate_and_long_iterations_count_in_iterations():
    """25 s at a rate of 1.4 take two rounds; so do 25 s of iterations of 5 s."""
    assert finishes(blox(queued((0, 1, 25)), rate=1.4)) == {0: 20}
    assert finishes(blox(queued((0, 1, 25), iteration_s=5.0), rate=1.4)) == {0: 20}


def test_a_job_fits_only_where_whole_free_nodes_make_its_number():
    """Job 0 leaves 3 free GPUs: 3 + 4 jumps over the 4 of job 1, though 7 are free."""
    jobs = queued((0, 1, 30), (0, 4, 10))
    assert finishes(blox(jobs, joins=(0.0, 0.0))) == {0: 30, 1: 40}
    assert finishes(blox(jobs, joins=(0.0, 0.0), takes_exactly=False)) == {0: 30, 1: 10}


def test_a_consolidated_job_takes_a_node_with_exactly_its_number():
    jobs = queued((0, 2, 30), (0, 2, 10), consolidated=True)
    assert finishes(blox(jobs, starves_after_s=50.0)) == {}
    jobs = (dataclasses.replace(jobs[0], consolidated=False), jobs[1])
    assert finishes(blox(jobs)) == {0: 30, 1: 10}


def test_nodes_that_join_later_count_from_their_round_on():
    parts = policy(admission=LoadThreshold(threshold=1.0))
    history = blox(queued((0, 4, 20), (0, 1, 10), (0, 1, 10)), parts, joins=(0.0, 15.0))

    assert {job.job_id: job.admitted_s for job in history.jobs} == {0: 0, 1: 0, 2: 20}
    assert [state.free_gpus for state in history.rounds] == [4, 0, 8, 8]


def test_a_job_that_starves_goes_first_for_ever():
    """Job 0 attains more than the short ones that keep coming; after 40 s it runs to its end.

    It is suspended at 10 s, and the wait is 0 until that round has ended: from 20 s to 60 s.
    """
    rows = [(0, 4, 50), *((10 * number, 4, 10) for number in range(1, 12))]
    parts = policy(LeastAttained())
    usual = finishes(blox(queued(*rows), parts))
    starving = finishes(blox(queued(*rows), parts, starves_after_s=40.0))

    assert usual[0] == 160
    assert starving[0] == 100


def test_tracked_jobs_must_be_among_those_that_arrive():
    world = World(
        nodes=NodeSet.equal(1, 4),
        jobs=queued((0, 1, 10)),
        tracked_ids=(0, 2),
        round_s=10.0,
        blox=BloxRules(),
    )
    with pytest.raises(ValueError, match="of jobs that arrive, got 0 to 2, of which 2 do not"):
        run(world, policy())


def test_a_queue_that_can_never_move_stops():
    history = blox(queued((0, 5, 10), (0, 1, 10)), starves_after_s=50.0)

    assert history.jobs == ()
    assert history.unfinished == (0, 1)
