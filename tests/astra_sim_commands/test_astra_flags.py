"""Flags of the commands: what is read, and what is refused."""

import re

import pytest
from astra_traces import ALL_REDUCE, Case, collective, network_file, system_file
from command_runs import ALL_REDUCES, PAIR, finished

from astra_sim import aware, unaware
from astra_sim.commands.flags import parse_flags
from astra_sim.files.errors import AstraSimUsageError

REQUIRED = [
    "--workload-configuration=w",
    "--system-configuration=s",
    "--remote-memory-configuration=m",
    "--network-configuration=n",
]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--workload-configuration", "x y"], "workload_configuration", "x y"),
        (["--system-configuration=a", "--system-configuration", "b"], "system_configuration", "b"),
        (["--network-configuration=a=b"], "network_configuration", "a=b"),
        ([], "comm_group_configuration", None),
        (["--comm-group-configuration=groups.json"], "comm_group_configuration", "groups.json"),
        (["--comm-group-configuration=/not-empty/g"], "comm_group_configuration", None),
        ([], "num_queues_per_dim", 1),
        (["--num-queues-per-dim", "4"], "num_queues_per_dim", 4),
        ([], "injection_scale", 1.0),
        (["--injection-scale=.5e1"], "injection_scale", 5.0),
        ([], "rendezvous_protocol", False),
        (["--rendezvous-protocol"], "rendezvous_protocol", True),
        (["--rendezvous-protocol", "false"], "rendezvous_protocol", True),
        (["--rendezvous-protocol=true"], "rendezvous_protocol", True),
        (["--rendezvous-protocol=1"], "rendezvous_protocol", True),
        (["--rendezvous-protocol=0"], "rendezvous_protocol", False),
        (["--rendezvous-protocol", "--rendezvous-protocol=false"], "rendezvous_protocol", False),
        (["--compute-scale=2"], "compute_scale", 2.0),
        (["--comm-scale", "-1"], "comm_scale", -1.0),
        ([], "logging_folder", "log"),
        (["--logging-configuration=log.toml"], "logging_configuration", "log.toml"),
        ([], "strict", False),
        (["--strict"], "strict", True),
        (["--trace=t.json"], "trace", "t.json"),
        (["--multi-dimensional"], "multi_dimensional", True),
        (["--unknown", "stray", "-x", "num-queues-per-dim=9", "--"], "num_queues_per_dim", 1),
        (["--unknown=1", "--num-queues-per-dim=2", "word"], "num_queues_per_dim", 2),
    ],
)
def test_flags_are_read(words, field, value):
    read = getattr(parse_flags([*REQUIRED, *words]), field)

    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (REQUIRED[1:], "--workload-configuration: must be given"),
        ([*REQUIRED, "--num-queues-per-dim=two"], "--num-queues-per-dim: .* got 'two'"),
        ([*REQUIRED, "--num-queues-per-dim=0"], "--num-queues-per-dim: .* at least 1"),
        ([*REQUIRED, "--num-queues-per-dim=1.5"], "--num-queues-per-dim: must be an integer"),
        ([*REQUIRED, "--num-queues-per-dim"], "--num-queues-per-dim: must have a value"),
        ([*REQUIRED, "--injection-scale=fast"], "--injection-scale: must be a finite number"),
        ([*REQUIRED, "--injection-scale=nan"], "--injection-scale: must be a finite number"),
        ([*REQUIRED, "--injection-scale=1e999"], "--injection-scale: must be a finite number"),
        ([*REQUIRED, "--injection-scale=-1"], "--injection-scale: must not be negative"),
        ([*REQUIRED, "--comm-scale="], "--comm-scale: must be a finite number"),
        ([*REQUIRED, "--rendezvous-protocol=maybe"], "--rendezvous-protocol: must be true"),
    ],
)
def test_wrong_flags_are_refused(words, message):
    with pytest.raises(AstraSimUsageError, match=message):
        parse_flags(words)


@pytest.mark.parametrize("main", [unaware.main, aware.main])
@pytest.mark.parametrize("words", [[], ["--help"]])
def test_missing_flags_end_with_the_usage(main, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert main(words) == 255
    output = capsys.readouterr()
    assert output.out == ""
    assert "--network-configuration: must be given" in output.err
    assert "* --workload-configuration=PREFIX" in output.err
    assert re.search(r"  --strict\[=BOOL\] +extension:", output.err)
    assert not list(tmp_path.iterdir())  # no log folder either


@pytest.mark.parametrize(
    ("flags", "cycles"),
    [([], 20031), (["--rendezvous-protocol"], 20683), (["--rendezvous-protocol=0"], 20031)],
)
def test_rendezvous_flag(flags, cycles, capsys, tmp_path):
    """1 MiB on a ring of two at 50 GB/s and 500 ns, with and without a control message."""
    assert unaware.main(PAIR.write(tmp_path) + flags) == 0
    assert finished(capsys.readouterr().out) == {0: cycles, 1: cycles}


def test_injection_scale_multiplies_the_endpoint_delay(capsys, tmp_path):
    """Seven local moves of 10 ns become seven of 30 ns."""
    assert unaware.main([*ALL_REDUCES.write(tmp_path), "--injection-scale", "3"]) == 0
    assert finished(capsys.readouterr().out)[0] == 33829 + 7 * 20


@pytest.mark.parametrize(
    ("delay_ns", "scale", "came"),
    [(2**31, "1", 2**31), (2**30, "2", 2**31), (10, "1e308", 2**64)],
)
def test_an_endpoint_delay_beyond_32_bits_is_refused(delay_ns, scale, came, capsys, tmp_path):
    """2^31 - 1 ns pass, as given and scaled."""
    system = system_file(endpoint_delay=delay_ns)
    flags = ALL_REDUCES.changed(system=system).write(tmp_path)
    narrower = ALL_REDUCES.changed(system=system_file(endpoint_delay=2**31 - 1))

    assert unaware.main([*flags, f"--injection-scale={scale}"]) == 134
    (line,) = capsys.readouterr().err.splitlines()
    assert "system.json: endpoint-delay" in line
    assert (
        f"must be less than 2^31 (2147483648), as the original cuts off further bits, got {came}"
        in line
    )
    assert unaware.main(narrower.write(tmp_path)) == 0
    assert finished(capsys.readouterr().out)[0] == 33829 + 7 * (2**31 - 1 - 10)


def test_number_of_queues_reaches_the_system(capsys, tmp_path):
    """Two chunks in two queues run at once, two in one queue one after the other."""
    system = system_file(preferred_dataset_splits=2, collective_optimization="baseline")
    case = ALL_REDUCES.changed(system=system)
    flags = case.write(tmp_path)

    unaware.main(flags)
    one_queue = finished(capsys.readouterr().out)[0]
    unaware.main([*flags, "--num-queues-per-dim=2"])
    two_queues = finished(capsys.readouterr().out)[0]
    assert two_queues < one_queue


def test_several_dimensions_want_a_flag_in_the_aware_command(capsys, tmp_path):
    network = network_file(["Ring", "Switch"], [3, 2], [50.0, 50.0], [500.0, 500.0])
    ranks = [[collective(0, ALL_REDUCE, 2**20)]] * 6
    case = Case(ranks=ranks, network=network, system=system_file(["ring", "ring"]))
    flags = case.write(tmp_path)

    assert aware.main(flags) == 255
    assert "--multi-dimensional" in capsys.readouterr().err
    assert aware.main([*flags, "--multi-dimensional"]) == 0
    assert set(finished(capsys.readouterr().out)) == set(range(6))


@pytest.mark.parametrize("flag", ["system", "remote-memory", "network", "comm-group"])
def test_missing_file_is_one_line(flag, capsys, tmp_path):
    flags = [*ALL_REDUCES.write(tmp_path), f"--{flag}-configuration={tmp_path / 'nowhere.json'}"]

    assert unaware.main(flags) in (1, 134, 255)
    (line,) = capsys.readouterr().err.splitlines()
    assert "nowhere.json" in line
