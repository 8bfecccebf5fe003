"""KV memory and weights over the links of a world, and engines from shapes: cases by hand."""

from itertools import pairwise

import pytest

from des.job.models import architecture_named
from des.serving.engines import engine_named
from des.serving.fleet_engine import run
from des.serving.fleet_links import FleetSites
from des.serving.fleet_settings import StartDelay
from des.serving.shape_engines import kv_bytes_per_token, shape_engine
from des.world.topology import Link, Topology
from des.world.transport import Transport
from tests.fleet_cases import SECOND, Planned, engine, fleet_world, request
from tests.strategies import unit_domain

KEPT = Planned(({},))


def sites(sharing="fifo", hub=False, **changes):
    """West and east with a link of 100 MB/s and 0.5 s, or two of them over a hub."""
    names = ("west", "hub", "east") if hub else ("west", "east")
    links = [
        Link(source=a, target=b, bandwidth_bytes_per_s=1e8, latency_s=0.5)
        for first, second in pairwise(names)
        for a, b in ((first, second), (second, first))
    ]
    topology = Topology.of(
        [unit_domain(name) for name in names], links, transport=Transport(sharing=sharing)
    )
    return FleetSites(topology=topology, domain_of={"prompt": "west", "token": "east"}, **changes)


READ_TOGETHER = [request(0, 0.0, 9, 1), request(1, 0.5, 50, 2), request(2, 0.5, 50, 2)]
"""Two prompts of 50 tokens of 1 MB are read at 2.0 s; each takes 0.5 s on the link."""


@pytest.mark.parametrize(
    ("given", "arrivals_s"),
    [
        (sites("fifo"), (3.0, 3.5)),
        (sites("fair"), (3.5, 3.5)),
        (sites("none"), (3.0, 3.0)),
        (sites("fifo", hub=True), (4.0, 4.5)),
    ],
)
def test_kv_memory_queues_or_shares_the_links_between_domains(given, arrivals_s):
    world = fleet_world(
        READ_TOGETHER, {"prompt": 1, "token": 2}, engine=engine(SECOND), sites=given
    )
    rows = run(world, KEPT).requests
    assert [row.end_s for row in rows[1:]] == pytest.approx([each + 1.0 for each in arrivals_s])


def test_weights_cross_the_link_one_after_the_other_and_delay_kv_memory():
    """Two instances of 200 MB are ordered at 1.0 s: the KV memory of 2.0 s waits until 5.0 s."""
    given = sites(weights_from="west", weights_bytes=2e8)
    start = StartDelay(provision_s=0.0, load_s=99.0, warm_up_s=0.25)
    world = fleet_world(
        READ_TOGETHER[:2],
        {"prompt": 1, "token": 1},
        engine=engine(SECOND),
        sites=given,
        start=start,
    )
    history = run(world, Planned(({"token": 3},)))
    assert [one.active_s for one in history.instances[2:]] == pytest.approx([3.75, 5.75])
    assert history.requests[1].end_s == pytest.approx(5.0 + 0.5 + 0.5 + 1.0)


def test_in_one_domain_nothing_crosses_a_link():
    given = sites()
    together = FleetSites(topology=given.topology, domain_of={"prompt": "west", "token": "west"})
    ends = [
        [row.end_s for row in run(world, KEPT).requests]
        for world in (
            fleet_world(READ_TOGETHER, {"prompt": 1, "token": 1}, sites=each)
            for each in (None, together)
        )
    ]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: sites(weights_from="north"), "weights_from must be one of west, east"),
        (
            lambda: fleet_world(READ_TOGETHER, {"mixed": 1}, sites=sites()),
            r"domain of each of the pools \['mixed'\]",
        ),
        (lambda: engine_named("shapes:llama3_70b:h100"), "MODEL:GPU:NUM_GPUS"),
        (lambda: engine_named("shapes:llama3_70b:h100:1"), "141 GB of weights"),
        (lambda: engine_named("shapes:llama3_70b:h101:8"), "gpu must be one of"),
    ],
)
def test_bad_sites_and_shapes_are_refused(make, named):
    with pytest.raises(ValueError, match=named):
        make()


def test_times_from_shapes_are_a_roofline_and_marked():
    """Llama 3 70B has 70.6e9 parameters; 8 H100 have 26.8 TB/s and 7.9 PFLOP/s."""
    found = shape_engine("llama3_70b", "h100", 8)
    assert found.times_from == "shapes"
    assert found.times.base_s == pytest.approx(2 * 70.55e9 / (8 * 3.35e12 * 0.7), rel=1e-3)
    assert found.times.per_prompt_token_s == pytest.approx(
        2 * 68.45e9 / (8 * 989.5e12 * 0.5), rel=1e-3
    )
    assert found.times.per_context_s == pytest.approx(327680 / (8 * 3.35e12 * 0.7))
    capacity = (0.9 * 8 * 80e9 - 2 * 70.55e9) / 327680
    assert found.kv_capacity_tokens == pytest.approx(capacity, rel=1e-3)
    assert engine_named("h100-llama-3.3-70b-fp8-tp8").times_from == "profile"


def test_latent_attention_keeps_one_vector_a_token():
    """DeepSeek-V3: 61 layers of 512 + 64 elements."""
    assert kv_bytes_per_token(architecture_named("deepseek_v3")) == 2 * 61 * 576
