"""Placement of training jobs on several servers: servers chosen by hand, times by closed forms."""

import dataclasses

import pytest
from device_servers import cube_mesh, server_of_tokens, switched

from agents.devices.free_gpus import FreeGpus
from agents.devices.server_choice import ServerPool
from agents.devices.training_figures import TrainingAssumptions
from agents.devices.training_placement import optimise_placement
from des import Parallelism
from des.costs.device_groups import CARD_FRACTION
from des.devices.cluster import Cluster, ClusterNode, Switch
from des.devices.patterns import nvswitch
from des.devices.server import Server

ASSUMED = TrainingAssumptions(
    gpu="a100_80",
    model="qwen2_5_0_5b",
    num_microbatches=4,
    sequence_length=1024,
    cards_per_server=4,
    card_bandwidth_bytes_per_s=25e9 / CARD_FRACTION,
    card_step_s=5e-6,
)
CLUSTER = Cluster(
    nodes=tuple(ClusterNode(name=f"n{index}", switch=f"r{index // 2}") for index in range(4)),
    switches=(
        Switch(name="r0", level="rack", parent="z"),
        Switch(name="r1", level="rack", parent="z"),
        Switch(name="z", level="zone"),
    ),
)


def racks(*num_free: int, server: Server | None = None) -> ServerPool:
    """Servers n0 to n3, two a rack, with their first GPUs free."""
    servers = [
        FreeGpus(name=f"n{index}", server=server or switched(), numbers=tuple(range(count)))
        for index, count in enumerate(num_free)
    ]
    return ServerPool(cluster=CLUSTER, servers=tuple(servers))


@pytest.mark.parametrize(
    ("num_free", "total_gpus", "servers", "unit", "is_best"),
    [
        ((8, 4, 8, 8), 16, ("n2", "n3"), ("rack", "r1"), True),
        # Only 4 GPUs are free of each server but one: four shares of 4.
        ((8, 4, 4, 4), 16, ("n0", "n1", "n2", "n3"), ("zone", "z"), False),
        # Three of four servers: both of one rack, and one of the other.
        ((4, 8, 8, 8), 24, ("n1", "n2", "n3"), ("zone", "z"), True),
    ],
)
def test_heavy_communication_takes_few_servers_close_to_each_other(
    num_free, total_gpus, servers, unit, is_best
):
    found = optimise_placement(racks(*num_free), total_gpus, 8, assumed=ASSUMED)
    share = total_gpus // len(servers)

    assert found.servers == servers
    assert found.gpus == (tuple(range(share)),) * len(servers)
    assert (found.level, found.unit) == unit
    assert (
        found.why == f"{share} GPUs on each of {len(servers)} servers, as few and close as can be"
    )
    assert (found.quality == 1.0) == is_best


def test_light_communication_fills_what_is_in_pieces():
    found = optimise_placement(racks(8, 4, 8, 4), 8, 8, kind="mixed", assumed=ASSUMED, mix={8: 1.0})

    assert found.servers == ("n1", "n3")
    assert found.fragmentation_fraction == 0.0
    assert optimise_placement(racks(8, 4, 8, 4), 8, 8, assumed=ASSUMED).servers == ("n0",)


@pytest.mark.parametrize(
    ("kind", "data", "servers"),
    [
        ("communication", ["n3"], ("n3",)),
        ("mixed", ["n3"], ("n3",)),
        ("mixed", ["r1"], ("n2", "n3")),  # data below a switch
    ],
)
def test_servers_near_the_data_are_preferred(kind, data, servers):
    num_gpus, pool = 8 * len(servers), racks(8, 8, 8, 8)
    found = optimise_placement(pool, num_gpus, 8, kind=kind, data_locality=data, assumed=ASSUMED)

    assert found.servers == servers
    assert found.why.endswith(f"; {len(servers)} of {len(servers)} near the data")


def test_the_all_reduce_on_one_server_is_its_ring():
    """8 ranks at 12 NVLinks of 20 GB/s, 3.4 us a step."""
    found = optimise_placement(racks(8), 8, 8, assumed=ASSUMED)

    assert found.all_reduce_s == pytest.approx(14 * (3.4e-6 + 100e6 / 8 / 240e9))
    assert found.quality == 1.0


def test_the_all_reduce_over_servers_is_the_ring_over_two_levels():
    """16 ranks: 14 inner and 1 outer latency each way, the four cards' 100 GB/s set the pace."""
    found = optimise_placement(racks(8, 8), 16, 8, assumed=ASSUMED)

    ring_s = 2 * (14 * 3.4e-6 + 5e-6 + 15 / 16 * 100e6 / 100e9)
    tree_s = 2 * (7 * 3.4e-6 + 5e-6 + 100e6 / 100e9)
    assert found.all_reduce_s == pytest.approx(min(ring_s, tree_s))


def test_a_worse_half_of_a_cube_mesh_has_less_quality():
    """0-1-4-5 has a hop of one NVLink in its ring, as the whole half has two."""
    free = FreeGpus(name="n0", server=cube_mesh(), numbers=(0, 1, 5, 6))
    pool = ServerPool(cluster=CLUSTER, servers=(free,))
    found = optimise_placement(pool, 4, 4, assumed=ASSUMED)
    best = optimise_placement(racks(8, server=cube_mesh()), 4, 4, assumed=ASSUMED)

    assert best.quality == 1.0
    assert found.quality == pytest.approx(best.all_reduce_s / found.all_reduce_s)
    assert found.iteration_s >= best.iteration_s


def test_a_single_gpu_exchanges_nothing_and_computes_all():
    """Passes at half of the peak: FLOPs of the model over 156 TFLOP/s, and the update."""
    one = optimise_placement(racks(8), 1, 8, assumed=ASSUMED)
    half = dataclasses.replace(ASSUMED, attainable_fraction=0.25)

    assert one.all_reduce_s == 0.0
    assert one.quality == 1.0
    slower = optimise_placement(racks(8), 1, 8, assumed=half)
    assert slower.iteration_s == pytest.approx(2 * one.iteration_s, rel=0.05)


def test_parallelism_and_wires_reach_the_simulation():
    tensor = optimise_placement(racks(8), 8, 8, assumed=ASSUMED)
    shape = dataclasses.replace(ASSUMED, parallelism=Parallelism(data=8))
    replicas = optimise_placement(racks(8), 8, 8, assumed=shape)
    slow = dataclasses.replace(ASSUMED, card_bandwidth_bytes_per_s=1e9)

    assert tensor.iteration_s != replicas.iteration_s
    over_cards = [
        optimise_placement(racks(8, 8), 16, 8, assumed=assumed).iteration_s
        for assumed in (ASSUMED, slow)
    ]
    assert over_cards[0] < over_cards[1]


def test_cards_that_the_servers_list_are_taken():
    tokens = [[*row, "PIX"] for row in nvswitch(8)] + [["PIX"] * 8 + ["X"]]
    server = server_of_tokens(tokens, num_cards=1)
    bare = dataclasses.replace(ASSUMED, cards_per_server=None)

    found = optimise_placement(racks(8, 8, server=server), 16, 8, assumed=bare)
    assert found.all_reduce_s > optimise_placement(racks(8, 8), 16, 8, assumed=ASSUMED).all_reduce_s
    with pytest.raises(ValueError, match="server n0: cards_per_server must be given"):
        optimise_placement(racks(8, 8), 16, 8, assumed=bare)
    unknown = dataclasses.replace(bare, card_bandwidth_bytes_per_s=None)
    with pytest.raises(ValueError, match="server n0: card_bandwidth_bytes_per_s must be given"):
        optimise_placement(racks(8, 8, server=server), 16, 8, assumed=unknown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total_gpus": 32}, "total_gpus must be equal shares .* got 32 with 8, 4 free"),
        ({"total_gpus": 0}, "total_gpus must be a whole number"),
        ({"data_locality": ["n9"]}, "data_locality must be names of nodes, .* got 'n9'"),
        ({"mix": {}}, "mix: must hold at least one size"),
        ({"assumed": TrainingAssumptions()}, "gpu must be given, .* got None"),
    ],
)
def test_bad_jobs_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        optimise_placement(
            racks(8, 4), **{"total_gpus": 8, "gpus_per_node": 8, "assumed": ASSUMED} | options
        )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("n0", "n0"), "names of servers must differ, got n0, n0"),
        (("n0", "n7"), "servers must be nodes of the cluster, got 'n7', which is none"),
        ((), "servers must be at least one, got none"),
    ],
)
def test_pools_have_nodes_of_the_cluster_once(names, message):
    servers = [FreeGpus(name=name, server=switched(), numbers=(0,)) for name in names]
    with pytest.raises(ValueError, match=message):
        ServerPool(cluster=CLUSTER, servers=tuple(servers))


def priced(*, uplink_bytes_per_s: float) -> ServerPool:
    """Servers n0 to n3 with all GPUs free, two a rack, whose uplinks are narrow."""
    pool = racks(8, 8, 8, 8)
    switches = tuple(
        dataclasses.replace(one, uplink_bytes_per_s=uplink_bytes_per_s, uplink_latency_s=1e-3)
        if one.level == "rack"
        else one
        for one in CLUSTER.switches
    )
    return ServerPool(cluster=dataclasses.replace(CLUSTER, switches=switches), servers=pool.servers)


def test_jobs_that_compute_are_spread_over_racks_and_pay_their_uplinks():
    """100 GB/s of cards inside a rack, 25 GB/s between racks, 2 ms a step between them."""
    pool = priced(uplink_bytes_per_s=25e9)
    close = optimise_placement(pool, 16, 8, assumed=ASSUMED)
    spread = optimise_placement(pool, 16, 8, kind="compute", assumed=ASSUMED)

    assert (close.servers, close.closeness) == (("n0", "n1"), "optimal")
    assert (spread.servers, spread.closeness) == (("n0", "n2"), "good")
    assert spread.all_reduce_s - close.all_reduce_s == pytest.approx(
        2 * 2e-3 + 30 * (100e6 / 16) * (1 / 25e9 - 1 / 100e9), rel=0.02
    )
    assert spread.quality == pytest.approx(close.all_reduce_s / spread.all_reduce_s)
    assert spread.iteration_s > close.iteration_s
