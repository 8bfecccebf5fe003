"""Choice of what carries messages between domains: the simulator's links, or packets of ns-3."""

from __future__ import annotations

from calibration import ReferenceRunError
from des import NO_CORRECTIONS, IterationResult
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.engine.iteration import run_alone
from scenarios.iteration.iteration_config import PROG, Config
from scenarios.iteration.iteration_scenario import IterationScenario

with lazy_imports(__name__):
    from calibration.packet import measure_packets


def simulate_by_engine(config: Config, scenario: IterationScenario) -> IterationResult:
    """Simulate an iteration on the network that the flags name.

    Raises
    ------
    UsageError
        If a network of packets cannot be had, or has no place for factors or other jobs.
    ValueError
        As `des.simulate`, and as `measure_packets.simulate_packets`.
    """
    topology, program = scenario.topology, scenario.program
    if config.network_engine == "des":
        return run_alone(topology, program, scenario.corrections).result()
    if scenario.corrections != NO_CORRECTIONS or config.other_jobs is not None:
        flag = "--other-jobs" if config.other_jobs is not None else "--corrections"
        raise UsageError(f"{PROG}: --network-engine ns3 must come without {flag}")
    try:
        return measure_packets.simulate_packets(topology, program)
    except ReferenceRunError as error:
        raise UsageError(str(error)) from error
