"""A case in ASTRA-sim's units, worked out by hand, and its files read back."""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from converted_cases import GIB, UNEQUAL, case_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import cases, world

from astra_sim import Dimension, PairwiseDimension, read_network_config, read_system_config
from calibration.cases.case import PlacementCase
from calibration.reference.astra_config import (
    as_seen,
    groups_json,
    logical_topology_json,
    memory_json,
    network_config,
    network_options,
    network_yaml,
    system_config,
    system_json,
)
from des import Domain, Link, Parallelism, Topology, Transport


def gpu_domain(name, num_gpus, *, intra_bandwidth=GIB, intra_latency_s=500e-9, memory=2.039e12):
    """A domain of GPUs of 100 TFLOP/s, of which they reach half."""
    return Domain(
        name=name,
        num_gpus=num_gpus,
        gpu_peak_flops_per_s=100e12,
        gpu_memory_bytes=1e30,
        gpu_memory_bandwidth_bytes_per_s=memory,
        attainable_fraction=0.5,
        intra_bandwidth_bytes_per_s=intra_bandwidth,
        intra_latency_s=intra_latency_s,
    )


def gpu_world(*domains):
    """Domains joined by links of 1 GiB/s and 30 ms."""
    names = [domain.name for domain in domains]
    return Topology.of(
        domains,
        [
            Link(source=source, target=target, bandwidth_bytes_per_s=GIB, latency_s=0.03)
            for source in names
            for target in names
            if source != target
        ],
    )


EIGHTS = gpu_world(gpu_domain("A", 8), gpu_domain("B", 8, intra_bandwidth=3 * GIB))


def gpu_case(topology=EIGHTS, **parallelism):
    """Two stages on two domains, GPU by GPU."""
    shared = (Parallelism(**parallelism),) * 2 if parallelism else ()
    return case_of(topology, 0, 1, granularity="gpu", parallelism=shared)


@pytest.mark.parametrize("backend", ["unaware", "aware"])
def test_a_world_of_equal_links_by_hand(backend):
    """0.25 GiB/s and 30 ms are 0.25 and 3e7 in ``network.yml``, whose GB are GiB."""
    quarter = (GIB / 4, 0.030)
    topology = world("ABC", dict.fromkeys(("AB", "BA", "AC", "CA", "BC", "CB"), quarter))

    network = network_config(case_of(topology, 0, 1, 2), backend)

    assert network.dimensions == (
        Dimension(
            topology="FullyConnected", num_npus=3, bandwidth_gb_per_s=0.25, latency_ns=30_000_000.0
        ),
    )


def test_every_link_has_its_place_in_the_matrices():
    (dimension,) = network_config(case_of(UNEQUAL, 0, 1, 2), "pairwise").dimensions

    assert dimension == PairwiseDimension(
        bandwidth_matrix_gb_per_s=((0.0, 1.0, 2.0), (4.0, 0.0, 4.0), (4.0, 4.0, 0.0)),
        latency_matrix_ns=((0.0, 1e7, 2e7), (3e7, 0.0, 3e7), (3e7, 6e7, 0.0)),
    )


def test_a_pair_without_a_link_has_the_times_of_its_route():
    """Store and forward over 1 and 2 GiB/s takes as long as 2/3 GiB/s does, latencies added."""
    chain = world(
        "ABC", {"AB": (GIB, 0.01), "BC": (2 * GIB, 0.02), "CB": (GIB, 0.01), "BA": (GIB, 0.01)}
    )

    (dimension,) = network_config(case_of(chain, 0, 1, 2), "pairwise").dimensions

    assert dimension.bandwidth_matrix_gb_per_s[0][2] == pytest.approx(2 / 3)
    assert dimension.latency_matrix_ns[0][2] == pytest.approx(30e6)


def test_a_pair_without_any_way_has_the_worst_figures():
    one_way = world("AB", {"AB": (GIB, 0.01)})

    (dimension,) = network_config(case_of(one_way, 0, 0), "pairwise").dimensions

    assert dimension.bandwidth_matrix_gb_per_s == ((0.0, 1.0), (1.0, 0.0))


def test_a_world_without_links_is_refused():
    with pytest.raises(ValueError, match="topology: links must hold at least one link"):
        network_config(case_of(world("AB", {}), 0, 0), "aware")


@pytest.mark.parametrize(("backend", "gib_per_s"), [("unaware", 1 / 8), ("aware", 1.0)])
def test_pairs_of_endpoints_share_a_link_where_messages_do_not_see_each_other(backend, gib_per_s):
    """Eight GPUs a device: each pair gets an eighth, or all queue for the whole."""
    inside, between = network_config(gpu_case(), backend).dimensions

    assert inside == Dimension(
        topology="FullyConnected", num_npus=8, bandwidth_gb_per_s=1.0, latency_ns=500.0
    )
    assert between == Dimension(
        topology="FullyConnected", num_npus=2, bandwidth_gb_per_s=gib_per_s, latency_ns=3e7
    )


def test_pairs_are_those_in_use():
    """Devices of 2 x 2 GPUs have four pairs of endpoints, whatever else stands in the domain."""
    _, between = network_config(gpu_case(tensor=2, data=2, pipeline=1), "unaware").dimensions

    assert between.bandwidth_gb_per_s == 1 / 4


def test_domains_have_equal_insides_where_gpus_are_npus():
    """Of 1 and 3 GiB/s the least, or the harmonic mean, 1.5; else it stays with `des`."""
    for backend in ("unaware", "aware", "pairwise"):
        for aggregation, gib_per_s in (("min", 1.0), ("harmonic", 1.5)):
            domains = as_seen(gpu_case(), backend, aggregation).topology.domains
            found = [domain.intra_bandwidth_bytes_per_s / GIB for domain in domains]
            assert found == [gib_per_s, gib_per_s]
    whole = case_of(EIGHTS, 0, 1)
    assert as_seen(whole, "pairwise") is whole


def test_the_network_without_queues_is_asked_without_them():
    """Whatever the case says; equal links, which are left as they are, included."""
    quarter = (GIB / 4, 0.030)
    queued = case_of(
        world("ABC", dict.fromkeys(("AB", "BA", "AC", "CA", "BC", "CB"), quarter)), 0, 1
    )
    alone = replace(queued, topology=replace(queued.topology, transport=Transport(sharing="none")))

    assert as_seen(queued, "unaware") == as_seen(alone, "unaware") == alone
    assert as_seen(queued, "aware") is queued
    assert network_config(queued, "unaware") == network_config(alone, "unaware")


@pytest.mark.parametrize("backend", ["aware", "pairwise"])
def test_networks_with_queues_refuse_a_world_without(backend):
    topology = replace(UNEQUAL, transport=Transport(sharing="none"))

    for ask in (as_seen, network_config):
        with pytest.raises(
            ValueError, match=rf"{backend}: transport\.sharing must be fifo, .* 'none'"
        ):
            ask(case_of(topology, 0, 1, 2), backend)


def test_only_gpus_need_several_dimensions():
    assert network_options(gpu_case()).multi_dimensional
    assert not network_options(case_of(UNEQUAL, 0, 1, 2)).multi_dimensional


@pytest.mark.parametrize(("endpoints", "slots"), [("overlapped", None), ("one_in_flight", 1)])
def test_communication_slots_are_those_of_the_endpoints(endpoints, slots):
    topology = replace(UNEQUAL, transport=Transport(endpoints=endpoints))

    assert system_config(case_of(topology, 0, 1, 2)).communication_slots == slots


def test_a_system_of_gpus_by_hand():
    """50 TFLOP/s reached by a GPU, 400 by eight together; memory of 2039 GB/s of 1e9 bytes."""
    by_gpu, by_domain = system_config(gpu_case()), system_config(case_of(EIGHTS, 0, 1))

    assert by_gpu.peak_perf_tflops == pytest.approx(50.0, rel=1e-15)
    assert by_gpu.local_mem_bw_gb_per_s == 2039.0
    assert len(by_gpu.all_reduce) == 2
    assert by_domain.peak_perf_tflops == pytest.approx(400.0, rel=1e-15)
    assert len(by_domain.all_reduce) == 1


def test_gpus_whose_memory_is_too_slow_for_traces_are_refused():
    slow = gpu_world(gpu_domain("A", 8, memory=1e8), gpu_domain("B", 8))

    with pytest.raises(ValueError, match=r"domain A: gpu_memory_bandwidth_bytes_per_s must be at "):
        system_config(gpu_case(slow))


@given(cases(min_domains=2), st.sampled_from(["unaware", "aware", "pairwise"]))
def test_configurations_come_back_from_their_files(world_workload_plan, backend):
    topology, workload, chosen = world_workload_plan
    case = PlacementCase(topology=topology, workload=workload, plan=chosen)
    network, system = network_config(case, backend), system_config(case)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "network.yml").write_text(network_yaml(network), "utf-8")
        (folder / "system.json").write_text(system_json(system), "utf-8")

        assert read_network_config(folder / "network.yml", pytest.fail) == network
        assert read_system_config(folder / "system.json", pytest.fail) == system


def test_a_network_with_gpus_and_matrices_comes_back(tmp_path):
    network = network_config(gpu_case(), "pairwise")
    path = tmp_path / "network.yml"
    path.write_text(network_yaml(network), "utf-8")

    assert read_network_config(path, pytest.fail) == network
    assert path.read_text("utf-8").splitlines()[:2] == [
        "topology: [ FullyConnected, Pairwise ]",
        "npus_count: [ 8, 2 ]",
    ]


def test_the_system_file_holds_what_the_original_insists_on():
    content = json.loads(system_json(system_config(case_of(UNEQUAL, 0, 1, 2))))

    assert content["collective-optimization"] == "baseline"
    assert content["preferred-dataset-splits"] == 1
    assert content["roofline-enabled"] == 1
    assert content["communication-slots"] == "unlimited"
    assert content["all-reduce-implementation"] == ["ring"]
    assert math.isfinite(content["local-mem-bw"])


def test_the_small_files_by_hand():
    assert json.loads(memory_json()) == {"memory-type": "NO_MEMORY_EXPANSION"}
    assert json.loads(groups_json({2: (5, 4), 1: (0, 1, 2)})) == {"1": [0, 1, 2], "2": [5, 4]}
    assert json.loads(logical_topology_json(gpu_case())) == {"logical-dims": ["8", "2"]}
    assert json.loads(logical_topology_json(case_of(UNEQUAL, 0, 1))) == {"logical-dims": ["3"]}
