"""Written topologies read back as the equal world."""

import dataclasses
import re

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import dynamics
from sending import transports
from strategies import priced_topologies, topologies, world

from des import Movement, UniformLaw, read_topology
from des.world.files.topology_writer import to_yaml, write_topology
from des.world.files.topology_yaml import from_yaml
from des.worlds import WORLDS
from des.worlds.generator import PlaneWorlds


@settings(max_examples=examples(100), deadline=None)
@given(topology=topologies() | priced_topologies())
def test_any_world_reads_back_to_the_last_bit(topology):
    """Links of one direction only, or of other figures on the way back, included."""
    assert from_yaml(to_yaml(topology)) == topology


@given(law=dynamics())
def test_any_law_of_motion_reads_back(law):
    topology = world("AB", {"AB": (1.0, 0.5)}, dynamics=law)

    assert from_yaml(to_yaml(topology)).dynamics == law


@given(
    transport=transports(
        flows_per_pair=st.integers(1, 64), window_bytes=st.none() | st.floats(1.0, 1e9)
    )
)
def test_any_transport_reads_back(transport):
    topology = dataclasses.replace(world("AB", {"AB": (1.0, 0.5)}), transport=transport)

    assert from_yaml(to_yaml(topology)) == topology


@pytest.mark.parametrize("name", WORLDS)
def test_every_shipped_world_can_be_written(name, tmp_path):
    topology = read_topology(name)
    write_topology(tmp_path / "world.yaml", topology)

    assert read_topology(tmp_path / "world.yaml") == topology


def test_a_drawn_world_can_be_written(tmp_path):
    topology = PlaneWorlds(num_domains=7, mean_price_usd_per_gb=0.1).draw(np.random.default_rng(3))
    write_topology(tmp_path / "world.yml", topology)

    assert read_topology(tmp_path / "world.yml") == topology


def test_the_file_is_as_people_write_it():
    """125e6 B/s = 1 Gbit/s; equal directions make one entry, others two."""
    topology = world("ABC", {"AB": (125e6, 0.03), "BA": (125e6, 0.03), "BC": (250e6, 0.0305)})

    text = to_yaml(topology, comment="A line,\n\nand another.")
    assert text.startswith("# A line,\n#\n# and another.\ntopology:\n  domains:\n  - {name: A, num")
    _, links = text.split("  cross_domain_links:\n")
    assert links == (
        "  - {source: A, dest: B, bandwidth: 1Gbps, latency: 30ms}\n"
        "  - {source: B, dest: C, bandwidth: 2Gbps, latency: 30.5ms, one_way: true}\n"
        "dynamics: {kind: uniform, bandwidth_fluctuation: 0.0, latency_jitter: 0.0, "
        "update_interval: per_epoch,\n  correlation: 0.0}\n"
    )


def test_a_price_that_differs_on_the_way_back_makes_two_entries():
    topology = world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)})
    there, back = topology.links
    priced = dataclasses.replace(
        topology, links=(there, dataclasses.replace(back, price_usd_per_gb=0.09))
    )

    assert "one_way" not in to_yaml(topology)
    assert to_yaml(priced).count("one_way: true") == 2
    assert to_yaml(priced).count("price_usd_per_gb: 0.09") == 1


@pytest.mark.parametrize(
    "name", ["null", "yes", "5", "1e3", "a: b", "# a", "- a", "{a}", "Lhasa 拉萨", "a-b", "'"]
)
def test_odd_names_survive(name):
    topology = world("AB", {})
    named = dataclasses.replace(
        topology, domains=(dataclasses.replace(topology.domains[0], name=name),)
    )

    assert from_yaml(to_yaml(named)) == named


def test_what_a_file_cannot_hold_is_refused():
    law = UniformLaw(bandwidth_fluctuation=0.1, latency_jitter=0.1, update_interval_s=1.0)
    moving = dataclasses.replace(world("AB", {}), movement=Movement(law=law, seed=1))
    scaled = world("AB", {"AB": (1.0, 0.5)}).scaled(np.ones(1), np.ones(1))

    with pytest.raises(ValueError, match="topology: movement cannot be written to a file, got Mov"):
        to_yaml(moving)
    with pytest.raises(ValueError, match=r"topology: routing_latencies_s cannot be .* \(0.5,\)"):
        to_yaml(scaled)


@pytest.mark.parametrize("name", ["world.json", "world", "world.txt"])
def test_another_kind_of_file_is_refused_and_not_made(name, tmp_path):
    message = re.escape(f"{tmp_path / name}: a topology must be written to a file ending in .yaml")
    with pytest.raises(ValueError, match=message):
        write_topology(tmp_path / name, world("A", {}))

    assert not list(tmp_path.iterdir())


def test_a_folder_that_does_not_exist_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_topology(tmp_path / "none" / "world.yaml", world("A", {}))
