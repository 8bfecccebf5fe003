"""Figures that the command reports: ratios, prices, exposed communication, memory."""

import json

import pandas as pd
import pytest
from simulated_files import FILES, PICTURES, SMALL, figures, run

from des import build_workload
from des.worlds import WORLDS
from scenarios.iteration.command import main
from scenarios.suites.make_topology import main as make_topology


def test_transfer_compute_ratio_is_the_closed_form_for_equal_stages(tmp_path):
    """``R = h / B * F_eff / N_stage``; re-divided layers are equal, and each stage has four."""
    flags = [*SMALL, "--num-layers", "8", "--placement", "East*4,Central*4"]
    ratio = figures(tmp_path, *flags)["transfer_compute_ratio"]

    message_bytes = 2 * 4096 * 4096
    stage_flops = sum(build_workload("llama2_7b", num_layers=8).forward_flops[:4])
    effective_flops_per_s = 8 * 120e12 * 0.5
    wire_s = message_bytes / (5e9 / 8)
    assert ratio == pytest.approx(wire_s * effective_flops_per_s / stage_flops)


def test_a_placement_without_borders_has_no_transfer_compute_ratio(tmp_path, capsys):
    assert figures(tmp_path, *SMALL, "--placement", "West*32")["transfer_compute_ratio"] is None
    assert "no borders" in capsys.readouterr().out


def test_a_world_with_prices_says_what_an_iteration_costs(tmp_path, capsys):
    """4 microbatches of 33.6 MB each way at 0.02 and 0.09 USD per GB; 16 GPUs at 4.1 an hour."""
    placed = [*SMALL, "--network", "aws_like", "--placement", "Oregon*16,Tokyo*16"]
    said = figures(tmp_path, *placed)

    gigabytes = 4 * 2 * 4096 * 4096 / 1e9
    cost = said["cost"]
    assert cost["num_bytes"] == said["communication_cost_bytes"] == 2 * gigabytes * 1e9
    assert cost["communication_usd"] == pytest.approx(gigabytes * (0.02 + 0.09))
    assert cost["compute_usd"] == pytest.approx(16 * 4.1 * said["makespan_s"] / 3600)
    assert cost["total_usd"] == cost["communication_usd"] + cost["compute_usd"]
    shown = capsys.readouterr().out
    assert f"{cost['communication_usd']:.4f} USD" in shown
    assert f"{cost['compute_usd']:.4f} USD" in shown


def test_a_world_without_prices_says_nothing_of_dollars(tmp_path, capsys):
    assert figures(tmp_path, *SMALL)["cost"] is None
    assert "USD" not in capsys.readouterr().out


def test_exposed_communication_is_what_the_network_adds(tmp_path, capsys):
    """One microbatch over one border waits for one message each way: 33.6 MB at 5 Gbit/s, 30 ms."""
    placed = [*SMALL, "--placement", "East*16,Central*16", "--microbatches", "1"]
    said = figures(tmp_path, *placed)

    expected_s = 2 * (2 * 4096 * 4096 / 625e6 + 0.03)
    assert said["exposed_communication_s"] == pytest.approx(expected_s)
    assert f"{expected_s:.3f} s" in capsys.readouterr().out
    assert figures(tmp_path, *SMALL, "--placement", "East*32")["exposed_communication_s"] == 0.0


def test_a_missing_price_of_links_is_a_note_that_names_them(tmp_path, capsys):
    shipped = WORLDS["aws_like"].read_text(encoding="utf-8")
    (tmp_path / "world.yaml").write_text(shipped.replace(", price_usd_per_gb: 0.09", ""))
    flags = [*SMALL, "--network", str(tmp_path / "world.yaml"), "--placement", "Oregon*16,Tokyo*16"]

    assert main([*flags, "--out", str(tmp_path / "out")]) == 0
    assert "note: bytes count as free over links without price_usd_per_gb: Tokyo->" in (
        capsys.readouterr().err
    )


def test_the_terminal_shows_figures_tables_and_files(tmp_path, capsys):
    files = run(tmp_path, *SMALL, "--placement", "East*16,Central*16", "--figures", "png")
    said = json.loads(files["result.json"])

    shown = capsys.readouterr().out
    assert f"{said['makespan_s']:.3f} s" in shown
    for text in ("East->Central", "Central->East", "16-31", "640.0", "bubble fraction"):
        assert text in shown
    assert "West" not in shown
    assert sorted(files) == sorted([*FILES, *PICTURES])
    for name in files:
        assert f"written: {tmp_path / name}\n" in shown


def test_compressed_activations_of_every_replica_count(tmp_path):
    """Replicas of one and three borders, half the microbatches each; messages of a quarter."""
    topology = tmp_path / "six.yaml"
    assert make_topology(["--num-domains", "6", "--out", str(topology)]) == 0
    flags = ["--network", str(topology), "--placement", "0*16,1*16", "--activation-compression"]
    flags += ["4", "--replicas", "2*8,3*8,4*8,5*8"]

    message_bytes = build_workload("llama2_7b").message_bytes
    sent_bytes = figures(tmp_path / "out", *SMALL, *flags)["cross_domain_bytes"]
    assert sent_bytes == 2 * (1 + 3) * 2 * message_bytes / 4


def test_memory_over_time_peaks_at_what_is_said(tmp_path, capsys):
    said = figures(tmp_path, "--parallelism", "2x2x2", "--shard-optimiser")

    table = pd.read_csv(tmp_path / "memory_over_time.csv")
    fullest = said["fullest_gpu"]
    own = table[(table["domain"] == fullest["domain"]) & (table["device"] == fullest["device"])]
    assert own["total_bytes"].max() == fullest["peak_bytes"] == table["total_bytes"].max()
    required = {
        one["domain"]: one["model_state_bytes"] + one["activation_bytes"] for one in said["memory"]
    }
    peaks = 8 * table.groupby("domain")["total_bytes"].max()
    assert peaks.to_dict() == pytest.approx(required)
    assert f"{fullest['peak_bytes'] / 1e9:.1f} of 80.0 GB in" in capsys.readouterr().out


def test_sources_of_layer_times_are_said(tmp_path, capsys):
    topology = tmp_path / "shapes.yaml"
    text = WORLDS["east_central_west"].read_text("utf-8")
    topology.write_text(text.replace("num_gpus: 8", "num_gpus: 8\n      layer_times: shapes", 1))

    said = figures(tmp_path / "out", *SMALL, "--network", str(topology))
    shapes, fraction = "shapes of matrices", "FLOPs at 0.5 of the peak"
    assert said["layer_times"] == {"East": shapes, "Central": fraction, "West": fraction}
    printed = " ".join(capsys.readouterr().out.split())
    assert f"layer times from East: {shapes}; Central, West: {fraction}" in printed

    assert set(figures(tmp_path / "plain", *SMALL)["layer_times"].values()) == {fraction}
    assert f"layer times from {fraction}" in " ".join(capsys.readouterr().out.split())
