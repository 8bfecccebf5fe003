"""Logs of training become runs with their plan, layer times, and factors that correct steps."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logged import log_text, network_of, run_of

from calibration.__main__ import main
from calibration.fit.corrections_file import read_corrections
from calibration.measured.logged_runs import logged_table, read_logs
from calibration.measured.run_factors import fit_runs
from calibration.measured.runs import read_runs
from des import read_topology
from des.plan.corrections import Corrections

SAMPLES = Path(__file__).parents[1] / "calibration_measurements" / "samples"


@pytest.fixture
def network(tmp_path):
    """Two sites of eight GPUs."""
    return network_of(tmp_path)


def test_arguments_of_llama_are_read_with_grouped_queries_and_a_gated_feed_forward():
    (one,) = read_logs([SAMPLES / "megatron.log"])
    architecture = one.run.architecture(one.vocabulary_size)

    assert (architecture.num_key_value_heads, architecture.ffn_size) == (8, 14336)
    assert architecture.gated_ffn
    assert not architecture.tied_embeddings
    assert one.run.measured_iteration_s == pytest.approx(8.4019)
    assert (one.run.data, one.vocabulary_size, one.recomputation) == (2, 128256, "flash")


def test_torchtitan_names_its_feed_forward_by_its_multiple():
    """Llama 3 8B: two thirds of 4 x 4096, times 1.3, up to a multiple of 1024, are 14336."""
    (one,) = read_logs([SAMPLES / "torchtitan.log"])

    assert one.run.ffn_size == 14336
    assert (one.run.num_gpus, one.run.data, one.run.num_key_value_heads) == (8, 8, 8)


def test_experts_are_read():
    one = run_of(1.0, num_experts=8, moe_router_topk=2, ffn_hidden_size=2048)

    assert one.run.architecture(one.vocabulary_size).experts.expert_ffn_size == 2048
    assert one.run.num_experts == 8


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"context_parallel_size": 2}, "context_parallel_size must be 1, got 2"),
        ({"hidden_size": "wide"}, "hidden_size must be a whole number, got 'wide'"),
        ({"global_batch_size": 15}, "arguments: global_batch must be a multiple of micro"),
        ({"num_experts": 8}, "arguments: experts_per_token must be given with other sizes"),
    ],
)
def test_arguments_that_cannot_be_are_named(sizes, message):
    with pytest.raises(ValueError, match=f"run.log: {message}"):
        run_of(1.0, **sizes)


def test_stages_follow_the_sites_in_their_order(network):
    """Sixteen ranks in two stages fill both sites; four lie in the first alone."""
    topology = read_topology(network)
    wide = run_of(1.0, world_size=16, global_batch_size=16)

    assert wide.plan(topology).placement.domain_of_layer == (0, 0, 1, 1)
    assert run_of(1.0).plan(topology).placement.domain_of_layer == (0, 0, 0, 0)
    with pytest.raises(ValueError, match="world_size must be at most the 16 GPUs"):
        run_of(1.0, world_size=32, global_batch_size=32).plan(topology)
    with pytest.raises(ValueError, match="stage 0 of 12 GPUs must lie in one site, got A and B"):
        run_of(1.0, world_size=12, pipeline_model_parallel_size=1, global_batch_size=12).plan(
            topology
        )


@settings(max_examples=5, deadline=None)
@given(factor=st.floats(0.5, 2.0))
def test_a_factor_on_compute_is_found_again(factor, tmp_path_factory):
    """Steps simulated with a slower compute, as logs: the fit gives the factor, to the prior."""
    topology = read_topology(network_of(tmp_path_factory.mktemp("world")))
    true = Corrections(compute_time_factor=factor)
    batches = (8, 16, 32)
    steps = [run_of(1.0, global_batch_size=batch).predicted_s(topology, true) for batch in batches]
    logs = [
        run_of(step, global_batch_size=batch) for step, batch in zip(steps, batches, strict=True)
    ]
    fitted = fit_runs(logs, topology)

    assert list(fitted.factors) == ["compute"]
    assert fitted.factors["compute"] == pytest.approx(factor, rel=0.02)
    assert max(map(abs, fitted.fitted)) < 0.01
    assert max(map(abs, fitted.held_out)) < 0.02


def test_a_factor_on_the_wan_is_found_beside_that_on_compute(network):
    """Six runs of two sites, of which some wait for the link and some compute."""
    topology = read_topology(network)
    true = Corrections(compute_time_factor=1.2, wan_bandwidth_factor=0.5)
    sizes = [
        {"world_size": 16, "global_batch_size": batch, "hidden_size": width, "num_layers": layers}
        for batch, width, layers in zip(
            (16, 32, 64) * 2,
            (512, 1024, 1024, 4096, 2048, 4096),
            (4, 4, 8, 40, 64, 60),
            strict=True,
        )
    ]
    logs = [run_of(run_of(1.0, **one).predicted_s(topology, true), **one) for one in sizes]
    fitted = fit_runs(logs, topology)

    assert fitted.factors["compute"] == pytest.approx(1.2, rel=0.05)
    assert fitted.factors["wan"] == pytest.approx(2.0, rel=0.05)
    assert max(map(abs, fitted.fitted)) < 0.03


def test_one_run_has_no_interval_and_none_left_out(network):
    fitted = fit_runs([run_of(1.0)], read_topology(network))

    assert math.isnan(fitted.half_widths["compute"])
    assert math.isnan(fitted.held_out[0])


def test_the_command_says_errors_and_writes_factors_that_are_read(network, tmp_path, capsys):
    for at, batch in enumerate((8, 16, 32)):
        step_s = 1.3 * run_of(1.0, global_batch_size=batch).predicted_s(read_topology(network))
        text = log_text(step_s, global_batch_size=batch)
        (tmp_path / f"{at}.log").write_text(text, encoding="utf-8")
    logs = [str(path) for path in sorted(tmp_path.glob("*.log"))]
    out = tmp_path / "corrections.json"
    assert main(["runs", *logs, "--network", str(network), "--out", str(out)]) == 0

    shown = capsys.readouterr().out
    assert "0.log: " in shown
    assert "predicted -23.1 %" in shown
    assert "compute: times x 1.3" in shown
    assert read_corrections(out).compute_time_factor == pytest.approx(1.3, rel=0.03)


def test_logs_of_one_domain_give_a_profile(network, tmp_path, capsys):
    text = network.read_text(encoding="utf-8").replace("  - {name: B", "# ").split("  cross")[0]
    network.write_text(text, encoding="utf-8")
    for at, batch in enumerate((8, 16, 32)):
        (tmp_path / f"{at}.log").write_text(log_text(0.1 * batch, global_batch_size=batch), "utf-8")
    logs = ",".join(str(tmp_path / f"{at}.log") for at in range(3))
    out = tmp_path / "profile.csv"
    argv = ["profile", "--runs", logs, "--network", str(network), "--out", str(out)]
    assert main(argv) == 0

    assert "1 points solved from 3 iterations" in capsys.readouterr().out
    assert "h100,dense,1024,16,16,4096,2" in out.read_text(encoding="utf-8")
    both, (domain,) = [tmp_path / "0.log", SAMPLES / "megatron.log"], read_topology(network).domains
    with pytest.raises(ValueError, match="must have one vocabulary, recomputation"):
        logged_table(both, domain)


def test_an_unknown_field_of_measured_runs_is_named(tmp_path):
    """A misspelt size would otherwise be that of a GPT."""
    shipped = Path(__file__).parents[2] / "scenarios/reproduce/data/measured/vtrain_single.json"
    content = json.loads(shipped.read_text(encoding="utf-8"))
    content["rows"][0] |= {"num_kv_heads": 8}
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows\[0\].num_kv_heads: unknown key; did you mean"):
        read_runs(path)
