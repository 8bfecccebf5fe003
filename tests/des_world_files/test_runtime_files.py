"""The key ``runtime`` of a world file: names, fields in place of theirs, and mistakes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import world
from written_worlds import YAML, read

from des import Topology, Transport
from des.world.files.topology_writer import to_yaml
from des.world.files.topology_yaml import from_yaml
from des.world.hosts import HOSTS, Hosts
from des.world.runtime import RUNTIMES, Runtime


def transport_of(folder, rules: str) -> Transport:
    """Rules of a world file that says these of its transport."""
    return read(folder, f"{YAML.rstrip()}\ntransport: {rules}\n", ".yaml").transport


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_by_its_name(tmp_path, name):
    found = transport_of(tmp_path, f"{{runtime: {name}}}")

    assert (found.runtime, found.hosts) == (RUNTIMES[name], None)


def test_fields_take_the_place_of_those_of_the_names(tmp_path):
    rules = "{runtime: {preset: torch_stock, receives: first, hosts: linux_tuned, "
    found = transport_of(tmp_path, rules + "send_buffer: 16MB}}")

    assert found.runtime == dataclasses.replace(RUNTIMES["torch_stock"], receives="first")
    assert found.hosts == Hosts(send_buffer_bytes=16e6, restart_after_idle=False)


def test_fields_of_hosts_alone_are_against_linux_as_it_comes(tmp_path):
    found = transport_of(tmp_path, "{runtime: {restart_after_idle: false}}")

    assert found.hosts == dataclasses.replace(HOSTS["linux_default"], restart_after_idle=False)
    assert found.runtime == RUNTIMES["ideal"]


@given(
    runtime=st.builds(
        Runtime,
        rendezvous=st.booleans(),
        receives=st.sampled_from(["first", "as_needed", "lowered", "stock"]),
        senders_wait=st.sampled_from(["end", "step", "each"]),
        connections=st.sampled_from(["shared", "split"]),
    ),
    hosts=st.none()
    | st.builds(Hosts, send_buffer_bytes=st.floats(1e3, 1e9), restart_after_idle=st.booleans()),
)
def test_any_runtime_reads_back(runtime, hosts):
    made: Topology = world("AB", {"AB": (1.0, 0.5)})
    topology = dataclasses.replace(made, transport=Transport(runtime=runtime, hosts=hosts))

    assert from_yaml(to_yaml(topology)) == topology


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("{runtime: mpi}", "preset must be one of ideal, torch_stock, torch_early, reference; got"),
        ("{runtime: {hosts: bsd}}", "hosts must be one of linux_default, linux_tuned; got 'bsd'"),
        ("{runtime: {send_buffer: 0MB}}", "send_buffer"),
        ("{runtime: {receives: never}}", "receives"),
        ("{sharing: fair, runtime: {hosts: linux_tuned}}", "sharing must be fifo where hosts have"),
        ("{endpoints: blocking, runtime: torch_early}", "endpoints must be overlapped where the"),
    ],
)
def test_a_runtime_that_cannot_be_is_refused(tmp_path, rules, message):
    with pytest.raises(ValueError, match=message):
        transport_of(tmp_path, rules)


def test_a_world_without_a_runtime_says_nothing_of_it():
    assert "runtime" not in to_yaml(world("AB", {"AB": (1.0, 0.5)}))
