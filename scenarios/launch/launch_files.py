"""All files of a launch, verified: the plan that is read from them takes the same time."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib.resources import files as resources
from math import ceil
from pathlib import Path

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import write_document
from agents.judge.nccl_sockets import NcclSettings, SiteBorder, nccl_steps_s, site_borders
from agents.trainers.table import trainer_named
from des import Plan, simulate
from scenarios.iteration.launch_folder import HOSTS, PLAN, LaunchHost
from scenarios.iteration.plan_file import LAUNCHES, FilePlan, file_plan, launch_plan
from scenarios.launch.hosts import SiteHosts, hosts_of_sites
from scenarios.launch.launch_page import Launch, LaunchPage
from scenarios.launch.trainer_files import megatron_files, reference_files, torchtitan_files

_Writer = Callable[
    [BoundPlan, Mapping[int, SiteHosts]],
    tuple[dict[str, str], dict[str, tuple[LaunchHost, ...]]],
]
WRITERS: Mapping[str, _Writer] = {
    "megatron": megatron_files,
    "torchtitan": torchtitan_files,
    "reference": reference_files,
}
"""Writers of a trainer's own files and the hosts of each launch, by its folder."""

MOST_DIFFERENCE = 0.01
"""Largest relative difference between the times of a plan and of what files say of it."""

_MOST_FLOWS = 128
"""Most parallel flows of iperf3."""


def launch_files(bound: BoundPlan, hosts: Path | None = None) -> Launch:
    """Write the files of a launch, read them back, and simulate what they say.

    Raises
    ------
    ValueError
        If no files are written for the trainer, it cannot be told the plan, the time of what the
        files say is another by more than 1 %, or hosts are wrong.
    """
    require_writer(bound.trainer)
    borders, of_sites = site_borders(bound), hosts_of_sites(bound, hosts)
    settings = NcclSettings.of(borders)
    own, ranks = WRITERS[bound.trainer](bound, of_sites)
    document = json.dumps(write_document(bound), indent=2, allow_nan=False) + "\n"
    own = {PLAN: document} | own
    for folder, in_order in ranks.items():
        own[f"{folder}{HOSTS}"] = _hosts_text(in_order)
    read = launch_plan(own)
    launch = Launch(
        bound=bound,
        files=own,
        step_s=_step_s(read),
        nccl_steps_s=nccl_steps_s(bound),
        unsaid=tuple(_unsaid(bound.plan, read.scenario.plan)),
    )
    _require_equal_time(launch)
    page = LaunchPage(
        launch=launch,
        ranks=ranks,
        borders=borders,
        settings=settings,
        has_placeholders=hosts is None,
    )
    common = {
        "README.md": page.text(_script("README.txt")),
        "borders.tsv": _borders_text(bound, borders, settings, of_sites),
        "preflight.sh": _script("preflight.sh"),
        "nccl_rate.sh": _script("nccl_rate.sh"),
    }
    scripts = _scripts(bound.trainer, ranks, settings)
    return replace(launch, files=dict(launch.files) | common | scripts)


def for_trainer(bound: BoundPlan, trainer: str) -> BoundPlan:
    """Return a plan for another trainer, which waits for its sends as that one does.

    Raises
    ------
    ValueError
        If the trainer cannot run it, or no files are written for it.
    """
    if trainer == bound.trainer:
        return bound
    require_writer(trainer)
    sends = trainer_named(trainer).sends_under(bound.plan.schedule)
    plan = replace(bound.plan, sends=sends)
    found = replace(bound, plan=plan, trainer=trainer)  # refuses what the trainer cannot run
    return replace(found, step_s=_step_s(file_plan(found, "plan for another trainer")))


def _step_s(read: FilePlan) -> float:
    own = read.scenario
    return read.step_s(simulate(own.topology, own.workload, own.plan, own.corrections))


def require_writer(trainer: str) -> None:
    """Refuse a trainer for which no files are written.

    Raises
    ------
    ValueError
        Naming those for which they are.
    """
    if trainer not in WRITERS or trainer not in LAUNCHES:
        raise ValueError(
            f"launch: trainer must be one of {', '.join(WRITERS)}, for which files are written; "
            f"got {trainer_named(trainer).name}"
        )


def _require_equal_time(launch: Launch) -> None:
    difference = launch.step_s / launch.bound.step_s - 1.0
    if abs(difference) > MOST_DIFFERENCE:
        raise ValueError(
            f"launch: files of {trainer_named(launch.bound.trainer).title} must say all that the "
            f"time depends on, to {MOST_DIFFERENCE:.0%}; they cannot say "
            f"{', '.join(launch.unsaid) or 'the job'}: {launch.step_s!r} s a step in place of "
            f"{launch.bound.step_s!r}, {difference:+.1%}"
        )


def _unsaid(plan: Plan, read: Plan) -> Iterator[str]:
    """Fields of a plan that are others in files; of domains in use, and by what stages do."""
    for field in fields(plan):
        name, given, found = field.name, getattr(plan, field.name), getattr(read, field.name)
        if name in ("placement", "replicas", "parallelism", "shares"):
            continue
        if name in ("schedule", "sends") and all(len(own) == 1 for own in plan.stages_of_replicas):
            continue
        if given != found:
            yield f"{name} {given} (files: {found})"
    if plan.stages_of_replicas != read.stages_of_replicas:
        yield "stages of its devices"
    for stages in plan.stages_of_replicas:
        for domain in dict.fromkeys(stage.domain for stage in stages):
            own, other = plan.parallelism_of(domain), read.parallelism_of(domain)
            if own is not None and other is not None and own.tensor == 1:
                own = replace(own, sequence_parallel=other.sequence_parallel)
            if own != other:
                yield f"parallelism {own} (files: {other})"


def _hosts_text(hosts: Sequence[LaunchHost]) -> str:
    lines = ("# node rank, host, GPUs, site", *map(str, hosts))
    return "".join(f"{line}\n" for line in lines)


def _borders_text(
    bound: BoundPlan,
    borders: Sequence[SiteBorder],
    settings: NcclSettings,
    hosts: Mapping[int, SiteHosts],
) -> str:
    """Rows of a table: sites, first hosts, bytes under way of a flow, Gbit/s, and flows."""
    lines = ["# source, target, hosts, bytes of a buffer, Gbit/s, flows"]
    for one in borders:
        ends = (hosts[bound.topology.index_of[site]].names[0] for site in (one.source, one.target))
        sockets = settings.num_threads * settings.sockets_per_thread
        flows = min(_MOST_FLOWS, one.num_pairs * sockets)
        buffer, gbit = ceil(2.0 * one.in_flight_bytes / flows), one.bandwidth_bytes_per_s * 8e-9
        lines.append("\t".join((one.source, one.target, *ends, f"{buffer}\t{gbit:g}\t{flows}")))
    return "".join(f"{line}\n" for line in lines)


def _script(name: str) -> str:
    return (resources("scenarios.launch") / "scripts" / name).read_text("utf-8")


def _scripts(
    trainer: str, ranks: Mapping[str, Sequence[LaunchHost]], settings: NcclSettings
) -> dict[str, str]:
    """Programs and settings of each launch, and a SLURM script for each of its sites."""
    found: dict[str, str] = {}
    for folder, hosts in ranks.items():
        found[f"{folder}launch.sh"] = _script(f"{trainer}.sh")
        found[f"{folder}nccl.env"] = settings.text()
        if trainer == "torchtitan":
            found[f"{folder}eastwest_config.py"] = _script("eastwest_config.txt")
        for site in dict.fromkeys(host.site for host in hosts):
            name = re.sub(r"[^A-Za-z0-9._-]", "_", site)
            while f"{folder}{name}.sbatch" in found:
                name += "_"
            own = [host for host in hosts if host.site == site]
            found[f"{folder}{name}.sbatch"] = _slurm(name, own)
    if "" not in ranks:
        found["lighthouse.sh"] = _script("lighthouse.sh")
    return found


def _slurm(name: str, hosts: Sequence[LaunchHost]) -> str:
    text = _script("site.sbatch")
    for key, value in (
        ("NAME", f"eastwest-{name}"),
        ("NODES", str(len(hosts))),
        ("GPUS", str(max(host.num_gpus for host in hosts))),
        ("LIST", ",".join(host.name for host in hosts)),
        ("FILE", f"{name}.sbatch"),
    ):
        text = text.replace(f"@{key}@", value)
    return text
