"""Uplinks, downlinks and caps: hand cases, what passes a gate at most, and wide limits."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limited_worlds import limited
from sending import Delivery, Sent, courses, deliver, moving, sent, transports
from strategies import plan, topologies, unit_workload, world

from des import NO_CORRECTIONS, ConcurrentJob, Corrections, Topology, simulate_together
from des.costs.message_times import direct_links, quickest_message_s
from des.engine.filling import Group, max_min_rates
from des.world.access import Access
from des.world.nodes import Nodes
from des.world.transport import Transport

LINKS = {"AB": (6.0, 0.0), "AC": (8.0, 3.0), "BA": (6.0, 0.0), "CA": (8.0, 3.0)}


def star(sharing: str, access: Access, **changes: object) -> Topology:
    """A joined with B at 6 B/s and with C at 8 B/s and 3 s; A has the limits."""
    plain = world("ABC", LINKS)
    first = replace(plain.domains[0], access=access, **changes)
    return replace(plain, domains=(first, *plain.domains[1:]), transport=Transport(sharing=sharing))


def ends_s(topology: Topology, *messages: tuple[str, float, float]) -> list[float]:
    """When messages have left, each of (ends, ready, bytes)."""
    index = {link.source + link.target: at for at, link in enumerate(topology.links)}
    return deliver(
        topology, [Sent(ready_s, size, (index[ends],)) for ends, ready_s, size in messages]
    ).ends_s()


@pytest.mark.parametrize(
    ("access", "messages", "left_s"),
    [
        # Of 10 B/s the first has 6 for 2 s; the second has 4 until then, and 8 behind.
        (Access(uplink_bytes_per_s=10.0), [("AB", 0, 12), ("AC", 0, 24)], [2.0, 4.0]),
        # The second waits for AB until 2 s, and has it from 2 s to 3 s; the third has 4 of 10.
        (
            Access(uplink_bytes_per_s=10.0),
            [("AB", 0, 12), ("AB", 0, 6), ("AC", 1, 8)],
            [2.0, 3.0, 3.0],
        ),
        # A full uplink is waited for.
        (Access(uplink_bytes_per_s=6.0), [("AB", 0, 12), ("AC", 1, 12)], [2.0, 4.0]),
        # A host sends to all sites together what its cap allows.
        (Access(host_cap_bytes_per_s=6.0), [("AB", 0, 12), ("AC", 0, 12)], [2.0, 4.0]),
    ],
)
def test_messages_share_what_a_site_may_send_by_hand(access, messages, left_s):
    assert ends_s(star("fifo", access), *messages) == left_s


def test_a_downlink_is_shared_by_senders_of_several_sites():
    topology = star("fifo", Access(downlink_bytes_per_s=10.0))

    assert ends_s(topology, ("BA", 0, 12), ("CA", 0, 24)) == [2.0, 4.0]
    assert ends_s(topology, ("AB", 0, 12), ("AC", 0, 24)) == [2.0, 3.0]  # the other way is free


def test_fair_messages_share_the_uplink_by_max_min_fairness():
    """5 B/s each; from 1 s on 6/2 on AB and 4 on AC; from 2 s on 5 each; from 2.8 s on 6."""
    topology = star("fair", Access(uplink_bytes_per_s=10.0))

    found = ends_s(topology, ("AB", 0, 8), ("AB", 1, 12), ("AC", 0, 13))

    assert found == pytest.approx([2.0, 2.8 + 5 / 6, 2.8])


@pytest.mark.parametrize("sharing", ["fifo", "fair", "none"])
@pytest.mark.parametrize(
    ("access", "rate"),
    [
        (Access(flow_cap_bytes_per_s=0.5), 3.0),  # 2 pairs of 3 flows
        (Access(host_cap_bytes_per_s=1.5), 3.0),  # 2 of 4 hosts
        (Access(uplink_bytes_per_s=2.0, flow_cap_bytes_per_s=0.5), 2.0),
    ],
)
def test_a_message_has_as_many_flows_and_hosts_as_endpoints(sharing, access, rate):
    nodes = Nodes(
        gpus_per_node=2, nics_per_node=1, nic_bandwidth_bytes_per_s=1.0, nic_latency_s=0.0
    )
    topology = star(sharing, access, num_gpus=8, nodes=nodes)
    others = tuple(replace(one, num_gpus=2) for one in topology.domains[1:])
    rules = replace(topology.transport, num_endpoint_pairs=2, flows_per_pair=3)
    topology = replace(topology, domains=(topology.domains[0], *others), transport=rules)

    assert ends_s(topology, ("AB", 0, 12)) == [12 / rate]
    assert direct_links(topology)[0][0, 1] == rate
    assert quickest_message_s(topology, 0, 1, 12, NO_CORRECTIONS)[0] == 12 / rate


def test_domains_of_a_site_share_its_uplink_and_its_lines():
    """B and C are one site of 7 B/s; between them nothing is limited."""
    plain = world("ABC", LINKS | {"BC": (100.0, 0.0)})
    access = Access(uplink_bytes_per_s=7.0)
    there = tuple(replace(one, site="S", access=access) for one in plain.domains[1:])
    topology = replace(plain, domains=(plain.domains[0], *there))

    assert [gate.name for gate in topology.gates] == ["line of A->S", "line of S->A", "uplink of S"]
    assert ends_s(topology, ("BA", 0, 12), ("CA", 0, 8), ("BC", 0, 100)) == [2.0, 2 + 6 / 7, 1.0]
    assert ends_s(topology, ("AB", 0, 12), ("AC", 0, 20)) == [2.0, 4.0]  # a line of 8 B/s


@pytest.mark.parametrize(
    ("priorities", "ends_s"), [((0, 0), (2.0, 2.25)), ((0, 1), (1.75 + 4.5 / 6, 1.75))]
)
def test_jobs_share_an_uplink(priorities, ends_s):
    """Both send 6 bytes at 1 s; the one that goes first has its whole link, the other one 4 or 2.

    Of 10 B/s AB takes 6 and leaves 4 until 2 s, or AC takes 8 and leaves 2 until 1.75 s.
    """
    topology = star("fifo", Access(uplink_bytes_per_s=10.0))
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1, message_bytes=6.0)
    jobs = [
        ConcurrentJob(workload=workload, plan=plan(0, there), priority=priority)
        for there, priority in zip((1, 2), priorities, strict=True)
    ]

    found = simulate_together(topology, jobs)

    assert [job.transfers[0].end_s for job in found] == list(ends_s)


def test_corrections_of_the_wan_scale_limits_too():
    topology = star("fifo", Access(uplink_bytes_per_s=10.0))
    sending = [Sent(0.0, 12.0, (0,)), Sent(0.0, 24.0, (1,))]

    half = deliver(topology, sending, Corrections(wan_bandwidth_factor=0.5))

    assert half.ends_s() == [4.0, 8.0]


def passed_too_fast(topology: Topology, found: Delivery, messages: list[Sent]) -> list[str]:
    """Gates through which more bytes went in some span than their rate allows."""
    hops = [
        (hop.link, hop.start_s, hop.end_s, message.num_bytes)
        for own, message in zip(found.hops, messages, strict=True)
        for hop in own
    ]
    broken = []
    for gate in topology.gates:
        own = [hop for hop in hops if hop[0] in gate.links]
        for (_, start_s, _, _), (_, _, end_s, _) in product(own, own):
            inside = sum(size for _, start, end, size in own if start_s <= start and end <= end_s)
            if inside > gate.rate_bytes_per_s * max(0.0, end_s - start_s) * (1 + 1e-9) + 1e-9:
                broken.append(gate.name)
    return broken


@given(
    data=st.data(),
    open_world=topologies(min_domains=3, max_domains=3, fully=True),
    sharing=st.sampled_from(["fifo", "fair"]),
    course=st.none() | courses(),
)
def test_no_more_bytes_pass_a_gate_in_a_span_than_its_rate_allows(
    data, open_world, sharing, course
):
    links = tuple(replace(one, bandwidth_bytes_per_s=5.0) for one in open_world.links)
    plain = replace(open_world, links=links, transport=Transport(sharing=sharing))
    topology = data.draw(limited(plain, st.floats(1.0, 12.0)))
    messages = data.draw(sent(*((link,) for link in range(6))))

    found = deliver(topology if course is None else moving(topology, *course), messages)

    assert not passed_too_fast(topology, found, messages)
    for own, message in zip(found.hops, messages, strict=True):
        cap = topology.message_caps_bytes_per_s[message.route[0]]
        assert message.num_bytes / cap <= (own[0].end_s - own[0].start_s) * (1 + 1e-9) + 1e-9


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    rules=transports(sharings=("fifo", "none")),
)
def test_limits_wider_than_all_links_change_nothing(data, topology, rules):
    plain = replace(topology, transport=replace(rules, half_duplex=False))
    rate = sum(link.bandwidth_bytes_per_s for link in topology.links)
    access = Access(uplink_bytes_per_s=rate, downlink_bytes_per_s=rate)
    wide = replace(plain, domains=tuple(replace(one, access=access) for one in plain.domains))
    messages = data.draw(sent(*((link,) for link in range(len(topology.links)))))

    assert wide.gates
    assert deliver(wide, messages) == deliver(plain, messages)


@given(
    groups=st.lists(
        st.builds(
            Group,
            st.integers(1, 4),
            st.floats(0.1, 10.0),
            st.sets(st.sampled_from("abc"), min_size=1).map(tuple),
        ),
        min_size=1,
        max_size=6,
    ),
    rates=st.tuples(*(st.floats(0.1, 10.0),) * 3),
)
def test_fair_rates_have_a_bottleneck_each(groups, rates):
    """Max-min fair: who has less than it can use shares something full, of which none has more."""
    shared = dict(zip("abc", rates, strict=True))

    found = max_min_rates(groups, shared)

    used = {
        name: sum(own.num * rate for own, rate in zip(groups, found, strict=True)
                  if name in own.shares)
        for name in shared
    }  # fmt: skip
    assert all(used[name] <= shared[name] * (1 + 1e-9) for name in shared)
    for own, rate in zip(groups, found, strict=True):
        assert rate == own.most_bytes_per_s or any(
            used[name] == pytest.approx(shared[name])
            and all(other <= rate * (1 + 1e-9) for each, other in zip(groups, found, strict=True)
                    if name in each.shares)
            for name in own.shares
        )  # fmt: skip
