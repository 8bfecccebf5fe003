"""Laws of a transport on a grid by the command, measured by ns-3 where it is installed."""

import pandas as pd
import pytest
from command_output import error_of
from test_recorded_flows import process

from calibration.commands.main import main
from calibration.packet.process import ns3_version
from calibration.reference.binaries import ReferenceRunError

__all__ = ["process"]

FLAGS = ("--network", "small.yaml", "--losses", "0", "--flows", "1", "--workers", "1")
NETWORK = """\
topology:
  domains:
  - {name: A, num_gpus: 8, intra_bandwidth: 400Gbps, intra_latency: 500ns}
  - {name: B, num_gpus: 8, intra_bandwidth: 400Gbps, intra_latency: 500ns}
  cross_domain_links:
  - {source: A, dest: B, bandwidth: 1Gbps, latency: 10ms}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(NETWORK)


@pytest.mark.usefixtures("process")
def test_two_runs_write_equal_files_and_laws_meet_messages_between_them(tmp_path, capsys):
    flags = (*FLAGS, "--transport", "cubic", "--queues", "4,8", "--fresh", "3")
    for name in ("first", "second"):
        assert main(["transports", *flags, "--out", name, "--store", f"{name}.sqlite"]) == 0
    said = capsys.readouterr().out
    first = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}

    assert first == {path.name: path.read_bytes() for path in (tmp_path / "second").iterdir()}
    assert set(first) == {
        "transports.csv", "fresh.csv", "delays.png",
        "queue-4_loss-0_flows-1.json", "queue-8_loss-0_flows-1.json",
    }  # fmt: skip
    assert "2 laws of cubic, 28 single messages by ns-3" in said
    fresh = pd.read_csv(tmp_path / "first/fresh.csv")
    assert fresh["error_percent"].mean() < 1.0 < fresh["error_without_percent"].mean()


def test_without_the_extra_it_is_named(capsys):
    try:
        ns3_version()
    except ReferenceRunError:
        assert "pip install 'eastwest[ns3]'" in error_of(main, ["transports", *FLAGS], capsys)
    else:
        pytest.skip("the extra ns3 is installed")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--queues", "0"), "--queues: must be positive and finite, got 0"),
        (("--queues", "1,1"), "--queues: must be at least one number, each once, got 1.0,1.0"),
        (("--losses", "1"), "--losses: must be at least 0 and below 1, got 1"),
        (("--losses", "nan"), "--losses: must be at least 0 and below 1, got nan"),
        (("--flows", "0"), "--flows: must be a whole number from 1 to"),
        (("--fresh", "-1"), "--fresh: must be a whole number from 1 to"),
        (("--figures", "gif"), "--figures: figures must be some of png, pdf, svg"),
    ],
)
def test_bad_settings_are_one_line(flags, message, tmp_path, capsys):
    assert message in error_of(main, ["transports", *flags], capsys)
    assert not (tmp_path / "runs").exists()
