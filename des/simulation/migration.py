"""Time to change the plan of a running training: model state over the links, and a restart."""

from des.base.checks import require_non_negative
from des.engine.iteration import run_alone
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.plan.replacement import RESTART_S
from des.program.moves import layer_moves, lower_moves
from des.world.topology import Topology


def migration_s(
    topology: Topology,
    workload: Workload,
    old: Plan,
    new: Plan,
    *,
    restart_s: float = RESTART_S,
    pays_bytes: bool = True,
    corrections: Corrections = NO_CORRECTIONS,
) -> float:
    """Time for which the training stands still to change its plan. [s]

    All layers leave at time 0 of the topology, a message each, and share the links with each other
    by the rules of the world's transport. The restart follows when the last one has arrived.

    Parameters
    ----------
    restart_s
        Time that any change takes on top; equal plans take none.
    pays_bytes
        False where the model state is in all domains already, so that only the restart is paid.

    Raises
    ------
    ValueError
        If a plan does not match the workload or the topology, or ``restart_s`` is negative.
    UnreachableError
        If no path of links joins two domains between which a layer has to move.
    StarvationError
        If a layer waits for a link that is down for ever.
    """
    require_non_negative("migration", "restart_s", restart_s)
    for plan in (old, new):
        plan.check_against(topology, workload)
    if old == new:
        return 0.0
    if not pays_bytes:
        return restart_s
    moves = list(layer_moves(topology, workload, old, new, corrections))
    return run_alone(topology, lower_moves(topology, moves), corrections).ended_s + restart_s
