"""`eastwest measure`: files of two sites become a world that other commands read."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_output import assert_refused
from hypothesis import given
from hypothesis import strategies as st
from strategies import free_world, world

from calibration.measurements.device_names import kind_of_device
from calibration.measurements.reading import Reading
from des import Link, OrnsteinUhlenbeck, Product, read_topology
from des.dynamics import Replay
from scenarios.measuring.changes import apply_measurements
from scenarios.measuring.combined import Combined, latencies
from scenarios.measuring.command import main
from scenarios.measuring.courses import fit_course
from scenarios.measuring.measured_world import measured_world

SAMPLES = Path(__file__).parents[1] / "calibration_measurements" / "samples"
GPUS = ("--site-gpus", "Frankfurt=16*h100,Paris=8*a100_80")
AB = {"source_site": "A", "target_site": "B"}


def reading(what, value, **fields):
    """A reading between sites A and B (default)."""
    known = {"file": "x", "format": "made"} | AB | fields
    return Reading(what=what, value=value, **known)


@pytest.fixture
def folder(tmp_path):
    """Measurements of two sites, as they are, with a file of sites beside them."""
    inside = tmp_path / "measured"
    inside.mkdir()
    for name in ("iperf3_3.12_bidir.json", "mtr_0.92.json", "nccl_2.18.json", "megatron.log"):
        shutil.copy(SAMPLES / name, inside)
    (tmp_path / "sites.yaml").write_text(
        "Frankfurt: ['10.1.0.0/16', 'fra-*']\nParis: ['10.2.0.0/16', 'par-*']\n", encoding="utf-8"
    )
    return tmp_path


def made(folder, *flags, out="now.yaml"):
    """Run the command on the folder and return the world that it wrote."""
    sites = ("--sites", str(folder / "sites.yaml"))
    argv = [str(folder / "measured"), *sites, *flags, "--out", str(folder / out)]
    assert main(argv) == 0
    return read_topology(folder / out)


def test_a_folder_becomes_a_world_of_what_was_measured(folder, capsys):
    """Bandwidths of both ways of iperf3, half of mtr's round trip, rings of the collective."""
    topology = made(folder, *GPUS)
    there, back = topology.links
    frankfurt, paris = topology.domains

    assert (there.source, there.target) == ("Frankfurt", "Paris")
    assert there.bandwidth_bytes_per_s == pytest.approx(92.909e6 / 8, rel=1e-4)
    assert back.bandwidth_bytes_per_s == pytest.approx(75.317e6 / 8, rel=1e-4)
    assert there.latency_s == back.latency_s == pytest.approx(0.03493 / 2)
    assert (frankfurt.num_gpus, frankfurt.gpu_kind, paris.gpu_kind) == (16, "h100", "a100_80")
    assert frankfurt.intra_bandwidth_bytes_per_s == pytest.approx(214.7483648e9 * 1.75)
    assert frankfurt.intra_latency_s == pytest.approx(17.49e-6 / 14)
    assert topology.transport.packets.loss_fraction == pytest.approx(0.1)
    shown = capsys.readouterr().out
    assert "assumed, not measured: domain Paris: intra_bandwidth" in shown
    assert "not used: step of megatron.log: steps of training are for" in shown


def test_a_world_brought_up_to_date_keeps_what_was_not_measured(folder, capsys):
    before = made(folder, *GPUS)
    for name in ("iperf3_3.12_bidir.json", "nccl_2.18.json"):
        (folder / "measured" / name).unlink()
    capsys.readouterr()
    after = made(folder, "--network", str(folder / "now.yaml"), "--json", out="then.yaml")
    document = json.loads(capsys.readouterr().out)

    assert after == before
    assert [one["field"] for one in document["changes"]] == ["latency", "latency", "loss_fraction"]
    assert document["changes"][0]["before"] == document["changes"][0]["after"]


def test_a_world_keeps_the_profiles_beside_it(folder):
    columns = "gpu,layer,hidden_size,tensor,microbatch_size,sequence,"
    times = "forward_s,input_gradient_s,weight_gradient_s\nh100,dense,64,1,1,64,1,1,1\n"
    (folder / "layers.csv").write_text(columns + times, encoding="utf-8")
    made(folder, *GPUS)
    path = folder / "now.yaml"
    shaped = "layer_times: shapes"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace(shaped, "layer_times: profile\n    profile: layers.csv", 1), "utf-8"
    )
    before = read_topology(path)

    assert before.domains[0].profile is not None
    assert made(folder, "--network", str(path), out="then.yaml") == before


def test_series_are_replayed(folder):
    shutil.copy(SAMPLES / "prometheus.json", folder / "measured")
    law = made(folder, *GPUS, "--law", "replay").dynamics

    assert isinstance(law, Replay)
    assert law.holds_last
    there = law.series_of(
        Link(source="Frankfurt", target="Paris", bandwidth_bytes_per_s=1, latency_s=1)
    )
    assert there.bandwidths_bytes_per_s[:4] == (1e9, 9e8, 8e8, 1e9)
    assert there.latencies_s[:2] == (0.01, 0.0105)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "domain Paris: GPUs must be known by a collective"),
        (("--site-gpus", "Frankfurt=16"), "site_gpus must be SITE=COUNT"),
        (
            ("--site-gpus", "Rome=8*h100"),
            "--site-gpus must name a measured site, Frankfurt, Paris; got Rome",
        ),
        ((*GPUS, "--law", "fitted"), "--law fitted must have 20 values of a link at least, got 3"),
        (
            ("--network", "east_central_west"),
            "Frankfurt must be a site of the world, Central, East",
        ),
        (("--network", "none.yaml"), "none.yaml"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_written(folder, flags, message, capsys):
    argv = [str(folder / "measured"), "--sites", str(folder / "sites.yaml"), *flags]
    out = folder / "now.yaml"
    assert_refused(main, [*argv, "--out", str(out)], message, capsys, unwritten=out)


def test_a_link_without_latency_is_refused():
    with pytest.raises(ValueError, match="link A->B: latency must be measured, by ping or mtr"):
        measured_world([reading("bandwidth", 1e9)], {"A": (8, "h100"), "B": (8, "h100")})


@given(st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=9))
def test_a_latency_is_half_of_the_median_round_trip_either_way(trips_s):
    """Round trips from A to B and from B to A count alike, in any order."""
    there = [reading("round_trip", one) for one in trips_s]
    back = [
        reading("round_trip", one, source_site="B", target_site="A") for one in reversed(trips_s)
    ]
    found = latencies(there), latencies(back)

    assert found[0]["A", "B"].value == found[1]["A", "B"].value
    assert found[0]["A", "B"].value == pytest.approx(float(np.median(trips_s)) / 2)


def test_round_trips_under_load_count_only_where_there_are_no_others():
    loaded = reading("round_trip", 0.5, note="under load")
    bare = reading("round_trip", 0.02)

    assert latencies([loaded])["A", "B"].value == 0.25
    assert latencies([loaded, bare])["A", "B"].value == 0.01


def test_one_reading_keeps_its_spread_and_several_have_that_of_their_values():
    one = Combined.of([reading("bandwidth", 8.0, spread=2.0)], lambda each: each.value / 2)
    many = Combined.of([reading("bandwidth", float(value), spread=9.0) for value in range(1, 6)])

    assert (one.value, one.spread) == (4.0, 1.0)
    assert (many.value, many.spread, many.samples) == (3.0, 2.0, 5)


def test_measurements_of_one_link_leave_the_others(folder):
    topology = world("ABC", {"AB": (1.0, 1.0), "BA": (1.0, 1.0), "BC": (3.0, 0.5)})
    measured = apply_measurements(topology, [reading("bandwidth", 2.0)])

    assert [link.bandwidth_bytes_per_s for link in measured.topology.links] == [2.0, 1.0, 3.0]
    assert "link B->C: bandwidth" in measured.assumed
    assert "link A->B: bandwidth" not in measured.assumed


def drawn(law, seed, count):
    """Series of a link as a law draws it."""
    topology = world("AB", {"AB": (1e9, 0.01)})
    path = law.path(topology.links, seed)
    times_s = [10.0 * at for at in range(count)]
    rates = [1e9 * path.piece_at(0, at).bandwidth_factor for at in times_s]
    series = tuple(zip(times_s, rates, strict=True))
    return topology, [reading("bandwidth", 1e9, series=series)]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_law_that_drew_a_series_is_found_again(seed):
    """3,000 values at a sixth of the relaxation: sigma within 15 %, relaxation within 30 %."""
    law = OrnsteinUhlenbeck(bandwidth_sigma=0.3, relaxation_s=60.0, interval_s=10.0)
    topology, readings = drawn(law, seed, 3000)
    fitted = fit_course(readings, topology)

    assert fitted.law == fitted.wander
    assert fitted.wander.interval_s == 10.0
    assert fitted.wander.bandwidth_sigma == pytest.approx(0.3, rel=0.15)
    assert fitted.wander.relaxation_s == pytest.approx(60.0, rel=0.3)
    assert fitted.distance < 0.1


def test_outages_have_the_mean_dwells_by_hand():
    """Of 40 values 10 s apart two stretches are down, of 3 and 1: 20 s down, 180 s up."""
    rates = [1e9, 1.1e9] * 20
    for at in (5, 6, 7, 30):
        rates[at] = 0.0
    series = tuple((10.0 * at, rate) for at, rate in enumerate(rates))
    topology = world("AB", {"AB": (1e9, 0.01)})
    fitted = fit_course([reading("bandwidth", 1e9, series=series)], topology)

    assert isinstance(fitted.law, Product)
    up, down = fitted.law.laws[1].states
    assert (up.mean_dwell_s, down.mean_dwell_s) == (180.0, 20.0)
    assert down.bandwidth_factor == 0.0
    assert "2 outages" in fitted.line()


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100_pcie"),
        ("NVIDIA A100-SXM4-40GB", "a100_40"),
        ("NVIDIA GH200 120GB", "gh200"),
        ("Tesla V100-SXM2-32GB", "v100_32"),
        ("NVIDIA GeForce RTX 4090", "rtx_4090"),
        ("AMD Instinct MI300X", "mi300x"),
    ],
)
def test_a_device_is_of_a_kind_by_its_name(device, kind):
    assert kind_of_device("A", device) == kind


def test_an_unknown_device_is_not_guessed():
    with pytest.raises(ValueError, match="GPU 'NVIDIA Graphics Device' must be of one kind, got n"):
        kind_of_device("A", "NVIDIA Graphics Device")


def transfer(target, rate, start_s, source="A"):
    """Ten seconds of iperf3 between two sites."""
    return reading(
        "bandwidth",
        rate,
        format="iperf3",
        source_site=source,
        target_site=target,
        time_s=start_s,
        series=tuple((float(at), rate) for at in range(10)),
    )


@pytest.mark.parametrize("way", ["uplink", "downlink"])
def test_links_that_carry_less_together_share_a_limit(way):
    """Each link of A carries 10, both at once 7 and 5: they share 12, and each still has 10."""
    ends = {"uplink": lambda other: ("A", other), "downlink": lambda other: (other, "A")}[way]
    readings = [
        transfer(target, rate, start_s, source)
        for other, rate, start_s in (
            *(("B", 10e9, 0.0), ("C", 10e9, 20.0)),
            *(("B", 7e9, 40.0), ("C", 5e9, 42.0)),
        )
        for source, target in (ends(other),)
    ]
    found = apply_measurements(free_world(3), readings)
    changes = {(one.owner, one.field): one.after.value for one in found.changes}

    assert changes["site A", way] == pytest.approx(12e9)
    assert getattr(found.topology.domains[0].access, f"{way}_bytes_per_s") == 12e9
    assert {value for (_, field), value in changes.items() if field == "bandwidth"} == {10e9}
    assert found.unused == []


def test_links_that_carry_as_much_together_or_were_never_alone_share_no_limit():
    """Nothing tells an uplink from a link that has been measured together with others alone."""
    free = [transfer(*one) for one in (("B", 10e9, 0.0), ("C", 9e9, 20.0))]
    free += [transfer("B", 9.5e9, 40.0), transfer("C", 8.8e9, 40.0)]
    together = [transfer("B", 7e9, 40.0), transfer("C", 5e9, 40.0)]
    for readings in (free, together):
        found = apply_measurements(free_world(3), readings)

        assert {one.field for one in found.changes} == {"bandwidth"}
        assert "site A: uplink" in found.assumed


def test_figures_that_were_written_down_count_where_nothing_was_measured():
    noted = [
        reading("bandwidth", 4e9, note="as written down"),
        reading("bandwidth", 9e9, source_site="B", target_site="A", note="as written down"),
    ]
    found = apply_measurements(free_world(2), [*noted, reading("bandwidth", 1e9)])

    assert [one.after.value for one in found.changes] == [1e9, 9e9]
    assert [why for _, why in found.unused] == ["as written down; others are not"]
