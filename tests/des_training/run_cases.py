"""Small jobs, worlds and planners for training runs by hand."""

from dataclasses import replace

from strategies import plan, unit_workload, world

from des import Movement, UniformLaw
from des.dynamics import LinkState, MarkovModulated, OrnsteinUhlenbeck
from des.training.background import BackgroundLoad
from des.world.domain_load import IDLE, DomainLoad

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=1)
"""Four layers of 2 s and 16 bytes of state each: 8 s an iteration in one domain."""

PAIR = world("AB", {"AB": (8.0, 0.5), "BA": (4.0, 0.25)})
"""A layer takes 2 s + 0.5 s from A to B, 4 s + 0.25 s back; messages of iterations are empty."""

ALL_IN_A, LAST_IN_B = plan(0, 0, 0, 0), plan(0, 0, 0, 1)
"""8 s, and 8.75 s for the latencies there and back."""

JOBS = BackgroundLoad(
    arrivals_per_s=0.05, mean_duration_s=30.0, gpu_fraction=0.25, memory_fraction=0.2, most_jobs=3
)

SIMPLE_SCHEDULES = ("1f1b", "gpipe")
"""Quick to make for any placement."""

LAWS = [
    UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=2.5),
    UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=200.0),
    UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=0.5),
    OrnsteinUhlenbeck(bandwidth_sigma=0.3, latency_sigma=0.1, relaxation_s=60.0, interval_s=5.0),
    MarkovModulated(
        states=(
            LinkState(
                name="up", bandwidth_factor=1.0, mean_dwell_s=90.0, followed_by=(("down", 1.0),)
            ),
            LinkState(
                name="down", bandwidth_factor=0.0, mean_dwell_s=20.0, followed_by=(("up", 1.0),)
            ),
        )
    ),
]


def load_of(sample):
    """The load of a domain as a sample has it."""
    return DomainLoad(
        utilisation=sample.gpu_utilisation,
        memory_occupancy=sample.memory_occupancy,
        queue_length=sample.queue_length,
    )


def with_room(topology):
    """The same world with memory for anything."""
    return replace(
        topology,
        domains=tuple(replace(domain, gpu_memory_bytes=1e30) for domain in topology.domains),
    )


def moving(topology, law, *, start_s=0.0):
    return replace(topology, movement=Movement(law=law, seed=3, start_s=start_s))


def alternate(*plans):
    """Planner that goes through plans in turn, one per epoch that it is called in."""
    turns = iter(plans * 1000)
    return lambda view: next(turns)


def loads_at(history, time_s):
    """Loads of all domains at a time, from the series."""
    loads = [IDLE] * len(history.domains)
    for sample in history.loads:
        if sample.time_s <= time_s:
            loads[sample.domain] = load_of(sample)
    return tuple(loads)
