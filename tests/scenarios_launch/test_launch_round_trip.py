"""Files of a launch say the plan: read back, they take its time to the last bit."""

from functools import cache
from itertools import product

import pytest
from launch_cases import drawn_bound

from agents.trainers.plan_checks import launches_of
from agents.trainers.table import trainer_named
from scenarios.iteration.launch_folder import HOSTS, read_hosts
from scenarios.iteration.plan_file import launch_plan
from scenarios.launch.hosts import devices_of
from scenarios.launch.launch_files import launch_files

CASES = list(product(("megatron", "torchtitan"), range(24)))


@cache
def launched(trainer, seed):
    """A drawn plan and its launch."""
    bound = drawn_bound(trainer, seed)
    return bound, launch_files(bound)


@pytest.mark.parametrize(("trainer", "seed"), CASES)
def test_files_read_back_take_the_time_of_the_plan_to_the_last_bit(trainer, seed):
    bound, launch = launched(trainer, seed)

    assert launch.step_s == bound.step_s
    assert launch.unsaid == ()
    read = launch_plan(launch.files).scenario
    assert read.plan.stages_of_replicas == bound.plan.stages_of_replicas
    assert read.workload.tokens_per_iteration == bound.workload.tokens_per_iteration


def site_of_stages(bound, replicas, *, is_replica_order):
    """Site of each rank by the trainers' rule: tensor and context, then data, then the pipeline."""
    own = bound.plan.parallelism[replicas[0][0].domain]
    group, paths = own.tensor * own.context, [devices_of(one)[0] for one in replicas]
    copies = [path for path in paths for _ in range(own.data)]
    in_order = (
        [device for path in copies for device in path]
        if is_replica_order
        else [path[stage] for stage in range(len(paths[0])) for path in copies]
    )
    return [bound.topology.domains[domain].name for domain, _ in in_order for _ in range(group)]


@pytest.mark.parametrize(("trainer", "seed"), CASES)
def test_ranks_of_each_stage_are_on_hosts_of_its_site(trainer, seed):
    bound, launch = launched(trainer, seed)
    files = launch.files
    launches = launches_of(trainer_named(trainer), bound.plan)

    for number, replicas in enumerate(launches):
        folder = "" if len(launches) == 1 else f"replica-{number}/"
        hosts = read_hosts(files[f"{folder}{HOSTS}"])
        found = [host.site for host in hosts for _ in range(host.num_gpus)]
        is_replica_order = "--use-tp-pp-dp-mapping" in files.get("args.txt", "")
        assert found == site_of_stages(bound, replicas, is_replica_order=is_replica_order)


def test_the_drawn_plans_are_of_every_kind():
    """Pipelines, copies, chunks, orders from files, and both kinds of DiLoCo."""
    bounds = [launched(*case)[0] for case in CASES]
    texts = [launched(*case)[1].files for case in CASES]

    assert {type(bound.plan.synchronisation).__name__ for bound in bounds} == {
        "DiLoCo",
        "StreamingDiLoCo",
    }
    assert {len(bound.plan.placements) for bound in bounds} >= {1, 2, 3}
    args = "".join(files.get("args.txt", "") for files in texts)
    for flag in ("use-tp-pp-dp-mapping", "num-experts", "microbatch-group-size", "recompute-"):
        assert f"--{flag}" in args
    assert any("schedule.csv" in files for files in texts)
    assert any("replica-1/config.toml" in files for files in texts)
