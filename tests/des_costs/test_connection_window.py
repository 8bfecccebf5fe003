"""Windows of the hosts' connections: by hand, and what holds for any messages."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import corrections, plan, topologies, unit_workload, workloads, world
from ties import any_plans

from des import Corrections, Transport, simulate
from des.compiled.simulate import simulate_compiled
from des.costs.connection_window import (
    FIRST_WINDOW_BYTES,
    window_after_idle,
    window_figures,
    windowed_delay_s,
)
from des.plan.transport_law import TransportLaw
from des.world.hosts import HOSTS, Hosts

DEFAULT, TUNED = HOSTS["linux_default"], HOSTS["linux_tuned"]


def test_a_send_buffer_of_4_mb_gives_250_mbit_s_over_a_round_trip_of_80_ms():
    """Of a link of 1 Gbit/s: the measured figure that the share of the buffer is from."""
    figures = window_figures(DEFAULT, 125e6, 0.08)
    num_bytes = 100e6
    delay_s, _ = windowed_delay_s(figures, (figures.most_bytes, -1.0, 0.0), 0.0, num_bytes)

    assert 8 * num_bytes / (num_bytes / 125e6 + delay_s) == pytest.approx(250e6, rel=0.02)
    tuned = window_figures(TUNED, 125e6, 0.08)
    assert windowed_delay_s(tuned, (tuned.most_bytes, -1.0, 0.0), 0.0, num_bytes)[0] == 0.0


def test_an_idle_connection_starts_slowly():
    """2 s are 6 timeouts of 0.3 s: 1.4 MB become 21.9 kB, which take 5 rounds to reach 0.7 MB."""
    figures = window_figures(DEFAULT, 1e7, 0.1)
    assert figures.most_bytes == pytest.approx(1.4e6)
    window_bytes = window_after_idle(figures, figures.most_bytes, 2.0)
    assert window_bytes == pytest.approx(1.4e6 / 2**6)

    delay_s, memory = windowed_delay_s(figures, (window_bytes, -1.0, 0.0), 0.0, 5e6)
    assert delay_s == pytest.approx(6 * 0.1 - 63 * window_bytes / 1e7)
    assert memory[0] == pytest.approx(1.4e6)
    assert window_after_idle(window_figures(TUNED, 1e7, 0.1), 1.4e6, 2.0) == 1.4e6


@given(
    window_bytes=st.floats(FIRST_WINDOW_BYTES, 1e8),
    sizes=st.lists(st.floats(0.0, 1e7), min_size=1, max_size=6),
    rate=st.floats(1e5, 1e10),
    round_trip_s=st.floats(1e-4, 0.5),
)
def test_messages_in_a_row_leave_as_one_would(window_bytes, sizes, rate, round_trip_s):
    """Splitting what is sent at once changes nothing, and no window makes a link quicker."""
    figures = window_figures(DEFAULT, rate, round_trip_s)
    memory, now_s = (min(window_bytes, figures.most_bytes), -round_trip_s, 0.0), 0.0
    whole_s, whole = windowed_delay_s(figures, memory, 0.0, sum(sizes))
    for num_bytes in sizes:
        delay_s, memory = windowed_delay_s(figures, memory, now_s, num_bytes)
        assert delay_s >= 0.0
        now_s += delay_s + num_bytes / rate

    assert now_s == pytest.approx(whole_s + sum(sizes) / rate, rel=1e-6, abs=2 * round_trip_s)
    assert memory[0] <= max(window_bytes, figures.most_bytes)
    assert whole[0] <= max(window_bytes, figures.most_bytes)


def test_an_iteration_begins_with_the_windows_of_the_one_before():
    """The link rests while two stages compute for 100 s, so both its messages start slowly."""
    links = dict.fromkeys(("AB", "BA"), (1e7, 0.05))
    workload = unit_workload([(50, 50)] * 2, num_microbatches=1, message_bytes=5e6)
    times_s = {
        hosts: simulate(
            replace(world("AB", links), transport=Transport(hosts=hosts)), workload, plan(0, 1)
        ).makespan_s
        for hosts in (None, TUNED, DEFAULT)
    }
    figures = window_figures(DEFAULT, 1e7, 0.1)
    delay_s, _ = windowed_delay_s(figures, (FIRST_WINDOW_BYTES, -1.0, 0.0), 0.0, 5e6)

    assert times_s[None] == times_s[TUNED] == pytest.approx(200.0 + 2 * 0.55)
    assert times_s[DEFAULT] == pytest.approx(times_s[None] + 2 * delay_s)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    corrected=corrections(),
    hosts=st.builds(Hosts, send_buffer_bytes=st.floats(1e3, 1e8), restart_after_idle=st.booleans()),
)
def test_both_engines_remember_alike(data, topology, workload, corrected, hosts):
    chosen = data.draw(any_plans(topology, workload))
    case = (
        replace(topology, transport=Transport(hosts=hosts)),
        workload,
        chosen,
        replace(corrected, transport=None),
    )
    try:
        expected = simulate(*case)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:30]):
            simulate_compiled(*case)
        return
    assert simulate_compiled(*case) == expected


def test_a_law_of_the_transport_and_windows_of_hosts_are_refused():
    law = TransportLaw(connections="reused", first_window_bytes=1.0, segment_bytes=1.0)
    topology = replace(world("AB", {}), transport=Transport(hosts=DEFAULT))
    workload = unit_workload([(1, 1)], num_microbatches=1)

    with pytest.raises(ValueError, match="corrections: transport must be left out where the hosts"):
        simulate(topology, workload, plan(0), Corrections(transport=law))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"send_buffer_bytes": 0.0}, "send_buffer_bytes must be"),
        ({"restart_after_idle": 1}, "must be True or False"),
    ],
)
def test_hosts_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        replace(DEFAULT, **fields)
