"""Costs of changes between plans of all families, sharded copies among them, are those of `des`."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from small_tasks import rare

from agents.scheduling.setting import change_figures
from des import GradientExchange, Placement, Plan, migration_s, moved_bytes


def copies_in(num_layers: int, *groups: tuple[int, ...], **fields: object) -> Plan:
    """Copies of the model in groups of domains, their layers as even as can be."""
    first, *others = (
        Placement.contiguous(
            group, [len(part) for part in np.array_split(range(num_layers), len(group))]
        )
        for group in groups
    )
    return Plan(placement=first, replicas=tuple(others), **fields)


def test_changes_between_all_kinds_of_copies_cost_what_the_simulator_says():
    setting = rare().setting
    num_layers = setting.workload.num_layers
    in_step = [
        copies_in(num_layers, (0,), (1,)),
        copies_in(num_layers, (3,), (1,), (0,)),
        copies_in(num_layers, (2, 0), (1, 3)),
    ]
    sharded = [replace(plan, exchange=GradientExchange(sharded=True)) for plan in in_step]
    seldom = replace(in_step[0], synchronisation=setting.modes[1])
    alone = [copies_in(num_layers, (0, 1, 2)), copies_in(num_layers, (3,))]
    plans = [*in_step, *sharded, seldom, *alone]
    topology = setting.world.topology.at_start()
    pairs = list(product(range(len(plans)), repeat=2))

    old, new = np.array(pairs).T
    figures = change_figures(
        setting,
        setting.networks([topology] * len(pairs)),
        [setting.book.of(plan) for plan in plans],
        old,
        new,
    )
    restart_s = setting.world.replacement.restart_s
    for (before, after), (took_s, num_bytes) in zip(pairs, figures.T, strict=True):
        ends = plans[before], plans[after]
        expected_s = migration_s(topology, setting.workload, *ends, restart_s=restart_s)
        assert took_s == pytest.approx(expected_s, rel=1e-12)
        sent = moved_bytes(setting.workload, *ends) if before != after else {}
        assert num_bytes == pytest.approx(sum(sent.values()), rel=1e-12)
    assert figures[1].max() > 0.0
