"""Logs of training as the reference of a calibration."""

import pytest
from logged import log_text, network_of, run_of

from calibration.loop import BackgroundCalibrator, LoggedSubject, Order
from des import NO_CORRECTIONS, Corrections, read_topology

BATCHES = (8, 16, 32)


def write_logs(folder, topology, factor, batches=BATCHES):
    """Logs of runs whose compute takes ``factor`` times as long."""
    true = Corrections(compute_time_factor=factor)
    for batch in batches:
        step_s = run_of(1.0, global_batch_size=batch).predicted_s(topology, true)
        text = log_text(step_s, global_batch_size=batch)
        (folder / f"{batch}.log").write_text(text, encoding="utf-8")


@pytest.fixture
def subject(tmp_path):
    """A world of two sites, and logs of runs that took 1.5 times as long."""
    topology = read_topology(network_of(tmp_path))
    logs = tmp_path / "logs"
    logs.mkdir()
    write_logs(logs, topology, 1.5)
    return LoggedSubject(topology=topology, logs=logs)


def order(kind="fit", in_force=NO_CORRECTIONS):
    return Order(number=0, kind=kind, in_force=in_force)


def test_factors_of_logs_come_into_force_and_stay_while_they_are_right(subject):
    first = subject.calibrate(order())

    assert first.corrections.compute_time_factor == pytest.approx(1.5, rel=0.03)
    assert first.before.bias == pytest.approx(-1 / 3, rel=0.05)
    assert first.after.mean < 0.02
    again = subject.calibrate(order(in_force=first.corrections))
    assert again.corrections == first.corrections
    assert subject.calibrate(order("probe")).corrections == NO_CORRECTIONS


def test_new_logs_are_other_sources_and_change_the_factors(subject):
    before, known = subject.sources(), subject.calibrate(order()).corrections
    assert subject.sources() == before
    write_logs(subject.logs, subject.topology, 2.0)
    assert subject.sources() != before
    found = subject.calibrate(order(in_force=known)).corrections
    assert found.compute_time_factor == pytest.approx(2.0, rel=0.03)


def test_a_log_that_is_wrong_is_left_out_by_name_and_one_alone_is_not_fitted(subject):
    for batch in BATCHES[1:]:
        (subject.logs / f"{batch}.log").write_text("iteration", encoding="utf-8")
    found = subject.calibrate(order())

    assert (found.num_cases, found.corrections) == (1, NO_CORRECTIONS)
    assert "a fit needs 2 logs, got 1; left out: " in found.reason
    assert "16.log" in found.reason
    with pytest.raises(ValueError, match=r"16\.log"):
        LoggedSubject(topology=subject.topology, logs=subject.logs)


def test_the_process_in_the_background_fits_logs(subject):
    calibrator = BackgroundCalibrator(subject)
    try:
        calibrator.submit(order())
        assert calibrator.collect() == subject.calibrate(order())
        assert calibrator.sources() == subject.sources()
    finally:
        calibrator.close()
