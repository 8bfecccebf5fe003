"""Actions turned into stages; the twin of `agents.ppo.actions`."""

import numpy as np

from des.base.jit import kernel
from des.compiled.many.layout import Runs, Small, Whole


@kernel
def first_out_of_range(actions: Whole, sizes: Whole) -> int:
    """Position in the flat array of the first component that is no choice, -1 if there is none."""
    num_components = sizes.size
    for row in range(actions.shape[0]):
        for component in range(num_components):
            if not 0 <= actions[row, component] < sizes[component]:
                return row * num_components + component
    return -1


@kernel
def decode_layers(actions: Whole, begin: int, end: int, runs: Runs) -> None:
    """One component a layer, its domain; neighbours in one domain form a stage."""
    stage_count, domains, end_layers = runs
    num_layers = actions.shape[1]
    for row in range(begin, end):
        stage = 0
        for layer in range(1, num_layers):
            if actions[row, layer] != actions[row, layer - 1]:
                domains[row, stage] = actions[row, layer - 1]
                end_layers[row, stage] = layer
                stage += 1
        domains[row, stage] = actions[row, num_layers - 1]
        end_layers[row, stage] = num_layers
        stage_count[row] = stage + 1


@kernel
def decode_order_and_splits(
    actions: Whole, num_layers: int, begin: int, end: int, runs: Runs
) -> None:
    """Picks among the domains that are left, then split points in any order."""
    stage_count, domains, end_layers = runs
    num_picks = actions.shape[1] // 2
    left = np.empty(num_picks + 1, np.int32)
    cuts = np.empty(num_picks + 1, np.int32)
    cuts[num_picks] = num_layers
    for row in range(begin, end):
        for at in range(num_picks):
            cut = np.int32(actions[row, num_picks + at])
            place = at
            while place > 0 and cuts[place - 1] > cut:
                cuts[place] = cuts[place - 1]
                place -= 1
            cuts[place] = cut
        for domain in range(num_picks + 1):
            left[domain] = domain
        stage, first_layer = 0, 0
        for at in range(num_picks + 1):
            pick = actions[row, at] if at < num_picks else 0
            domain = left[pick]
            for place in range(pick, num_picks - at):
                left[place] = left[place + 1]
            if cuts[at] > first_layer:
                domains[row, stage] = domain
                end_layers[row, stage] = cuts[at]
                first_layer = cuts[at]
                stage += 1
        stage_count[row] = stage


@kernel
def domains_of_layers(runs: Runs, row: int, found: Small) -> None:
    """Write the domain of every layer."""
    first_layer = 0
    for stage in range(runs.num_stages[row]):
        end_layer = runs.end_layer[row, stage]
        found[first_layer:end_layer] = runs.domain[row, stage]
        first_layer = end_layer
