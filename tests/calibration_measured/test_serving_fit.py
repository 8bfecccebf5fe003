"""Fit of iteration times of inference engines to profiles."""

import json

import numpy as np
import pytest

from calibration.commands.main import main
from calibration.measured.serving_fit import ServingFit, fit_profile, held_out_errors
from calibration.measured.serving_profiles import SHIPPED, EngineProfile, read_profiles
from des.serving.batch_times import BatchTimes
from des.serving.engines import engine_named, engine_names

TRUE = ServingFit(
    times=BatchTimes(
        base_s=0.01,
        per_prompt_token_s=5e-5,
        per_prompt_context_s=1e-9,
        per_request_s=5e-5,
        per_context_s=4e-8,
        per_square_request_s=3e-8,
        per_mean_context_s=-1e-8,
    ),
    stall_s=5e-13,
)


def made_profile():
    """A profile without noise."""
    cells = [(batch, context) for context in (400, 3000, 20_000) for batch in (1, 3, 9, 20)]
    prompts = [100.0, 500.0, 1000.0, 4000.0, 9000.0, 16_000.0]
    return EngineProfile(
        gpu="none",
        model="made",
        tensor_parallel=1,
        max_kv_tokens=10**6,
        prompt_tokens=tuple(prompts),
        prefill_ms=tuple(1e3 * TRUE.prefill_s(each, 0.02) for each in prompts),
        kv_share=tuple(batch * context / 1e6 for batch, context in cells),
        context_tokens=tuple(float(context) for _, context in cells),
        gap_ms=tuple(1e3 * TRUE.gap_s(batch, context) for batch, context in cells),
    )


def test_times_that_made_a_profile_are_found():
    fit, overhead_s = fit_profile(made_profile())

    assert overhead_s == pytest.approx(0.02)
    assert fit.stall_s == pytest.approx(TRUE.stall_s)
    assert fit.times.per_context_s == pytest.approx(TRUE.times.per_context_s)
    assert fit.times.per_prompt_context_s == pytest.approx(1e-9)


def test_gaps_of_unseen_cells_are_within_the_target():
    """Mean at most 5 %, 95th percentile at most 15 %, of all shipped profiles."""
    errors = np.abs(
        [
            error
            for profile in read_profiles(SHIPPED).values()
            for error in held_out_errors(profile).gap_fraction
        ]
    )
    assert errors.mean() <= 0.05
    assert np.percentile(errors, 95) <= 0.15


def test_shipped_engines_are_what_the_command_writes(tmp_path, capsys):
    assert main(["serving", "--out", str(tmp_path)]) == 0
    assert "all gaps: mean" in capsys.readouterr().out
    written = json.loads((tmp_path / "engines.json").read_text())

    assert tuple(written) == engine_names()
    for name, row in written.items():
        engine = engine_named(name)
        for field, value in row["times"].items():
            assert getattr(engine.times, field) == pytest.approx(value, rel=1e-6)


def test_bad_profiles_are_refused(tmp_path):
    path = tmp_path / "profiles.json"
    good = json.loads(SHIPPED.read_text())
    name = next(iter(good["profiles"]))
    good["profiles"][name]["gap_ms"][0] = -1.0
    path.write_text(json.dumps(good))
    with pytest.raises(ValueError, match="gap_ms"):
        read_profiles(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="source"):
        read_profiles(path)
