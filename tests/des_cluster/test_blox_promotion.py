"""Jobs that wait for 3,600,000 s go before all others, for ever, as Blox counts the wait.

Blox adds a round to the wait of a job at the end of each round in which it does not run, but not
of the round that suspends it (`exec_jobs` of its manager, commit c8851b2).
"""

import numpy as np
import pytest

from agents.cluster.admission import AcceptAll
from agents.cluster.key_orderings import LeastAttained
from agents.cluster.placing import FirstFree
from des.cluster.node_set import ClusterPlace, NodeSet
from des.cluster.policy import Policy
from des.cluster.queued_job import QueuedJob
from des.cluster.running import run
from des.cluster.world import BloxRules, World

THRESHOLD_S = 3_600_000


def second_reading(jobs, nodes, round_s):
    """End, launches and suspensions of (arrival, GPUs, service) jobs under LAS, by plain lists."""
    held, got, wait, chosen = {}, {}, {}, set()
    ends, counts = {}, {number: [0, 0] for number in range(len(jobs))}
    now = 0
    while len(ends) < len(jobs):
        for number in list(held):
            got[number] += round_s
            if got[number] >= jobs[number][2]:
                ends[number] = now
                del held[number]
        for number, (arrival, _, _) in enumerate(jobs):
            if arrival <= now and number not in got:
                got[number] = wait[number] = 0
        live = sorted(
            (number for number in got if number not in ends),
            key=lambda each: (each not in chosen, got[each], each),
        )
        out, into = walked(live, held, nodes, [job[1] for job in jobs])
        for number in live:
            counts[number][0] += number in into
            counts[number][1] += number in out
            if number in out or number in held:
                wait[number] = 0
            else:
                wait[number] += round_s
                if wait[number] >= THRESHOLD_S:
                    chosen.add(number)
        now += round_s
    return [(ends[number], *counts[number]) for number in range(len(jobs))]


def walked(live, held, nodes, wanted):
    """Suspend from the end of the order for each waiting job in turn; change what is held."""
    out, into = set(), set()

    def placed(number):
        free = [size - sum(part[node] for part in held.values()) for node, size in enumerate(nodes)]
        part = [0] * len(nodes)
        for node, gpus in enumerate(free):
            part[node] = min(wanted[number], gpus)
            if sum(part) >= wanted[number]:
                break
        if sum(part) != wanted[number]:  # Blox takes all of a node, and fails beyond the number
            return False
        held[number] = part
        return True

    for place, number in enumerate(live):
        if number in held:
            continue
        found = placed(number)
        for victim in reversed(live[place + 1 :]):
            if found:
                break
            if victim in held:
                del held[victim]
                out.add(victim)
                found = placed(number)
        if not found:
            break
        into.add(number)
    return out, into


def simulated(jobs, nodes, round_s):
    """The same of the engine."""
    world = World(
        nodes=NodeSet(
            nodes=tuple(
                ClusterPlace(name=f"n{number}", num_gpus=gpus) for number, gpus in enumerate(nodes)
            )
        ),
        jobs=tuple(
            QueuedJob(
                job_id=number, arrival_s=arrival, num_gpus=gpus, service_s=service, iteration_s=1.0
            )
            for number, (arrival, gpus, service) in enumerate(jobs)
        ),
        tracked_ids=(0, len(jobs) - 1),
        round_s=round_s,
        blox=BloxRules(),
    )
    policy = Policy(admission=AcceptAll(), ordering=LeastAttained(), placing=FirstFree())
    rows = sorted(run(world, policy).jobs, key=lambda row: row.job_id)
    return [(row.finish_s, row.launches, row.suspensions) for row in rows]


@pytest.mark.parametrize("seed", range(50))
def test_long_rounds_are_as_by_a_second_reading_of_the_rules(seed):
    draw = np.random.default_rng(seed)
    round_s = int(draw.choice([60_000, 300_000, 600_000, 900_000, 1_000_000]))
    nodes = draw.integers(1, 5, size=draw.integers(1, 4)).tolist()
    jobs = sorted(
        (
            float(draw.integers(0, 4 * round_s)),
            int(draw.integers(1, nodes[0] + 1)),
            float(draw.integers(1, 40) * round_s // 4),
        )
        for _ in range(14)
    )

    assert simulated(jobs, nodes, round_s) == second_reading(jobs, nodes, round_s)
