"""Times of iterations of plans, each on a network of its own."""

from collections.abc import Sequence

import numpy as np

from agents.judge.step_times import step_times_each
from agents.scheduling.known_plan import KnownPlan
from agents.scheduling.setting import Setting
from des import Topology
from des.compiled.many.each import NetworkFigures
from des.compiled.many.layout import Real
from des.compiled.simulate import makespan_compiled_s
from des.program.lowering import lower


def steps_s(
    setting: Setting,
    networks: NetworkFigures,
    plans: Sequence[KnownPlan],
    topologies: Sequence[Topology] = (),
) -> Real:
    """Time of an iteration of plan ``n`` on network ``n``, (N,). [s]

    Of copies that seldom exchange it is the mean over a period of their synchronisation.

    Parameters
    ----------
    topologies
        The networks themselves, for plans that a trainer runs; of perfect devices unused.
    """
    if not setting.trainer.is_ideal:
        known = {
            key: makespan_compiled_s(
                key[0],
                lower(key[0], setting.workload, key[1].plan, setting.corrections),
                setting.corrections,
            )
            for key in dict.fromkeys(zip(topologies, plans, strict=True))
        }
        return np.array([known[key] for key in zip(topologies, plans, strict=True)])
    own = [one.plan for one in plans]
    return step_times_each(networks, setting.common, setting.workload, own, setting.corrections)
