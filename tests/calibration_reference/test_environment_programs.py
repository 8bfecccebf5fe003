"""``EastWest/Placement-v0`` judged by programs in the place of our engine, and what is refused."""

import dataclasses

import pytest
from judged_worlds import BACKENDS, LAW, PAIRED, STILL, make, play
from reference_programs import fake_programs, small_case
from strategies import world

from calibration.measuring.environment import BINARIES_VARIABLE
from calibration.reference.binaries import ReferenceRunError
from des import Transport

ONE_SLOT = small_case("one_in_flight").topology


@pytest.fixture(autouse=True)
def _our_engine(monkeypatch):
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_programs_of_the_variable_give_what_our_engine_does(backend, tmp_path, monkeypatch):
    """Where they can; matrices of links are an extension that only ours has."""
    topology = dataclasses.replace(ONE_SLOT, dynamics=LAW)
    ours = play(make(backend, topology=topology), 2)
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin")))

    env = make(backend, topology=topology)
    assert (env.task.backend.binaries is None) == (backend == "astra-pairwise")
    assert play(env, 2) == ours


@pytest.mark.parametrize("backend", ["astra-unaware", "astra-aware"])
def test_a_missing_program_is_refused_at_construction(backend, tmp_path, monkeypatch):
    monkeypatch.setenv(BINARIES_VARIABLE, str(tmp_path))

    with pytest.raises(ReferenceRunError, match=r"AstraSim_.* must be a program, got no such file"):
        make(backend, topology=ONE_SLOT)


def test_endpoints_that_the_original_does_not_have_are_refused_at_construction(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin")))

    with pytest.raises(ValueError, match=r"original cannot run .* transport\.endpoints is overlap"):
        make("astra-aware", topology=STILL)


@pytest.mark.parametrize("way", ["crash", "partial", "garbage"])
def test_a_program_that_misbehaves_gives_an_error_and_no_number(way, tmp_path, monkeypatch):
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin", way)))
    env = make("astra-aware", topology=ONE_SLOT)

    with pytest.raises(ReferenceRunError, match="attempts gave no result"):
        env.reset(seed=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"topology": dataclasses.replace(STILL, transport=Transport(sharing="fair"))},
            r"transport\.sharing must be fifo or none, got 'fair'",
        ),
        ({"topology": world("A", {})}, "topology must have at least 2 domains, got 1"),
        ({"render_mode": "rgb_array"}, "render_mode must be None where backend is astra-"),
    ],
    ids=["fair", "one domain", "pictures"],
)
def test_what_a_trace_cannot_hold_is_refused_at_construction(backend, changes, message):
    with pytest.raises(ValueError, match=message):
        make(backend, **changes)


def test_a_world_without_queues_is_for_the_backend_without_them():
    """Unaware judges as it does where the world says that messages queue; the others refuse."""
    free = dataclasses.replace(STILL, transport=Transport(sharing="none"))
    env, queued = (make("astra-unaware", topology=topology) for topology in (free, STILL))
    for each in (env, queued):
        each.reset(seed=0)

    assert env.step(PAIRED)[4]["iteration_time_s"] == queued.step(PAIRED)[4]["iteration_time_s"]
    for backend in ("aware", "pairwise"):
        with pytest.raises(
            ValueError, match=rf"backend {backend}: transport\.sharing must be fifo"
        ):
            make(f"astra-{backend}", topology=free)


def test_an_aggregation_that_is_none_is_refused_at_construction():
    with pytest.raises(ValueError, match=r"network_aggregation: must be one of min, .*; got 'sum'"):
        make("astra-aware", backend_options={"network_aggregation": "sum"})
