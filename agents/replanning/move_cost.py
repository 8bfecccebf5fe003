"""Cost of a change of a bound plan: checkpoint, model state over the links, and a restart."""

import math
from dataclasses import dataclass, replace

from agents.decision.bound_plan import BoundPlan
from agents.decision.other_domains import plan_on_domains
from agents.trainers.plan_checks import domains_in_use
from des import Topology, UnreachableError, migration_s, moved_bytes
from des.job.transformer import OPTIMISER_BYTES, WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.replacement import RESTART_S, Replacement
from des.world.domain import Domain

STORAGE_BYTES_PER_S = 1e9
"""Rate at which a server writes and reads checkpoints; an assumption, until restarts are measured.
[bytes/s]"""

_GPUS_PER_SERVER = 8


def checkpoint_bytes(workload: Workload) -> float:
    """Size of a checkpoint: weights, and the optimiser's state in FP32. [bytes]"""
    return workload.sums_before.num_parameters[-1] * float(WEIGHT_BYTES + OPTIMISER_BYTES)


def assumed_restart_s(old: BoundPlan, new: BoundPlan) -> float:
    """Time that a job needs to write its checkpoint, read it elsewhere, and start again. [s]

    `des.plan.replacement.RESTART_S` is for the last, as it was measured for small models; servers
    write and read at `STORAGE_BYTES_PER_S`, each its share.
    """
    own = checkpoint_bytes(new.workload) / STORAGE_BYTES_PER_S
    return RESTART_S + own / _num_servers(old) + own / _num_servers(new)


def _num_servers(bound: BoundPlan) -> int:
    """Servers in use."""
    return sum(num_servers(bound.topology.domains[site]) for site in domains_in_use(bound.plan))


def num_servers(domain: Domain) -> int:
    """Servers of a domain; one for eight GPUs where they are not known."""
    return max(domain.num_nodes, math.ceil(domain.num_gpus / _GPUS_PER_SERVER))


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCost:
    """Cost of leaving a plan for another.

    Attributes
    ----------
    num_bytes
        Model state that the sites of the new plan lack. [bytes]
    links_s
        Time of these over the links. [s]
    restart_s
        Time of the restart, its checkpoint included. [s]
    is_assumed
        Whether the latter is `assumed_restart_s`, neither given nor measured.
    """

    num_bytes: float
    links_s: float
    restart_s: float
    is_assumed: bool = False

    @property
    def total_s(self) -> float:
        """Time for which the training stands still. [s]"""
        return self.links_s + self.restart_s


NO_MOVE = MoveCost(num_bytes=0.0, links_s=0.0, restart_s=0.0)
"""Cost of staying."""


def reachable_move(
    topology: Topology, old: BoundPlan, new: BoundPlan, replacement: Replacement | None
) -> MoveCost | None:
    """Cost of leaving a plan on a network as it is; None if layers must go where no links lead.

    State of a site that is gone is read from the checkpoint with all the rest: no bytes are sent.

    Parameters
    ----------
    old
        Plan in force, maybe on a world of other domains.
    new
        Plan on the network.
    replacement
        None: model state is sent over the links, and a restart takes `assumed_restart_s`.
    """
    here = plan_on_domains(old.plan, list(old.topology.index_of), list(topology.index_of))
    if here is not None and (old.workload, here) == (new.workload, new.plan):
        return NO_MOVE
    restart_s = assumed_restart_s(old, new) if replacement is None else replacement.restart_s
    num_bytes = links_s = 0.0
    if here is not None and (replacement is None or replacement.pays_bytes):
        before, after = (replace(one, parallelism=(), shares=()) for one in (here, new.plan))
        if before != after:
            num_bytes = sum(moved_bytes(new.workload, before, after).values())
            job, corrections = new.workload, new.corrections
            try:
                links_s = migration_s(
                    topology, job, before, after, restart_s=0.0, corrections=corrections
                )
            except UnreachableError:
                return None
    return MoveCost(
        num_bytes=num_bytes,
        links_s=links_s,
        restart_s=restart_s,
        is_assumed=replacement is None,
    )
