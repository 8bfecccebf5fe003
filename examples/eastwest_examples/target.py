"""A target: share of layers that a policy's first plan leaves in one domain.

A row of ``GROUPS`` in ``scenarios/study/targets/table.py`` and one of ``names.py`` make it known
to ``eastwest kpi --targets``.
"""

import numpy as np

from scenarios.frame.statistics import mean_and_interval
from scenarios.study.targets.measurement_size import SchedulerColumn
from scenarios.study.targets.target import PERCENT, Goal, Target

GOAL = Goal(sense="at most", target=0.9)


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the largest share of layers of a domain, mean over worlds."""
    shares = []
    for world in column.scope.worlds("eval_static"):
        layers = column.still_plan(world, column.scope.seed).placement.domain_of_layer
        shares.append(np.bincount(layers).max() / len(layers))
    interval = mean_and_interval(shares)
    return [
        Target(
            name="largest share of layers",
            definition="layers of the domain that has most, over all layers",
            reference="all layers in one domain: 100 %",
            goal=GOAL,
            unit=PERCENT,
            value=interval.mean,
            interval=interval,
        )
    ]
