"""Lowering of a pipeline whose stages are given in numbers: times of passes, bytes of messages."""

from collections.abc import Sequence

from des.plan.corrections import NO_CORRECTIONS
from des.program.actions import NONE, PASSES
from des.program.draft import ProgramDraft
from des.program.program import MessageFlow, Program, StageEntry
from des.program.rendezvous import with_runtime
from des.program.worker_lists import FLOWS_PER_STAGE, worker_lists
from des.schedules import Orders, check_orders
from des.world.topology import Topology


def lower_stages(
    topology: Topology,
    orders: Orders,
    domain_of_stage: Sequence[int],
    durations_s: Sequence[Sequence[float]],
    message_bytes: float,
) -> Program:
    """Turn orders of passes into a program, one device a domain.

    Parameters
    ----------
    orders
        One a domain.
    durations_s
        Times of the passes F, B, D and W of each stage; they may be 0. [s]
    message_bytes
        Size of each message between domains. [bytes]

    Raises
    ------
    ValueError
        If orders do not do each pass of each microbatch once and in turn.
    UnreachableError, DeadlockError
        As `des.program.rendezvous.with_runtime`, or if no path joins two domains.
    """
    num_stages, domains = len(domain_of_stage), tuple(domain_of_stage)
    num_microbatches = sum(one.kind == "F" for order in orders for one in order) // num_stages
    check_orders(orders, domains, num_microbatches)
    lists, workers = worker_lists(orders, (num_stages,), domains)
    draft = ProgramDraft(topology, lists)
    flows = [MessageFlow(NONE, num_microbatches)] * (FLOWS_PER_STAGE * num_stages)
    for behind in range(1, num_stages):
        for kind, sender, receiver in (("F", behind - 1, behind), ("B", behind, behind - 1)):
            here, there = domains[sender], domains[receiver]
            channel = draft.inside(here, here) if here == there else draft.over_links(here, there)
            flows[FLOWS_PER_STAGE * receiver + (kind == "B")] = MessageFlow(
                channel, num_microbatches, here, message_bytes, stage=sender, kind=kind
            )
    draft.flows += flows
    stages = tuple(
        StageEntry(
            domain=topology.domains[domain].name,
            domain_device=0,
            first_layer=stage,
            num_layers=1,
            kept_bytes=(0.0, 0.0),
            durations_s=tuple(own),
            group=stage,
            num_gradients=num_microbatches,
        )
        for stage, (domain, own) in enumerate(zip(domains, durations_s, strict=True))
    )
    assert all(len(stage.durations_s) == len(PASSES) for stage in stages)
    program = draft.program(workers=workers, stages=stages, num_devices=topology.num_domains)
    return with_runtime(topology, program, NO_CORRECTIONS)
