"""Simulation of one iteration of a plan on links that another simulator plays."""

from collections.abc import Callable

from des.clock import Clock
from des.engine.iteration import Iteration
from des.engine.result import IterationResult
from des.engine.stepped import SteppedLinks, SteppedNetwork
from des.job.workload import Workload
from des.plan.plan import Plan
from des.program.lowering import lower
from des.world.topology import Topology


def simulate_stepped(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    open_links: Callable[[Topology], SteppedLinks],
    *,
    step: int = 0,
) -> IterationResult:
    """Simulate one iteration of a plan on links that another simulator plays.

    Parameters
    ----------
    open_links
        Begins a simulation of the links of the world at time 0.
    step
        Position of the iteration in the training, see `des.simulate`.

    Raises
    ------
    ValueError
        As `des.simulate`.
    UnreachableError, StarvationError
        As `des.simulate`.
    """
    program = lower(topology, workload, plan, step=step)
    clock = Clock()
    iteration = Iteration(clock, SteppedNetwork(clock, topology, open_links(topology)), program)
    iteration.start()
    clock.run_out()
    return iteration.result()
