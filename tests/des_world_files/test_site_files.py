"""Uplinks, caps and sites of several kinds of GPU in topology files: read, written and refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limited_worlds import limited
from strategies import topologies
from written_worlds import JSON, edited_yaml, read

from des.devices.gpu_kinds import GPU_KINDS, gpu_kind_named
from des.world.access import OPEN, Access
from des.world.files.topology_writer import to_yaml
from des.world.files.topology_yaml import from_yaml
from des.world.site_limits import notes_on_sites

SITES = """
topology:
  domains:
    - name: Frankfurt
      uplink: 10Gbps
      intra_bandwidth: 3600Gbps
      intra_latency: 1us
      nodes: {gpus_per_node: 8, nics_per_node: 4, nic_bandwidth: 100Gbps, nic_latency: 5us}
      gpus:
        - {gpu: h100, num_gpus: 16}
        - gpu: rtx_4090
          num_gpus: 32
          intra_bandwidth: 200Gbps
          nodes: {gpus_per_node: 8, nics_per_node: 1, nic_bandwidth: 25Gbps, nic_latency: 9us}
    - {name: Milan, gpu: a100, intra_bandwidth: 1Gbps, intra_latency: 1us}
  cross_domain_links:
    - {source: Frankfurt, dest: Milan, bandwidth: 12Gbps, latency: 10ms, flow_cap: 5Gbps}
"""


def test_a_site_of_two_kinds_is_two_domains_that_share_its_uplink_and_lines():
    topology = from_yaml(SITES)
    ends = {(link.source, link.target): link for link in topology.links}
    inside = ends["Frankfurt/h100", "Frankfurt/rtx_4090"]
    outside = ends["Frankfurt/rtx_4090", "Milan"]

    assert list(topology.index_of) == ["Frankfurt/h100", "Frankfurt/rtx_4090", "Milan"]
    assert len(ends) == 6
    assert (inside.bandwidth_bytes_per_s, inside.latency_s) == (25e9 / 8, 9e-6)  # one card
    assert (outside.bandwidth_bytes_per_s, outside.flow_cap_bytes_per_s) == (1.5e9, 0.625e9)
    assert [gate.name for gate in topology.gates] == [
        "downlink of Frankfurt",
        "line of Frankfurt->Milan",
        "line of Milan->Frankfurt",
        "uplink of Frankfurt",
    ]
    h100, rtx_4090, milan = topology.domains
    assert (h100.num_nodes, h100.intra_bandwidth_bytes_per_s) == (2, 450e9)
    assert rtx_4090.gpu_peak_flops_per_s == GPU_KINDS["rtx_4090"].peak_flops_per_s
    assert milan.gpu_memory_bytes == GPU_KINDS["a100_80"].memory_bytes
    assert from_yaml(to_yaml(topology)) == topology


def test_an_uplink_below_a_link_is_noted():
    topology = from_yaml(SITES)

    assert notes_on_sites(topology.domains, topology.links) == (
        "uplink of Frankfurt, 10 Gbit/s, is below its link Frankfurt->Milan, 12 Gbit/s",
        "downlink of Frankfurt, 10 Gbit/s, is below its link Milan->Frankfurt, 12 Gbit/s",
    )


@given(data=st.data(), topology=topologies(min_domains=2))
def test_any_limits_read_back_to_the_last_bit(data, topology):
    world = data.draw(limited(topology))

    assert from_yaml(to_yaml(world)) == world


def test_both_forms_hold_limits(tmp_path):
    keys = {
        "uplink": ["10Gbps", None, None],
        "host_cap": "2Gbps",
        "downlink": [None, None, "1Gbps"],
    }

    east, central, west = read(tmp_path, JSON | keys, ".json").domains

    assert east.access == Access(uplink_bytes_per_s=1.25e9, host_cap_bytes_per_s=0.25e9)
    assert central.access == Access(host_cap_bytes_per_s=0.25e9)
    assert west.access == Access(downlink_bytes_per_s=0.125e9, host_cap_bytes_per_s=0.25e9)


def test_an_uplink_alone_holds_each_way_and_others_are_left_open():
    world = from_yaml(edited_yaml("num_gpus: 8", "num_gpus: 8\n      uplink: 10Gbps"))

    assert world.domains[0].access == Access(uplink_bytes_per_s=1.25e9, downlink_bytes_per_s=1.25e9)
    assert world.domains[1].access == OPEN


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("uplink: 10Gbps", "uplink: 0Gbps", "must be positive; got '0Gbps'"),
        ("nodes: {gpus_per_node: 8, nics_per_node: 4", "x: {gpus_per_node: 8", "x"),
        ("gpu: h100", "gpu: h1000", "gpu must be one of v100_32, a100_40"),
        ("gpu: rtx_4090", "gpu: h100", "gpus must hold each kind once, got h100, h100"),
        (
            "uplink: 10Gbps",
            "site: Hesse",
            "gpus must hold at least one kind, of the site F",
        ),
        ("intra_latency: 1us\n      nodes", "nodes", "Frankfurt/h100: intra_latency must be given"),
        (
            "name: Milan,",
            "name: Milan, site_latency: 1us,",
            "domain Milan: site_latency must be left out without gpus, got it",
        ),
        (
            "      nodes: {gpus_per_node: 8, nics_per_node: 4, nic_bandwidth: 100Gbps, "
            "nic_latency: 5us}\n",
            "",
            "Frankfurt: site_bandwidth must be given, as Frankfurt/h100 has no nodes; got none",
        ),
        (
            "name: Milan,",
            "name: Milan, site: Frankfurt,",
            "domain Milan: uplink_bytes_per_s must be that of Frankfurt/h100, of the same site",
        ),
        (
            "name: Milan,",
            "name: Rome, site: Milan, intra_bandwidth: 1Gbps, intra_latency: 1us}\n"
            "    - {name: Milan,",
            "domain Milan: site must be another name than that of a domain outside it, got 'Milan'",
        ),
    ],
)
def test_bad_sites_are_named(old, new, message):
    assert old in SITES
    with pytest.raises(ValueError, match=re.escape(message)):
        from_yaml(SITES.replace(old, new, 1))


def test_fair_parts_of_both_directions_have_no_uplink():
    rules = "transport: {sharing: fair, half_duplex: true}\n"

    with pytest.raises(ValueError, match="half_duplex must be False where sharing is fair and dom"):
        from_yaml(SITES + rules)


@pytest.mark.parametrize("kind", GPU_KINDS.values(), ids=GPU_KINDS)
def test_kinds_are_found_by_the_names_of_servers_too(kind):
    """A row has figures of a product, in order of size, and a source."""
    if kind.ports.name != "generic":
        found = gpu_kind_named("East", kind.ports.name)
        assert found.ports == kind.ports
        assert found.memory_bytes >= kind.memory_bytes
    assert 1e13 < kind.peak_flops_per_s < 1e16
    assert 1e10 < kind.memory_bytes < 1e12
    assert 1e11 < kind.memory_bandwidth_bytes_per_s < 1e13
    assert kind.source
