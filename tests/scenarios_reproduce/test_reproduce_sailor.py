"""Measured iteration times are predicted from profiles alone, by hand on a toy."""

import numpy as np
import pandas as pd
import pytest
from sailor_folder import (
    FILES,
    FIRST_STAGE,
    LAST_STAGE,
    LAYERS,
    LINKS,
    RUN,
    exact_blocking_s,
    predicted_s,
    write_folder,
)

from des.figures.marks import Boxes
from scenarios.reproduce.sailor import reproduce, short_names
from scenarios.reproduce.sailor_cases import read_folder
from scenarios.reproduce.sailor_model import NAIVE, simulate_s
from scenarios.reproduce.sailor_network import Bandwidth, NetworkProfile


def test_two_stages_of_two_replicas_by_hand(tmp_path):
    """A message takes 1 s (2 GB, 2 GB/s of the node) and its gather 0.25 s (1 GB, 4 GB/s).

    So forward steps take 3 and 4 + 2.25, backward steps 5 + 2.25 and 7. Stage 1 works without a
    pause from 3 to 29.5; stage 0 ends with the last backward, at 36.75. Then 4 GB are reduced over
    2 replicas at 1 GB/s for each of 2 GPUs: 4 s. The step of the profiled model (6 of 7 shares of
    250 million parameters, one block less) took 0.6 s, that of stage 0 takes half: 41.05.
    """
    assert predicted_s(tmp_path) == pytest.approx(36.75 + 4.0 + 0.3)


def test_a_plain_1f1b_by_hand(tmp_path):
    """Messages of 0.8 s in the background, a ring at 0.5 GB/s, a whole optimiser step.

    Stage 1 works from 3.8 to 25.8; the last gradient arrives at 26.6.
    """
    assert predicted_s(tmp_path, rules=NAIVE) == pytest.approx(31.6 + 8.0 + 0.6)


def test_the_slowest_replica_counts(tmp_path):
    """One replica with a forward of 4 s in place of 3 ends 1 s later, and the others wait."""
    slow = FIRST_STAGE | {"replica_ids": "1", "fwd_s": "4", "gpu_type": "Y"}
    first = FIRST_STAGE | {"replica_ids": "0"}
    links = [
        link | {"src_gpu": source, "dst_gpu": target}
        for link in LINKS
        for source in "XY"
        for target in "XY"
    ]
    stages = {"real_runs_stages.csv": [first, slow, LAST_STAGE], "network_profiles.csv": links}

    assert predicted_s(tmp_path, FILES | stages) == pytest.approx(37.75 + 4.0 + 0.3)


def test_one_gpu_a_stage_and_one_stage_need_no_network(tmp_path):
    """32 microbatches of 8 s and the optimiser: nothing is sent."""
    run = RUN | {"pp": "1", "dp": "1", "tp": "1", "n_microbatches": "32"}
    stage = FIRST_STAGE | {"replica_ids": "0", "n_layers": "5", "p2p_c0": "", "ar_c0": ""}
    stage |= {"param_bytes_per_gpu": "7e9"}
    layers = [layer | {"tp": "1"} for layer in LAYERS]
    files = {"real_runs.csv": [run], "real_runs_stages.csv": [stage], "layer_memory.csv": layers}

    assert predicted_s(tmp_path, FILES | files) == pytest.approx(32 * 8.0 + 0.7)


@pytest.mark.parametrize("seed", range(40))
def test_blocking_messages_cost_what_the_runtime_pays_but_for_the_ends_of_an_iteration(seed):
    """Steps longer by their messages are the runtime's own, save while the pipeline fills."""
    rng = np.random.default_rng(seed)
    num_stages, num_microbatches = int(rng.integers(1, 7)), int(rng.integers(1, 30))
    forward_s, backward_s = rng.uniform(0.5, 2, num_stages), rng.uniform(1, 4, num_stages)
    down_s, up_s = rng.uniform(0, 0.4, (2, num_stages - 1))
    exact = exact_blocking_s(forward_s, backward_s, down_s, up_s, num_microbatches)
    longer = [forward_s.copy(), backward_s.copy()]
    longer[0][1:] += down_s + up_s
    longer[1][:-1] += down_s + up_s
    free = [0.0] * (num_stages - 1)

    ours = simulate_s(*(times.tolist() for times in longer), free, free, num_microbatches)

    assert abs(ours - exact) <= 2.0 * (down_s.sum() + up_s.sum()) + 1e-9


def test_more_pairs_are_never_slower_than_fewer_that_carry_everything():
    """4 GB over 4 pairs would run at 1 GB/s; 2 of them alone reach 3 GB/s."""
    flat = {pairs: Bandwidth(c2=0.0, c1=0.0, c0=rate) for pairs, rate in ((2, 3e9), (4, 1e9))}
    network = NetworkProfile(between={("X", "Y"): flat}, inside={})

    assert network.node_bandwidth_bytes_per_s("X", "Y", 4, 4e9) == 3e9
    with pytest.raises(ValueError, match="src_gpu X, dst_gpu Y must have a row"):
        network.node_bandwidth_bytes_per_s("X", "Y", 1, 4e9)
    with pytest.raises(ValueError, match="must have a row of scope intra node"):
        network.gpu_bandwidth_bytes_per_s("X", 4, 1e6)


def test_a_polynomial_is_refused_where_it_is_not_positive():
    with pytest.raises(ValueError, match="must be positive for a message of 1 bytes"):
        Bandwidth(c2=-1e9, c1=0.0, c0=1e9).at(1.0)


def test_short_names_are_as_long_as_it_takes_to_tell_runs_apart():
    names = pd.Series(["a/b/one", "a/b/two", "a/c/two"])

    assert short_names(names[:2]).tolist() == ["one", "two"]
    assert short_names(names).tolist() == ["b/one", "b/two", "c/two"]
    assert short_names(names[:1]).tolist() == ["one"]


def test_the_picture_has_a_panel_of_bars_for_each_cluster(tmp_path):
    found = reproduce(read_folder(write_folder(tmp_path)))

    for panel, (cluster, rows) in zip(
        found.figure.panels, found.frame.groupby("cluster", sort=False), strict=True
    ):
        (bars,) = (mark for mark in panel.marks if isinstance(mark, Boxes))
        widths = [end + start for start, end in zip(bars.starts, bars.ends, strict=True)]
        assert panel.title == cluster
        assert widths == pytest.approx(rows["error_percent"].tolist())
