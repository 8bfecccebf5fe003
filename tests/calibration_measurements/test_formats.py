"""Files of measurements: every sample gives its figures, and damaged ones name file and field."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.measurements.formats import FORMATS, read_file, read_measurements
from calibration.measurements.sites import Sites, read_sites
from calibration.measurements.source_text import SourceText

SAMPLES = Path(__file__).parent / "samples"
TOPO = Path(__file__).parents[1] / "golden" / "topo" / "01-h100-nv18-8gpu-8nic.txt"
SITES = Sites(patterns={"Frankfurt": ("10.1.0.0/16", "fra-*"), "Paris": ("10.2.0.0/16", "par-*")})
THERE, BACK = ("Frankfurt", "Paris"), ("Paris", "Frankfurt")


def found(name):
    """Readings of a sample: what, value to six digits, samples, sites."""
    path = TOPO if name == "topo" else SAMPLES / name
    return [
        (one.what, float(f"{one.value:.6g}"), one.samples, (one.source_site, one.target_site))
        for one in read_measurements([path], SITES)
    ]


def mbit(rate):
    """Bytes/s of a rate in Mbit/s."""
    return float(f"{rate * 1e6 / 8:.6g}")


@pytest.mark.parametrize(
    ("name", "readings"),
    [
        (
            "iperf3_3.12_bidir.json",
            [
                ("bandwidth", mbit(92.909_45), 3, THERE),
                ("round_trip", 0.011757, 1, THERE),
                ("bandwidth", mbit(75.317_06), 3, BACK),
            ],
        ),
        ("iperf3_3.12_reverse.json", [("bandwidth", mbit(76.629_55), 3, BACK)]),
        (
            "iperf3_3.12_parallel.json",
            [("bandwidth", mbit(95.385_3), 3, THERE), ("round_trip", 0.011838, 2, THERE)],
        ),
        (
            "iperf3_3.1.6_one_way.json",
            [("bandwidth", 3186160.0, 3, THERE), ("round_trip", 0.135056, 1, THERE)],
        ),
        (
            "iperf3_3.1.3_udp.json",
            [
                ("rate_at_least", 104_339_000.0, 1, THERE),
                ("jitter", 9.2e-5, 9996, THERE),
                ("loss", 0.00690276, 9996, THERE),
            ],
        ),
        (
            "ping_icmp_req.txt",
            [
                ("loss", 0.25, 4, THERE),
                ("round_trip", 0.0203, 3, THERE),
                ("jitter", 0.030122, 3, THERE),
            ],
        ),
        ("ping_lost.txt", [("loss", 1.0, 3, ("", "Paris"))]),
        (
            "infragraph.yaml",  # four waves of 100 Gbit/s, each way 5.5 ms
            [
                ("server", 8.0, 1, ("", "")),
                ("bandwidth", mbit(400e3), 1, THERE),
                ("bandwidth", mbit(400e3), 1, BACK),
                ("round_trip", 0.011, 1, THERE),
            ],
        ),
        (
            "mtr_0.92.json",
            [
                ("loss", 0.1, 10, THERE),
                ("round_trip", 0.03493, 9, THERE),
                ("jitter", 0.03558, 9, THERE),
            ],
        ),
        (
            "nccl_2.17.8.txt",
            [
                ("bus_bandwidth", 2.287e10, 1, ("Frankfurt",) * 2),
                ("collective", 1.749e-5, 1, ("Frankfurt",) * 2),
            ],
        ),
        (
            "nccl_2.0.0.txt",
            [
                ("bus_bandwidth", 2.166e10, 1, ("Frankfurt",) * 2),
                ("collective", 1.136e-5, 1, ("Frankfurt",) * 2),
            ],
        ),
        (
            "nccl_2.18.json",
            [
                ("bus_bandwidth", 3.7581e11, 1, ("Frankfurt",) * 2),
                ("collective", 1.749e-5, 1, ("Frankfurt",) * 2),
            ],
        ),
        ("megatron.log", [("step", 8.4019, 6, ("", ""))]),
        ("nemo.log", [("step", 6.08, 3, ("", ""))]),
        ("deepspeed.log", [("step", 4.5, 2, ("", ""))]),
        (
            "rccl.json",
            [("bus_bandwidth", 3.13175e11, 1, ("", "")), ("collective", 2.8e-5, 1, ("", ""))],
        ),
        ("torchtitan.log", [("step", 1.1579, 4, ("", ""))]),
        ("topo", [("server", 8.0, 1, ("", ""))]),
        (
            "prometheus.json",
            [
                ("traffic", 1000.0, 3, ("Frankfurt", "")),
                ("gpu_load", 1.0, 3, ("Frankfurt", "")),
                ("bandwidth", 9.5e8, 4, THERE),
                ("round_trip", 0.02, 4, THERE),
            ],
        ),
    ],
)
def test_a_sample_gives_its_figures_in_si_units(name, readings):
    assert found(name) == readings


def test_steps_that_warm_up_or_follow_a_checkpoint_are_left_out():
    """Steps 6 to 12 of the log without step 10, which a checkpoint comes before."""
    (reading,) = read_measurements([SAMPLES / "megatron.log"], SITES)

    assert [step for step, _ in reading.series] == [6, 7, 8, 9, 11, 12]
    assert reading.fact("num_query_groups") == "8"
    assert reading.fact("recompute_granularity") is None


def test_a_run_that_crashed_says_where():
    text = (SAMPLES / "megatron.log").read_text(encoding="utf-8")
    crashed = SourceText(path=Path("a.log"), text=text + "Traceback (most recent call last):\n")
    few = "\n".join([*text.splitlines()[:-9], "Traceback (most recent call last):"])

    assert "Traceback" in read_file(crashed)[0].note
    with pytest.raises(ValueError, match=r"b.log: iteration must go beyond the first 5.*got 5; li"):
        read_file(SourceText(path=Path("b.log"), text=few))


def changed(name, *names, to):
    """Text of a JSON sample with another value for a field."""
    content = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    inside = content
    for key in names[:-1]:
        inside = inside[key]
    inside[names[-1]] = to
    return json.dumps(content)


ONE_WAY = "iperf3_3.12_one_way.json"
RATE = ("end", "sum_received", "bits_per_second")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ((SAMPLES / ONE_WAY).read_text(encoding="utf-8")[:900], "x: not readable as JSON in line"),
        (changed(ONE_WAY, *RATE, to=-5.0), "x: end.sum_received.bits_per_second must be positive"),
        (changed(ONE_WAY, *RATE, to=0), "x: end.sum_received.bits_per_second must be positive"),
        (changed(ONE_WAY, *RATE, to=1.1961e7), "bits_per_second must be 8 x bytes / seconds"),
        (changed(ONE_WAY, "end", to={}), "x: end.sum must be given, got none"),
        (
            changed(ONE_WAY, "intervals", 2, "sum", "start", to=0.5),
            r"x: intervals\[2\].sum.start must be at least 1.*clocks jumped",
        ),
        ((SAMPLES / "iperf3_3.12_error.json").read_text(encoding="utf-8"), "x: error must be left"),
        ((SAMPLES / "nccl_wrong.txt").read_text(encoding="utf-8"), "x: line 14: #wrong must be 0"),
        (
            changed("nccl_2.18.json", "results", 1, "out_of_place", "alg_bw", to=1717.9),
            r"x: results\[1\]: algbw must be size / time, 215 GB/s",
        ),
        (
            changed("prometheus.json", "data", "result", 2, "values", 1, 0, to=1),
            r"x: data.result\[2\].values\[1\]\[0\] must be above .*clocks jumped",
        ),
        (
            changed("prometheus.json", "data", "result", 2, "values", 1, 1, to="-3"),
            r"x: data.result\[2\].values\[1\]\[1\] must be finite and not negative, got '-3'",
        ),
        (
            changed("prometheus.json", "data", "result", 2, "metric", "__name__", to="up"),
            r"x: data.result\[2\].metric.__name__ must be one of node_network",
        ),
        ("PING a (10.2.0.1) 56(84) bytes of data.\n", "x: packets transmitted must be given"),
        (
            (SAMPLES / "rccl.json").read_text(encoding="utf-8").replace('"0"', '"7"', 1),
            r"x: records\[0\].wrong must be 0, got '7'",
        ),
        (
            (SAMPLES / "deepspeed.log").read_text(encoding="utf-8").replace("train_b", "b"),
            "x: train_batch_size must be printed",
        ),
        (
            (SAMPLES / "deepspeed.log").read_text(encoding="utf-8").replace("=25.6", "=-25.6"),
            "x: line 3: rate must be positive, got -25.6",
        ),
        (
            (SAMPLES / "infragraph.yaml").read_text(encoding="utf-8").replace("[4:]", "[5:]"),
            r"x: edges\[0\] must be between two instances one2one, of as many ends, or many2many",
        ),
        ("hello", "x: must be of a known format: iperf3 .*Prometheus.*got 'hello'"),
    ],
)
def test_bad_input_is_one_line_with_file_and_field(text, message):
    with pytest.raises(ValueError, match=f"^{message}" if message[0] == "x" else message) as error:
        read_file(SourceText(path=Path("x"), text=text))

    assert "\n" not in str(error.value)


def test_clocks_of_a_log_that_go_back_are_refused():
    text = (SAMPLES / "torchtitan.log").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="line 14: time must not go back"):
        read_file(SourceText(path=Path("x"), text=text.replace("11:34:20", "11:30:20")))


def test_every_sample_is_of_one_format():
    """No file is taken by chance of the order of the table."""
    for path in (*SAMPLES.glob("*.*"), TOPO):
        file = SourceText(path=path, text=path.read_text(encoding="utf-8"))
        held = [one.name for one in FORMATS if one.holds(file)]
        assert len(held) == (path.suffix != ".md"), (path, held)


@given(rate=st.floats(1e3, 1e12), seconds=st.floats(0.1, 1e4))
def test_any_rate_of_iperf3_is_an_eighth_in_bytes(rate, seconds):
    content = json.loads((SAMPLES / ONE_WAY).read_text(encoding="utf-8"))
    content["end"]["sum_received"] |= {
        "bits_per_second": rate,
        "seconds": seconds,
        "bytes": rate / 8 * seconds,
    }
    first = read_file(SourceText(path=Path("x"), text=json.dumps(content)))[0]

    assert first.value == pytest.approx(rate / 8)


def test_sites_are_told_by_hosts_then_by_the_name_of_the_file(tmp_path):
    sites = tmp_path / "sites.yaml"
    sites.write_text("Frankfurt: ['10.1.0.0/16', 'fra-*']\nParis: 10.2.0.0/16\n", encoding="utf-8")
    folder = tmp_path / "measured"
    folder.mkdir()
    text = (SAMPLES / "ping_20221126.txt").read_text(encoding="utf-8")
    (folder / "Frankfurt_ping.txt").write_text(text, encoding="utf-8")
    readings = read_measurements([folder], read_sites(sites))

    assert {(one.source_site, one.target_site) for one in readings} == {THERE}
    with pytest.raises(ValueError, match=re.escape("10.2.0.5 must be of a site, Rome; got")):
        read_measurements([folder], Sites(patterns={"Rome": ()}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 3\n", "sites.yaml: a: must be a list of host names"),
        ("a: ['10.0.0.0/99']\n", "sites.yaml: sites: a: no subnet, '10.0.0.0/99'"),
        ("- a\n", "sites.yaml: must map sites to patterns"),
    ],
)
def test_a_wrong_file_of_sites_names_the_site(tmp_path, text, message):
    path = tmp_path / "sites.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_sites(path)


def test_a_host_of_two_sites_is_refused():
    sites = Sites(patterns={"a": ("10.0.0.0/8",), "b": ("10.1.0.0/16",)})
    with pytest.raises(ValueError, match="must be of one site, got a and b"):
        sites.of("10.1.0.1")


TEXTS = tuple(path.read_text(encoding="utf-8") for path in (*SAMPLES.glob("*.*"), TOPO))


@given(text=st.sampled_from(TEXTS), at=st.floats(0, 1), what=st.sampled_from(["", "-1", "{", "x"]))
def test_a_file_cut_off_or_damaged_is_read_or_named(text, at, what):
    """No file ends a command with anything but its readings or one line."""
    place = int(at * len(text))
    for damaged in (text[:place], text[:place] + what + text[place + 3 :]):
        try:
            assert read_file(SourceText(path=Path("x"), text=damaged))
        except ValueError as error:
            assert "x" in str(error).split(":")[0]  # noqa: PT017 either is right
