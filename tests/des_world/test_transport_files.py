"""Rules of transport in files of worlds, and rules that are refused."""

import dataclasses
import json
import math

import numpy as np
import pytest
from sending import pair

from des import UniformLaw, read_topology
from des.world.transport import PLAIN, Transport

FORTH, BACK = (4.0, 8.0), (2.0, 1.0)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"sharing": "lifo"}, "transport: sharing must be one of fifo, fair, none; got 'lifo'"),
        (
            {"sharing": "none", "half_duplex": True},
            "transport: half_duplex must be False where sharing is none, .* got True",
        ),
        ({"endpoints": 1}, "endpoints must be one of overlapped, one_in_flight, blocking; got 1"),
        ({"half_duplex": 1}, "transport: half_duplex must be True or False, got 1"),
        ({"num_endpoint_pairs": 0}, "transport: num_endpoint_pairs must be a whole number"),
        ({"flows_per_pair": 1.5}, "transport: flows_per_pair must be a whole number"),
        ({"window_bytes": 0.0}, "transport: window_bytes must be positive and finite, got 0.0"),
        ({"window_bytes": math.inf}, "transport: window_bytes must be positive and finite"),
    ],
)
def test_wrong_rules_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        Transport(**rules)


def test_more_endpoint_pairs_than_gpus_are_refused():
    with pytest.raises(ValueError, match="must be at most the 8 GPUs of domain A, got 9"):
        pair(FORTH, BACK, num_endpoint_pairs=9)
    assert pair(FORTH, BACK, num_endpoint_pairs=8).transport.num_endpoint_pairs == 8


YAML = """
topology:
  domains:
    - {{name: East, num_gpus: 8, intra_bandwidth: "400Gbps", intra_latency: "500ns"}}
    - {{name: West, num_gpus: 8, intra_bandwidth: "400Gbps", intra_latency: "500ns"}}
  cross_domain_links:
    - {{source: East, dest: West, bandwidth: "2Gbps", latency: "80ms"}}
transport: {transport}
"""


def test_both_file_forms_hold_the_rules(tmp_path):
    section = {
        "sharing": "fair",
        "endpoints": "one_in_flight",
        "half_duplex": True,
        "num_endpoint_pairs": 4,
        "flows_per_pair": 2,
        "window": "64KiB",
    }
    content = {
        "topology": "hierarchical",
        "num_domains": 2,
        "bandwidth_matrix": [[400, 2], [2, 400]],
        "latency_matrix": [[0.0005, 80], [80, 0.0005]],
        "transport": section,
    }
    (tmp_path / "world.yaml").write_text(YAML.format(transport=json.dumps(section)))
    (tmp_path / "world.json").write_text(json.dumps(content))

    expected = Transport(
        sharing="fair",
        endpoints="one_in_flight",
        half_duplex=True,
        num_endpoint_pairs=4,
        flows_per_pair=2,
        window_bytes=65536.0,
    )
    assert read_topology(tmp_path / "world.yaml").transport == expected
    assert read_topology(tmp_path / "world.json").transport == expected


def test_a_file_may_say_that_nothing_is_shared(tmp_path):
    """In YAML a bare ``none`` is a word, not null."""
    path = tmp_path / "world.yaml"
    path.write_text(YAML.format(transport="{sharing: none}"))

    assert read_topology(path).transport == Transport(sharing="none")


def test_a_file_without_rules_has_the_plain_ones():
    assert read_topology("east_central_west").transport == PLAIN


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "{sharing: lifo}",
            "transport.sharing: Input should be 'fifo', 'fair' or 'none', got 'lifo'",
        ),
        (
            "{sharing: null}",
            "transport.sharing: Input should be 'fifo', 'fair' or 'none', got None",
        ),
        ("{sharing: none, half_duplex: true}", "transport: half_duplex must be False where"),
        ("{window: 64}", "transport.window: must be a size such as '80GB'"),
        ("{flows: 2}", "transport.flows: unknown key; "),
        ("{flows_per_pair: 0}", "transport: flows_per_pair must be a whole number from 1"),
    ],
)
def test_wrong_sections_are_refused(tmp_path, section, message):
    path = tmp_path / "world.yaml"
    path.write_text(YAML.format(transport=section))

    with pytest.raises(ValueError, match=message):
        read_topology(path)


def test_a_drawn_epoch_keeps_the_rules():
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    topology = dataclasses.replace(pair(FORTH, BACK, half_duplex=True), dynamics=law)

    drawn = topology.draw_epoch(np.random.default_rng(0))
    assert drawn.links != topology.links
    assert drawn.transport == topology.transport != PLAIN
