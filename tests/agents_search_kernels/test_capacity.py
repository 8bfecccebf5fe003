"""Memory of chains: none is left out of which a split fits, and those that lack much are."""

from dataclasses import replace

import numpy as np
from examples import examples
from hypothesis import assume, given, settings
from search_candidates import candidates, fits

from agents.search.chains import SiteChains
from agents.search.workspace import Workspace


@settings(max_examples=examples(300))
@given(drawn=candidates())
def test_no_chain_is_left_out_of_which_a_split_with_even_layers_in_each_site_fits(drawn):
    workspace, candidate = drawn
    assume(fits(workspace, candidate))

    _, least_s = workspace.least_s(candidate.setting, SiteChains.of(candidate.chains))

    assert np.isfinite(least_s)


@settings(max_examples=examples(100))
@given(drawn=candidates())
def test_a_chain_is_left_out_whose_devices_together_lack_room_for_the_model(drawn):
    workspace, candidate = drawn
    setting, (chain,) = candidate.setting, candidate.chains
    figures = workspace.figures(setting)
    state_bytes = figures.state_bytes[chain[0], -1]
    share = 0.99 * state_bytes / (figures.num_devices * figures.room_bytes)[list(chain)].sum()
    domains = [
        replace(one, gpu_memory_bytes=share * one.gpu_memory_bytes)
        for one in workspace.topology.domains
    ]
    topology = replace(workspace.topology, domains=tuple(domains))
    small = Workspace(topology=topology, job=workspace.job, corrections=workspace.corrections)

    _, least_s = small.least_s(setting, SiteChains.of([chain]))

    assert least_s == np.inf
