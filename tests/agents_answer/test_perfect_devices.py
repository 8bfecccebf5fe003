"""``python -m agents.decide --trainer ideal``: every domain is one device that loses nothing."""

import io
import json
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest

from agents.decide import decide, main
from agents.decision.plan_document import read_document
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.trainers.ideal import IDEAL
from des import Placement, Plan, Topology, read_topology, simulate
from des.world.files.topology_writer import to_yaml

WORLD = replace(read_topology("east_central_west"), movement=None)
JOB = TrainingJob(model="llama2_7b", num_sequences=8)
FLAGS = ("--trainer", "ideal", "--model", "llama2_7b", "--microbatches", "8")
ALONE = ("--deciders", "hi_ppo", "--json")


@pytest.fixture
def asked(capsys):
    """Run the command and return its exit code and what it writes."""

    def run(*flags: str):
        return main(["--network", "east_central_west", *FLAGS, *flags]), *capsys.readouterr()

    return run


def test_the_plan_says_nothing_of_gpus_and_takes_as_long_as_it_says(asked):
    code, out, err = asked("--json")
    document = json.loads(out)
    bound = read_document(document)

    assert (code, err) == (0, "")
    assert (bound.trainer, bound.plan.parallelism) == ("ideal", ())
    assert simulate(WORLD, bound.workload, bound.plan).makespan_s == bound.step_s
    assert bound.step_s == min(row["step_s"] for row in document["answer"]["kinds"])


def test_the_page_says_that_no_trainer_has_such_devices_and_python_has_the_same(asked):
    page = asked()[1]

    assert "every domain counts as one perfect device, which no trainer has" in page
    assert "server/gpu" not in page
    found = decide(WORLD, JOB, trainer="ideal")
    assert f"{found}\n" == page
    assert found._repr_html_().startswith("<h4>Answer: ")


@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_no_pipeline_with_a_stage_a_domain_is_quicker(factor):
    """Of all orders of domains and splits by four layers, in microbatches of a sequence."""
    ones = np.ones(len(WORLD.links))
    world, workload = WORLD.scaled(factor * ones, ones), JOB.workload(1)
    found = search_bound(PlanRequest(topology=world, job=JOB, trainer=IDEAL)).best
    names = "1f1b_4x", "zb_h1_4x"

    for count in (1, 2, 3):
        cuts = [range(4, 32, 4)] * (count - 1)
        for order in permutations(range(3), count):
            for inner in _rising(cuts):
                layers = [after - before for before, after in pairwise((0, *inner, 32))]
                for name in names:
                    plan = Plan(placement=Placement.contiguous(order, layers), schedule=name)
                    assert found.bound.step_s <= simulate(world, workload, plan).makespan_s


def _rising(cuts: list[range]) -> list[tuple[int, ...]]:
    """Rising choices of one of each range."""
    found: list[tuple[int, ...]] = [()]
    for cut in cuts:
        found = [(*one, at) for one in found for at in cut if not one or at > one[-1]]
    return found


def test_twice_the_gpus_take_half_the_time():
    """Sites that differ in nothing else are not alike."""
    one = WORLD.domains[0]
    sites = tuple(replace(one, name=f"{count}", num_gpus=count) for count in (8, 16))
    world = replace(WORLD, domains=sites, links=(), routing_latencies_s=None)
    found = search_bound(PlanRequest(topology=world, job=JOB, trainer=IDEAL)).best
    half = replace(world, domains=sites[:1])
    other = search_bound(PlanRequest(topology=half, job=JOB, trainer=IDEAL)).best

    assert found.bound.plan.placement == Placement.parse("1*32")
    assert 2.0 * found.bound.step_s == pytest.approx(other.bound.step_s)


def test_a_network_in_two_parts_is_planned_in_one_of_them():
    """Two pairs of domains, no link between the pairs."""
    names = "A0", "B0", "A1", "B1"
    links = [
        replace(WORLD.links[0], source=source, target=target)
        for source, target in (("A0", "B0"), ("B0", "A0"), ("A1", "B1"), ("B1", "A1"))
    ]
    world = Topology.of([replace(WORLD.domains[0], name=name) for name in names], links)
    found = search_bound(PlanRequest(topology=world, job=JOB, trainer=IDEAL)).best

    assert {names[site][1] for chain in found.candidate.chains for site in chain} in ({"0"}, {"1"})


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_world_of_one_domain_without_links_has_an_answer():
    world = Topology.of([WORLD.domains[0]], [])

    assert str(decide(world, JOB, trainer="ideal")).startswith("Answer: single domain\n")


def test_a_stream_answers_each_line_and_continues_after_a_wrong_one(capsys, monkeypatch):
    lines = ['{"loads": "East=0.5"}', "", '{"families": "all"}', '{"json": true}', "{}"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    code = main(["--network", "east_central_west", *FLAGS, "--stream"])
    loaded, wrong, fixed, plain = map(json.loads, capsys.readouterr().out.splitlines())

    assert code == 2
    assert loaded["step_s"] > plain["step_s"]
    assert (wrong["line"], "families" in wrong["error"]) == (3, True)
    assert "json must be given on the command line" in fixed["error"]


def test_a_job_that_fits_nowhere_is_refused_with_what_is_lacking(capsys, tmp_path):
    path = tmp_path / "small.yaml"
    small = tuple(replace(one, gpu_memory_bytes=1e9) for one in WORLD.domains)
    path.write_text(to_yaml(replace(WORLD, domains=small)), encoding="utf-8")

    assert main([*FLAGS, "--network", str(path)]) == 2
    assert "no plan fits llama2_7b on 3 sites" in capsys.readouterr().err
    assert main([*FLAGS, "--network", str(path), "--deciders", "hi_ppo"]) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--last", "East*32"), "--last must be a plan document"),
        (("--last-schedule", "1f1b"), "--last-schedule must be given with --trainer ideal"),
        (("--across-only",), "--across-only must be given with --trainer ideal --deciders hi_ppo"),
        (("--loads", "Mars=0.5"), "unknown domain 'Mars'"),
        ((*ALONE, "--objective", "cost"), "--objective must be time or weights"),
        ((*ALONE, "--at-most", "90 s"), "--at-most must not be given with --deciders hi_ppo"),
        ((*ALONE, "--last", "East*32 | West*32"), "--last must be one pipeline"),
        ((*ALONE, "--last", "East*10"), "32 layers of llama2_7b, got 10"),
        ((*ALONE, "--last", "East*32 |"), "--last: placement: each item must be"),
        ((*ALONE, "--last-schedule", "1f1b"), "--last must be given with --last-schedule"),
        ((*ALONE, "--most-slowdown", "0"), "most_slowdown must be positive"),
        (
            (*ALONE, "--across-only", "--local-checkpoint", "a.safetensors"),
            "--local-checkpoint must not be",
        ),
        (("--out", "no_such_folder/page.txt"), "--out must be a file in a folder that exists"),
        (("--out", "page.txt", "--stream"), "--out must not be given with --stream, got both"),
        (
            ("--checkpoint", "some.safetensors"),
            "--checkpoint must not be given with --deciders search",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(asked, flags, message):
    code, out, err = asked(*flags)

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
