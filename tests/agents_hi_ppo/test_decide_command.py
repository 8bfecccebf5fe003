"""``python -m agents.decide --deciders hi_ppo --json``: the policies alone, as `des` confirms."""

import json
from dataclasses import replace

import pytest
from small_policies import THREE, placement_policy, policies, save_placement, slowed, with_memory

from agents.answer.config import Config
from agents.answer.reading import situation_of
from agents.decide import main
from agents.hi_ppo.decision_report import decide_by_policies
from agents.hi_ppo.explanation import explain
from agents.hi_ppo.placement.placement_checkpoint import placement_payload
from agents.ppo.checkpoint import save_checkpoint
from des import (
    Parallelism,
    Placement,
    Plan,
    Workload,
    build_workload,
    migration_s,
    read_topology,
    simulate,
)
from des.world.files.topology_writer import to_yaml

BY_POLICIES = ("--trainer", "ideal", "--model", "llama2_7b", "--deciders", "hi_ppo", "--json")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("policies") / "hi_ppo-0.safetensors"
    policies().save(path)
    return path


def written(path, topology) -> str:
    """A network in a file."""
    path.write_text(to_yaml(topology), encoding="utf-8")
    return str(path)


@pytest.fixture
def asked(checkpoint, capsys):
    """Run the command on a job of 32 layers and return its exit code, answer and warnings."""

    def run(*flags: str, network: str = "east_central_west", is_complete: bool = False):
        given = ["--network", network, "--checkpoint", str(checkpoint), *BY_POLICIES]
        given += [] if is_complete else ["--across-only"]
        return main([*given, *flags]), *capsys.readouterr()

    return run


def plan_of(answer, topology=THREE) -> Plan:
    """The plan across domains that an answer writes down."""
    names = [domain.name for domain in topology.domains]
    return Plan(placement=Placement.parse(answer["placement"], names), schedule=answer["schedule"])


def assert_refused(ended, *parts: str) -> None:
    """The command ended with one line that names all these parts."""
    code, out, err = ended
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert all(part in err for part in parts), err


def test_the_answer_is_a_plan_that_takes_as_long_as_it_says(asked):
    code, out, err = asked("--microbatches", "16")
    answer = json.loads(out)
    plan = plan_of(answer)
    found = simulate(THREE, build_workload("llama2_7b", num_microbatches=16), plan)

    assert code == 0
    assert err == "warning: " + err.removeprefix("warning: ")  # 16 microbatches are outside
    assert answer["iteration_s"] == found.makespan_s
    assert answer["utilisation"] == found.utilisation
    assert answer["communication_cost_bytes"] == found.communication_cost_bytes
    assert sum(stage["num_layers"] for stage in answer["stages"]) == 32
    assert [stage["domain"] for stage in answer["stages"]] == [
        THREE.domains[stage.domain].name for stage in plan.placement.stages
    ]
    assert (answer["level"], answer["is_fallback"], answer["change_s"]) == ("order", False, 0.0)
    assert set(answer["response_ms"]) == {"proposals", "move", "validation", "inter_domain"}


def test_equal_questions_get_equal_answers_but_for_timings(asked):
    answers = [json.loads(asked()[1]) for _ in range(2)]
    for answer in answers:
        assert answer.pop("response_ms")["inter_domain"] > 0.0

    assert answers[0] == answers[1]


def test_a_world_outside_the_range_is_warned_of_on_stderr_and_in_the_answer(asked, tmp_path):
    network = written(tmp_path / "slow.yaml", slowed(THREE, 0.2))
    code, out, err = asked(network=network)
    warnings = json.loads(out)["warnings"]

    assert code == 0
    assert asked("--microbatches", "32")[2] == ""  # the shipped world is within the range
    assert err == "".join(f"warning: {warning}\n" for warning in warnings)
    assert [warning.split()[0] for warning in warnings] == ["ratio", "bandwidth_bytes_per_s"]
    assert "the range that the policies were trained on" in warnings[0]


def test_the_placement_in_force_is_named_by_domains_and_what_leaving_it_costs(asked):
    """A preference for few bytes alone leaves three domains for one, at the price of `des`."""
    last = Plan(placement=Placement.parse("0*10,1*10,2*12"), schedule="gpipe")
    flags = ["--last", "East*10,Central*10,West*12", "--last-schedule", "gpipe"]
    flags += ["--restart-s", "2", "--objective", "0,0,1"]
    answer = json.loads(asked(*flags)[1])
    plan = plan_of(answer)
    change_s = migration_s(THREE, build_workload("llama2_7b"), last, plan, restart_s=2.0)

    assert answer["level"] == "order"
    assert len(answer["stages"]) == 1
    assert answer["change_s"] == pytest.approx(change_s)
    assert change_s > 2.0
    assert json.loads(asked(*flags, "--restart-only")[1])["change_s"] == 2.0


def test_an_explanation_says_what_limits_the_plan(asked):
    answer = json.loads(asked("--explain")[1])
    plan = plan_of(answer)
    expected = explain(THREE, build_workload("llama2_7b"), plan).as_dict()

    assert answer["why"] == json.loads(json.dumps(expected))
    assert "why" not in json.loads(asked()[1])


def test_a_bound_overrules_a_plan_that_is_too_slow_and_says_so(asked):
    """Who wants few bytes alone takes one domain, which takes much longer than three do."""
    few = ["--objective", "0,0,1"]
    free, quick = (json.loads(asked(*flags)[1]) for flags in (few, []))
    bounded = json.loads(asked(*few, "--most-slowdown", "0.05")[1])

    assert free["iteration_s"] > 1.05 * quick["iteration_s"] >= bounded["iteration_s"]
    kept = {name: free[name] for name in ("placement", "schedule", "iteration_s")}
    assert bounded["overruled"] == kept
    assert "overruled" not in free
    assert "overruled" not in json.loads(asked("--most-slowdown", "0.05")[1])


def test_the_answer_is_written_to_a_file_whole(asked, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old", encoding="utf-8")
    code, out, _ = asked("--out", str(path))

    assert (code, out) == (0, "")
    assert sum(stage["num_layers"] for stage in json.loads(path.read_text())["stages"]) == 32
    assert [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_a_file_in_place_stays_as_it_was_where_no_plan_fits(asked, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old", encoding="utf-8")
    network = written(tmp_path / "small.yaml", with_memory(THREE, 1e9))

    assert_refused(asked("--out", str(path), network=network), "must hold at most 8.0 GB, got")
    assert path.read_text() == "old"


def test_a_base_tells_the_network_now_from_its_base_figures(asked, tmp_path):
    network = written(tmp_path / "now.yaml", slowed(THREE, 0.5, "West"))
    code, out, err = asked("--base", "east_central_west", network=network)

    assert (code, err) == (0, "")  # the range is that of base figures
    assert json.loads(out)["warnings"] == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "llama9"], "llama9"),
        (["--last", "East*10,West*10"], "32 layers of llama2_7b, got 20"),
        (["--last", "East*16,Mars*16"], "Mars"),
        (["--last", "East*16,West*16", "--last-schedule", "2f2b"], "2f2b"),
        (["--base", "four_uneven"], "--base must have the domains East, Central, West, got North"),
        (["--objective", "0,0,0"], "three weights of at least 0 such as 0.6,0.2,0.2"),
        (["--objective", "1"], "objective: must be time, cost, or three weights"),
        (["--objective", "nan,0,1"], "three weights of at least 0 such as 0.6,0.2,0.2"),
        (["--restart-s", "-1"], "restart_s"),
        (["--epoch-s", "-300"], "epoch_s must be positive and finite, got -300.0"),
        (["--most-slowdown", "0"], "most_slowdown must be positive and finite, or None"),
        (["--microbatches", "0"], "microbatches must be a whole number from 1"),
        (["--network", "nowhere.yaml"], "nowhere.yaml"),
        (["--checkpoint", "none.safetensors"], "checkpoint none.safetensors: must be an intact"),
        (["--out", "no/such/folder/plan.json"], "no/such/folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(asked, flags, message):
    assert_refused(asked(*flags), message)


def test_checkpoints_that_are_something_else_are_one_line_and_exit_code_2(asked, tmp_path):
    """Of another kind, damaged, and of another architecture."""
    kind, damaged, other = (
        tmp_path / f"{name}.safetensors" for name in ("kind", "damaged", "other")
    )
    save_placement(kind, placement_policy())
    policies().save(damaged)
    damaged.write_bytes(damaged.read_bytes()[:1000])
    parts = placement_payload(placement_policy(width=32))
    sizes = placement_payload(placement_policy())["architecture"]
    wrong = {"kind": "hi_ppo", "placement": {**parts, "architecture": sizes}, "training": {}}
    save_checkpoint(other, wrong)
    for path, message in (
        (kind, "kind must be hi_ppo"),
        (damaged, "must be an intact"),
        (other, "must hold an architecture and parameters of its sizes"),
    ):
        assert_refused(asked("--checkpoint", str(path)), f"{path.name}: ", message)


def test_a_library_call_decides_as_the_command_does(asked, checkpoint):
    situation = situation_of(Config(network="east_central_west", model="llama2_7b"))
    report = decide_by_policies(situation, policies(), is_warm=False).as_dict(situation)

    answer = json.loads(asked()[1])
    assert {**answer, "response_ms": 0} == {**report, "response_ms": 0}


def completed(answer, topology) -> tuple[Plan, Workload]:
    """The complete plan that an answer writes down, and the job as it runs it."""
    inside = {stage["domain"]: stage for stage in answer["stages"]}
    parallelism = tuple(
        replace(
            Parallelism.parse(inside[domain.name]["parallelism"]),
            sharding="optimiser" if inside[domain.name]["shard_optimiser"] else "none",
        )
        if domain.name in inside
        else Parallelism()
        for domain in topology.domains
    )
    workload = build_workload(
        "llama2_7b",
        num_microbatches=32 // answer["microbatch_size"],
        microbatch_size=answer["microbatch_size"],
        recomputation=answer["recomputation"],
    )
    return replace(plan_of(answer, topology), parallelism=parallelism), workload


def test_a_complete_answer_is_a_plan_that_takes_as_long_as_it_says(asked):
    """GPUs of a domain are all alike here, so its inner network is that of any binding."""
    code, out, _ = asked("--microbatches", "32", is_complete=True)
    answer = json.loads(out)
    plan, workload = completed(answer, THREE)
    found = simulate(THREE, workload, plan)

    assert code == 0
    assert found.fits_memory
    assert answer["iteration_s"] == found.makespan_s
    assert answer["utilisation"] == found.utilisation
    across = json.loads(asked("--microbatches", "32")[1])
    assert answer["across_iteration_s"] == across["iteration_s"]
    assert answer["placement"] == across["placement"]
    for stage in answer["stages"]:
        shape = Parallelism.parse(stage["parallelism"])
        assert stage["decided_by"] == "local agent"
        assert len(set(stage["gpus"])) == len(stage["gpus"]) == shape.num_gpus
        assert set(stage["gpus"]) <= set(range(8))
    parts = answer["response_ms"]
    summed = parts["inter_domain"] + parts["intra_domain"] + parts["complete_validation"]
    assert parts["total"] == pytest.approx(summed)


def test_the_answer_across_domains_alone_has_nothing_of_what_is_inside(asked):
    answer = json.loads(asked()[1])

    assert not {"microbatch_size", "recomputation", "across_iteration_s"} & set(answer)
    assert all(set(stage) == {"domain", "first_layer", "num_layers"} for stage in answer["stages"])


def test_domains_of_more_than_8_gpus_are_decided_by_rule_and_the_answer_says_so(asked):
    """`four_uneven` has domains of 8, 12 and 16 GPUs."""
    code, out, err = asked(network="four_uneven", is_complete=True)
    answer = json.loads(out)
    world = read_topology("four_uneven")
    plan, workload = completed(answer, world)

    assert code == 0
    assert simulate(world, workload, plan).fits_memory
    by_rule = {stage["domain"] for stage in answer["stages"] if stage["decided_by"] == "rule"}
    large = {domain.name for domain in world.domains if domain.num_gpus > 8}
    assert by_rule == large & {stage["domain"] for stage in answer["stages"]}
    for name in by_rule:
        assert any(name in warning and "by rule" in warning for warning in answer["warnings"])
        assert name in err
    for stage in answer["stages"]:
        if stage["domain"] in by_rule:
            shape = Parallelism.parse(stage["parallelism"])
            num_gpus = world.domains[world.index_of[stage["domain"]]].num_gpus
            assert shape.data == 1
            assert num_gpus % shape.tensor == 0
            assert shape.pipeline == min(num_gpus // shape.tensor, stage["num_layers"])
