"""Launch files read back: the plan that a trainer would run with them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import read_document
from agents.trainers.megatron_arguments import model_lines
from des import Plan, Topology, Workload
from des.base.strict_json import parse_json
from des.job.architecture import Architecture
from scenarios.iteration.megatron_command import read_megatron
from scenarios.iteration.megatron_plan import megatron_workload, paths_of_ranks, plan_of_paths

PLAN, HOSTS, ARGUMENTS = "plan.json", "hosts.txt", "args.txt"
"""Files of a launch: the complete plan with its world, hosts in the order of their ranks, and the
arguments of Megatron-LM."""

HOST_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,252}[A-Za-z0-9])?"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchHost:
    """A host with its node rank in a launch, and the GPUs of it that work, from its first on."""

    rank: int
    name: str
    num_gpus: int
    site: str

    def __str__(self) -> str:
        return f"{self.rank} {self.name} {self.num_gpus} {self.site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedPlan:
    """A plan as files of a launch say it, and the complete plan that they were written for."""

    said: BoundPlan
    workload: Workload
    plan: Plan


def file_of(files: Mapping[str, str], name: str) -> str:
    """Return the text of a file of a launch.

    Raises
    ------
    ValueError
        If it is missing.
    """
    if name not in files:
        raise ValueError(f"launch: must have a file {name}, got {', '.join(files) or 'none'}")
    return files[name]


def architecture_of_job(workload: Workload) -> Architecture:
    """Return the model of a workload.

    Raises
    ------
    ValueError
        If it has none.
    """
    if workload.shape is None:
        raise ValueError(f"launch: workload {workload.name} must be of a model, got none")
    return workload.shape.architecture


def read_hosts(text: str) -> tuple[LaunchHost, ...]:
    """Read hosts in the order of their ranks.

    Raises
    ------
    ValueError
        Naming the line, what is allowed and what came.
    """
    hosts: list[LaunchHost] = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(rf"([0-9]{{1,6}}) ({HOST_NAME}) ([0-9]{{1,6}}) (.+)", line)
        if match is None or int(match[1]) != len(hosts) or not int(match[3]):
            raise ValueError(
                f"{HOSTS}: line {len(hosts)} must be its number, a host, its GPUs and its site; "
                f"got {line!r}"
            )
        if match[2] in (one.name for one in hosts):
            raise ValueError(f"{HOSTS}: each host must be given once, got {match[2]} twice")
        hosts.append(
            LaunchHost(rank=len(hosts), name=match[2], num_gpus=int(match[3]), site=match[4])
        )
    return tuple(hosts)


def sites_of_ranks(text: str, topology: Topology) -> list[int]:
    """Domain of each rank, host by host.

    Raises
    ------
    ValueError
        If a site is none of the world's.
    """
    hosts = read_hosts(text)
    for host in hosts:
        if host.site not in topology.index_of:
            raise ValueError(
                f"{HOSTS}: sites must be some of {', '.join(topology.index_of)}; got {host.site!r}"
            )
    return [topology.index_of[host.site] for host in hosts for _ in range(host.num_gpus)]


def said_plan(files: Mapping[str, str]) -> BoundPlan:
    """Return the complete plan of a launch.

    Raises
    ------
    ValueError
        If it is missing or wrong.
    """
    return read_document(parse_json(file_of(files, PLAN)))


def with_expert_skew(plan: Plan, said: Plan) -> Plan:
    """Return a plan with loads of experts as they were said, which no trainer's file holds."""
    return replace(
        plan,
        parallelism=tuple(
            replace(own, expert_skew=given.expert_skew) if own.expert > 1 else own
            for own, given in zip(plan.parallelism, said.parallelism, strict=True)
        ),
    )


def read_megatron_launch(files: Mapping[str, str]) -> LaunchedPlan:
    """Read the plan of the arguments of Megatron-LM on the hosts that are given.

    Raises
    ------
    ValueError
        Naming the file, what is allowed and what came.
    """
    said = said_plan(files)
    own, lines = architecture_of_job(said.workload), file_of(files, ARGUMENTS).splitlines()
    length = said.workload.shape.sequence if said.workload.shape else 0
    model = list(model_lines(own, said.workload.num_layers, length))
    if lines[: len(model)] != model:
        first = next(one for one, line in zip(model, [*lines, ""], strict=False) if one != line)
        raise ValueError(
            f"{ARGUMENTS}: must begin with the flags of {own.name} in {PLAN}; {first} is not there"
        )
    command = read_megatron("\n".join(lines[len(model) :]))
    topology = said.topology
    paths, data = paths_of_ranks(
        sites_of_ranks(file_of(files, HOSTS), topology),
        group=command.tensor * command.context,
        pipeline=command.pipeline,
        replica_order=command.replica_order,
    )
    size = command.micro_batch_size * data
    if command.global_batch_size % (size * len(paths)):
        raise ValueError(
            f"{ARGUMENTS}: --global-batch-size must be a multiple of micro-batch size x "
            f"data-parallel size, {size * len(paths)}; got {command.global_batch_size}"
        )
    return LaunchedPlan(
        said=said,
        workload=megatron_workload(command, own, size),
        plan=with_expert_skew(plan_of_paths(command, topology, paths, data), said.plan),
    )
