"""``EastWest/Placement-v0`` judged by programs in the place of our engine, and what is refused."""

import dataclasses
from pathlib import Path

import pytest
from judged_worlds import BACKENDS, LAW, PAIRED, STILL, make, measured, play
from reference_programs import fake_program, fake_programs, small_case
from strategies import world

from calibration.measuring.environment import BINARIES_VARIABLE, NS3_PROGRAM
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


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A user's configuration and physical topology."""
    texts = {"config": "ENABLE_QCN 1\n", "physical_topology": "3 0 3\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    return {name: tmp_path / f"{name}.txt" for name in texts}


def test_ns3_without_a_program_is_refused_at_construction(files, tmp_path, monkeypatch):
    needs = f"backend astra-ns3: needs ASTRA-sim's program {NS3_PROGRAM}"
    with pytest.raises(ReferenceRunError, match=f"{needs}.* got None, None and None"):
        make("astra-ns3", topology=ONE_SLOT)
    with pytest.raises(ReferenceRunError, match=f"{needs}.* got None, .*config.txt"):
        make("astra-ns3", topology=ONE_SLOT, backend_options=files)
    monkeypatch.setenv(BINARIES_VARIABLE, str(tmp_path))
    with pytest.raises(ReferenceRunError, match=f"{NS3_PROGRAM}: must be a program"):
        make("astra-ns3", topology=ONE_SLOT, backend_options=files)


def test_ns3_without_its_files_is_refused_at_construction(files, tmp_path):
    program = fake_program(tmp_path / "own", "ns3")
    missing = files | {"config": tmp_path / "none", "binary": program}

    with pytest.raises(ValueError, match=r"ns3: .*none: cannot be read: No such file"):
        make("astra-ns3", topology=ONE_SLOT, backend_options=missing)


@pytest.mark.parametrize("by_variable", [True, False])
def test_ns3_judges_what_its_program_says(by_variable, files, tmp_path, monkeypatch):
    """Where the analytical network stands in for the packets."""
    program = fake_program(tmp_path / NS3_PROGRAM, "ns3")
    if by_variable:
        monkeypatch.setenv(BINARIES_VARIABLE, str(tmp_path))
    options = files | ({} if by_variable else {"binary": program})
    env = make("astra-ns3", topology=ONE_SLOT, backend_options=options)
    env.reset(seed=0)
    info = env.step(PAIRED)[4]

    assert info["iteration_time_s"] == measured(ONE_SLOT, "unaware", 1, 1, 2).makespan_s
    assert info["communication_cost_cycles"] > 0


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (dataclasses.replace(ONE_SLOT, dynamics=LAW), r"topology\.dynamics must leave the links"),
        (STILL, r"original cannot run .* transport\.endpoints is overlapped"),
        (
            dataclasses.replace(
                STILL, transport=Transport(sharing="none", endpoints="one_in_flight")
            ),
            r"backend astra-ns3: transport\.sharing must be fifo, .* got 'none'",
        ),
    ],
)
def test_ns3_refuses_links_that_its_topology_does_not_have(topology, message, files, tmp_path):
    options = files | {"binary": fake_program(tmp_path / "own", "ns3")}

    with pytest.raises(ValueError, match=message):
        make("astra-ns3", topology=topology, backend_options=options)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"topology": dataclasses.replace(STILL, transport=Transport(sharing="fair"))},
            r"transport\.sharing must be fifo or none, got 'fair'",
        ),
        (
            {
                "topology": dataclasses.replace(
                    STILL, dynamics=dataclasses.replace(LAW, update_interval_s=1.0)
                )
            },
            r"topology\.movement must be None, got links that move within the iteration",
        ),
        ({"topology": world("A", {})}, "topology must have at least 2 domains, got 1"),
        ({"render_mode": "rgb_array"}, "render_mode must be None where backend is astra-"),
    ],
    ids=["fair", "moving within", "one domain", "pictures"],
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
