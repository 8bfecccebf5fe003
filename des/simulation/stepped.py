"""Simulation of one iteration on links that another simulator plays."""

from collections.abc import Callable

from des.clock import Clock
from des.engine.iteration import Iteration
from des.engine.result import IterationResult
from des.engine.stepped import SteppedLinks, SteppedNetwork
from des.program.program import Program
from des.world.topology import Topology


def simulate_stepped(
    topology: Topology, program: Program, open_links: Callable[[Topology], SteppedLinks]
) -> IterationResult:
    """Run the program of an iteration on links that another simulator plays.

    Parameters
    ----------
    open_links
        Begins a simulation of the links of the world at time 0.

    Raises
    ------
    StarvationError
        If a message waits for a link that is down for ever.
    """
    clock = Clock()
    iteration = Iteration(clock, SteppedNetwork(clock, topology, open_links(topology)), program)
    iteration.start()
    clock.run_out()
    return iteration.result()
