"""The shipped examples of whole decisions as worlds of a comparison."""

from dataclasses import replace

from agents.decision.job_files import read_job
from agents.decision.load import LoadLaw
from des import STEADY, Topology, Workload, read_topology
from des.plan.replacement import Replacement
from des.world.transfer_ratio import transfer_compute_ratio_of
from des.worlds import EXAMPLE_JOBS, EXAMPLES
from scenarios.suites.catalogue import EXAMPLES_NAME
from scenarios.suites.world import LEAST_ITERATIONS, SuiteWorld

NUM_EXAMPLES = len(EXAMPLES)

_EPOCH_S = 3600.0


def example_world(index: int) -> SuiteWorld:
    """Return an example by its place in `des.worlds.EXAMPLES`, with its job and without load.

    Raises
    ------
    ValueError
        If no example has this index.
    """
    if not 0 <= index < NUM_EXAMPLES:
        raise ValueError(
            f"{EXAMPLES_NAME}: num_worlds must be at most {NUM_EXAMPLES}, the examples there are; "
            f"got {index + 1}"
        )
    name = tuple(EXAMPLES)[index]
    job, microbatch_size = read_job(EXAMPLE_JOBS[name])
    world = still_world(name, read_topology(EXAMPLES[name]), job.workload(microbatch_size))
    return replace(world, suite=EXAMPLES_NAME, index=index)


def still_world(name: str, topology: Topology, workload: Workload) -> SuiteWorld:
    """Return a world at base figures, and a job on it without load."""
    topology = replace(topology, dynamics=STEADY, movement=None)
    return SuiteWorld(
        name=name,
        suite="network",
        seed=0,
        index=0,
        topology=topology,
        workload=workload,
        law="steady",
        load=LoadLaw(low_factor=1.0, high_factor=1.0),
        schedule="1f1b_4x",
        epoch_s=_EPOCH_S,
        num_epochs=1,
        iterations_per_epoch=LEAST_ITERATIONS,
        replacement=Replacement(),
        target_ratio=transfer_compute_ratio_of(workload, topology),
    )
