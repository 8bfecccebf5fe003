"""Cases measured by our engine and by programs that behave; several in processes of their own."""

import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from interrupted_tasks import doubled
from pool_tasks import do_as_told, note_and_do
from processes import FAILSAFE_S, is_running, python, with_time_enough
from reference_programs import fake_programs, gpu_case, small_case

from calibration.fit.prediction import predict
from calibration.measuring.measure import measure_all, measure_case, run_key
from calibration.reference.astra_config import as_seen
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.pool import map_in_processes
from calibration.runs.store import Store


@pytest.mark.parametrize("endpoints", ["overlapped", "one_in_flight"])
@pytest.mark.parametrize("backend", ["unaware", "aware", "pairwise"])
def test_one_microbatch_by_hand(backend, endpoints):
    """Three stages of 1 s there and 2 s back, four messages of 0.3 s in between.

    The first domain's last event is its last pass: 10.2 s, of which it computes 3. The second one
    has sent its gradient 2 s before that, the third one another 2.3 s earlier; it is delivered
    then.
    """
    measured = measure_case(small_case(endpoints), backend)

    assert measured.makespan_s == pytest.approx(10.2, abs=1e-7)
    assert measured.communication_bytes == 4 * 2**28
    assert measured.exposed_s == pytest.approx((7.2, 5.2, 2.9), abs=1e-7)


@pytest.mark.parametrize("backend", ["unaware", "aware", "pairwise"])
def test_unequal_links_are_those_of_the_backend(backend):
    """A link of half the bandwidth: `des` says the same of the world that the backend sees."""
    case = small_case("overlapped", num_microbatches=4)
    first, *others = case.topology.links
    slower = replace(first, bandwidth_bytes_per_s=first.bandwidth_bytes_per_s / 2)
    case = replace(case, topology=replace(case.topology, links=(slower, *others)))

    measured = measure_case(case, backend, aggregation="min")

    expected = predict(as_seen(case, backend, "min"))
    assert measured.makespan_s == pytest.approx(expected.makespan_s, rel=1e-8)
    assert measured.communication_bytes == expected.communication_bytes
    by_min = measure_case(case, backend, aggregation="min").makespan_s
    by_max = measure_case(case, backend, aggregation="max").makespan_s
    assert (by_min > by_max) == (backend != "pairwise")


@pytest.mark.parametrize("backend", ["unaware", "aware"])
def test_programs_that_behave_give_what_our_engine_does(backend, tmp_path):
    binaries = fake_programs(tmp_path / "bin")
    case = small_case(num_microbatches=4)

    assert measure_case(case, backend, binaries=binaries) == measure_case(case, backend)


def test_programs_take_gpus_and_their_groups(tmp_path, monkeypatch):
    """Also where temporary files lie in a folder whose name means "no groups" to ASTRA-sim."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    binaries = fake_programs(tmp_path / "bin")

    assert measure_case(gpu_case(), "unaware", binaries=binaries) == measure_case(
        gpu_case(), "unaware"
    )
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("case", "backend", "reason"),
    [
        (small_case("overlapped"), "aware", "transport.endpoints is overlapped"),
        (gpu_case(), "aware", "congestion-aware network has one dimension"),
        (small_case(), "pairwise", "backend: must be one of unaware, aware for the original's"),
    ],
)
def test_what_programs_would_take_for_something_else_is_refused(case, backend, reason, tmp_path):
    binaries = fake_programs(tmp_path / "bin")

    with pytest.raises(ValueError, match=reason):
        measure_case(case, backend, binaries=binaries)


def far_case():
    """Messages under way for 317 years each, which is more than signed 64-bit numbers of ns."""
    case = small_case()
    links = tuple(replace(link, latency_s=1e10) for link in case.topology.links)
    return replace(case, topology=replace(case.topology, links=links))


def test_a_run_of_our_engine_that_no_program_could_do_is_an_error():
    with pytest.raises(
        ReferenceRunError, match=r"our engine, backend aware: rank 0, node 1 .* must be done by"
    ):
        measure_case(far_case(), "aware")


def several_cases():
    return [small_case(num_microbatches=count) for count in (3, 1, 2, 1)]


def test_many_cases_come_in_order_and_are_never_run_twice(tmp_path):
    """Two processes give what none gives; those that a store holds need none."""
    store = Store.open(tmp_path / "runs.sqlite")
    cases, told = several_cases(), []
    store.put(run_key(cases[2], "aware"), measure_case(cases[2], "aware"))

    found = measure_all(
        cases, "aware", num_workers=2, store=store, progress=lambda *done: told.append(done)
    )

    assert found == [measure_case(case, "aware") for case in cases]
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert found == [store.get(run_key(case, "aware")) for case in cases]
    assert len(store.rows()) == 3


def test_no_case_at_all_is_no_work():
    assert measure_all([], "aware", num_workers=2) == []


def test_keys_tell_backends_reductions_and_programs_apart(tmp_path):
    case, binaries = small_case(), fake_programs(tmp_path / "bin")

    keys = [
        run_key(case, "aware"),
        run_key(case, "aware", aggregation="harmonic"),
        run_key(case, "unaware"),
        run_key(case, "pairwise"),
        run_key(case, "aware", binaries=binaries),
        run_key(case, "unaware", binaries=binaries),
    ]

    assert len(set(keys)) == len(keys)
    assert run_key(case, "pairwise", aggregation="min") == keys[3]


def test_the_first_case_that_fails_is_named(tmp_path):
    store = Store.open(tmp_path / "runs.sqlite")
    with pytest.raises(ReferenceRunError, match=r"case 0\*1,1\*1,2\*1, 1f1b: our engine"):
        measure_all([small_case(), far_case()], "aware", num_workers=1, store=store)
    assert len(store.rows()) == 1


def test_our_engine_has_a_time_limit_too():
    """A microsecond: no process can answer within it."""
    with pytest.raises(ReferenceRunError, match=r"it did not end within 1e-06 s"):
        measure_all([small_case()], "aware", num_workers=1, timeout_s=1e-6)


@pytest.mark.parametrize(
    ("field", "value"), [("timeout_s", 0.0), ("num_attempts", 0), ("timeout_s", float("nan"))]
)
def test_limits_out_of_range_are_refused(field, value):
    with pytest.raises(ValueError, match=f"measure: {field} must be"):
        measure_case(small_case(), "aware", **{field: value})


def test_a_process_that_hangs_or_dies_costs_its_own_item_alone():
    items = ["a", "hang", "b", "die", "raise", "raise strangely", "nothing"]
    quick = {0, 2, 3, 4, 5, 6}
    limits_s = []

    def outcomes_within(limit_s: float) -> dict[int, object]:
        limits_s.append(limit_s)
        return dict(map_in_processes(do_as_told, items, num_workers=2, timeout_s=limit_s))

    outcomes = with_time_enough(
        outcomes_within,
        lambda found: not any(isinstance(found[place], TimeoutError) for place in quick),
    )

    assert [outcomes[place] for place in (0, 2, 6)] == ["A", "B", None]
    assert [f"{type(outcomes[place]).__name__}: {outcomes[place]}" for place in (1, 3, 4, 5)] == [
        f"TimeoutError: it did not end within {limits_s[-1]:g} s",
        "ChildProcessError: its process died with exit code -9",
        "ValueError: told to",
        "RuntimeError: StrangeError: 1 and 2",
    ]
    assert "in do_as_told" in outcomes[4].__notes__[0]


def test_a_caller_that_stops_early_ends_all_processes(tmp_path):
    items = [(tmp_path, "hang"), (tmp_path, "a"), (tmp_path, "hang")]
    outcomes = map_in_processes(note_and_do, items, num_workers=2, timeout_s=FAILSAFE_S)

    assert next(outcomes) == (1, "A")
    outcomes.close()

    numbers = [int(path.name) for path in tmp_path.iterdir()]
    assert 1 <= len(numbers) <= 2
    assert not any(is_running(number) for number in numbers)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_their_parent(number, tmp_path):
    """Their output closes, so no process of ours is left, nor the program that it was running."""
    code = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from pool_tasks import tell_and_hang
from calibration.reference.pool import map_in_processes
list(map_in_processes(tell_and_hang, [Path(sys.argv[2])], num_workers=1, timeout_s=600.0))
"""
    words = ["-c", code, str(Path(__file__).parents[1]), str(tmp_path)]
    with python(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"at work\n"

        process.send_signal(number)

        assert process.communicate() == (b"", None)
    assert process.returncode == -number


def test_a_process_that_is_still_starting_does_not_hear_of_ctrl_c():
    """Its parent gets the signal and ends it; else it would end with a traceback of its own."""
    assert list(map_in_processes(doubled, [21], num_workers=1, timeout_s=FAILSAFE_S)) == [(0, 42)]


def test_a_task_that_cannot_be_sent_is_refused_at_once():
    with pytest.raises((AttributeError, ChildProcessError), match=r"pickle|did not come up"):
        list(map_in_processes(lambda item: item, [1], num_workers=1, timeout_s=1.0))
