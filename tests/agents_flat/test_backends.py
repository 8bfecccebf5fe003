"""Backends are found by name, and what they measure becomes metrics and rewards by hand."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from strategies import unit_workload, world

from agents.flat.backends import GROUP, backend_named, backend_names
from agents.flat.env import PlacementEnv, make_task
from agents.flat.episode import Episode
from agents.flat.task import PlacementTask
from agents.flat.worlds import GivenWorld
from des import Corrections, Placement, Plan, Topology, Transport, Workload, simulate
from des.compiled.simulate import simulate_compiled
from des.plan.replacement import Replacement
from des.simulation.migration import migration_s

INSTALLED = ("astra-aware", "astra-pairwise", "astra-unaware", "ns3")
PAIR = world("AB", {"AB": (8.0, 0.25), "BA": (2.0, 0.5)})
JOB = unit_workload([(1, 2), (1, 2)], num_microbatches=2, message_bytes=4.0)
SPLIT, TOGETHER = Placement(domain_of_layer=(0, 1)), Placement(domain_of_layer=(0, 0))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """What is measured."""

    makespan_s: float
    exposed_s: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """A backend that looks up what it measures, by domain of each layer."""

    rows: tuple[tuple[tuple[int, ...], Figures], ...] = (
        ((0, 1), Figures(makespan_s=20.0, exposed_s=(8.0, 2.0))),
        ((0, 0), Figures(makespan_s=16.0, exposed_s=(4.0, 0.0))),
    )

    def prepare(self, topology: Topology, workload: Workload, plan: Plan) -> Callable[[], Figures]:
        if topology.movement is not None:
            raise ValueError("table: topology.movement must be None")
        if topology.transport != Transport():
            raise ValueError("table: topology.transport must be plain")
        return partial(dict(self.rows).__getitem__, plan.placement.domain_of_layer)


def task(**changes: object) -> PlacementTask:
    fields = {"world": GivenWorld(topology=PAIR), "workload": JOB, "schedule": "gpipe"}
    return PlacementTask(**{**fields, "backend": Table(), **changes})


def metrics_of(given: PlacementTask, *chosen: Placement) -> list[Mapping[str, float]]:
    episode = Episode(given)
    episode.begin(0)
    return [episode.step(placement).metrics for placement in chosen]


# Metrics and rewards of what is measured.


def test_metrics_of_a_measurement_by_hand():
    """Two layers of 3 s, two microbatches: 12 s of the one domain in use; both have a peak of 1."""
    (metrics,) = metrics_of(task(), TOGETHER)

    assert metrics == pytest.approx(
        {
            "iteration_time_s": 16.0,
            "utilisation": 12 / (2 * 16.0),
            "communication_cost_cycles": 4e9,
            "bubble_fraction": 1 - 12 / 16.0,
            "tokens_per_s": 2 / 16.0,
            "num_stages": 1,
            "fits_memory": 1,
            "memory_overflow_fraction": 0,
            "migration_s": 0,
            "moved_bytes": 0,
            "communication_bytes": 0,
            "baseline_iteration_time_s": 20.0,
            "baseline_communication_cost_cycles": 1e10,
        }
    )
    assert {type(value) for value in metrics.values()} == {float}
    assert task().reward(metrics) == pytest.approx(0.4 * 4 / 20 + 0.3 * 12 / 32 - 0.3 * 4 / 10)


def test_what_does_not_come_from_the_backend_is_as_des_has_it():
    """Memory, stages, moves and changes; what follows from the time if `des` takes as long."""
    costly = Replacement(restart_s=3.0)
    chosen = (TOGETHER, SPLIT, SPLIT)
    rows = metrics_of(task(replacement=costly, backend=None), *chosen)
    spent = {placement: simulate(PAIR, JOB, task().plan(placement)) for placement in chosen}
    table = Table(
        rows=tuple(
            (
                placement.domain_of_layer,
                Figures(makespan_s=spent[placement].makespan_s, exposed_s=(1.0, 1.0)),
            )
            for placement in dict.fromkeys(chosen)
        )
    )
    measured = metrics_of(task(replacement=costly, backend=table), *chosen)

    for row, expected in zip(measured, rows, strict=True):
        assert row.keys() ^ expected.keys() == {"communication_bytes"} | {
            f"{prefix}communication_cost_{unit}"
            for prefix, unit in itertools.product(("", "baseline_"), ("bytes", "cycles"))
        }
        assert row["communication_bytes"] == expected["communication_cost_bytes"]
        for name in row.keys() & expected.keys():
            assert row[name] == pytest.approx(expected[name], rel=1e-12), name


def test_a_change_is_exposed_time_of_every_domain_in_use():
    """16 bytes go to B at 8 bytes/s and 0.25 s, and 3 s of restart: 5.25 s over 4 iterations."""
    given = task(replacement=Replacement(restart_s=3.0), iterations_per_epoch=4)
    _, to_both, stays = metrics_of(given, TOGETHER, SPLIT, SPLIT)

    assert to_both["migration_s"] == 5.25
    assert to_both["moved_bytes"] == 16.0
    assert to_both["iteration_time_s"] == 20.0 + 5.25 / 4
    assert to_both["communication_cost_cycles"] == pytest.approx((10.0 + 2 * 5.25 / 4) * 1e9)
    assert stays["iteration_time_s"] == 20.0
    assert stays["communication_cost_cycles"] == pytest.approx(10e9)


def test_a_restart_alone_moves_no_bytes():
    given = task(replacement=Replacement(restart_s=3.0, pays_bytes=False))
    (metrics,) = metrics_of(given, TOGETHER)

    assert (metrics["migration_s"], metrics["moved_bytes"]) == (3.0, 0.0)
    assert metrics["communication_cost_cycles"] == pytest.approx((4.0 + 3.0) * 1e9)


def test_corrections_are_for_changes_and_planners_but_not_for_what_is_measured():
    found = Corrections(compute_time_factor=7.0, wan_latency_factor=3.0)
    given = task(replacement=Replacement(), corrections=found)
    (metrics,) = metrics_of(given, TOGETHER)

    assert metrics["iteration_time_s"] - metrics["migration_s"] == pytest.approx(16.0)
    assert metrics["migration_s"] == migration_s(
        PAIR, JOB, given.plan(SPLIT), given.plan(TOGETHER), corrections=found
    )
    expected = simulate(PAIR, JOB, given.plan(SPLIT), found)
    assert given.simulate(PAIR, SPLIT) == expected


def test_a_baseline_that_waits_for_nothing_leaves_out_the_term():
    rows = tuple(
        (domains, Figures(makespan_s=20.0, exposed_s=exposed_s))
        for domains, exposed_s in (((0, 1), (0.0, 0.0)), ((0, 0), (4.0, 0.0)))
    )
    given = task(backend=Table(rows=rows))

    assert given.reward(metrics_of(given, TOGETHER)[0]) == pytest.approx(0.3 * 12 / 40)


def test_tasks_of_other_backends_have_other_fingerprints():
    other = Table(rows=(*Table().rows, ((1, 1), Figures(makespan_s=1.0, exposed_s=()))))
    tasks = [task(), task(backend=None), task(backend=other)]

    assert len({one.fingerprint() for one in tasks}) == len(tasks)
    assert task().fingerprint() == task().fingerprint()


def test_what_a_backend_cannot_measure_is_refused_when_the_task_is_made():
    shared = GivenWorld(topology=dataclasses.replace(PAIR, transport=Transport(sharing="fair")))

    with pytest.raises(ValueError, match=r"table: topology\.transport must be plain"):
        task(world=shared)


def test_a_backend_measures_the_links_that_an_epoch_holds_whatever_the_law():
    law = dataclasses.replace(PAIR.dynamics, update_interval_s=1.0)
    moving = task(world=GivenWorld(topology=dataclasses.replace(PAIR, dynamics=law)))

    assert metrics_of(moving, SPLIT, TOGETHER) == metrics_of(task(), SPLIT, TOGETHER)


def test_measured_iterations_are_no_simulated_ones():
    episode = Episode(task())
    episode.begin(0)

    with pytest.raises(RuntimeError, match="iterations of a backend are measured, not simulated"):
        episode.last_result()


# By name.


def install(folder: Path, project: str, *offers: str) -> None:
    """Put a package's metadata into a folder as an installation does."""
    metadata = folder / f"{project}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *offers]) + "\n")


def test_calibration_offers_its_backends_and_des_comes_first():
    assert backend_names() == ("des", *INSTALLED)


def test_des_is_the_default_and_nothing_judges_in_its_place():
    assert backend_named("des") is None
    assert backend_named("des", {}) is None
    assert make_task().backend is None
    assert make_task().simulator is simulate


@pytest.mark.parametrize("make", [make_task, PlacementEnv])
@pytest.mark.parametrize("name", ["astra", "DES", ""])
def test_an_unknown_backend_is_refused_with_all_that_are_installed(make, name):
    names = "des, astra-aware, astra-pairwise, astra-unaware, ns3"
    with pytest.raises(
        ValueError, match=f"backend must be one of those installed, {names}; got '{name}'"
    ):
        make(backend=name)


def test_another_package_can_offer_a_backend(tmp_path, monkeypatch):
    install(tmp_path, "others", f"table = {__name__}:Table")
    monkeypatch.syspath_prepend(tmp_path)

    assert backend_names() == ("des", *INSTALLED, "table")
    assert make_task(topology=PAIR, workload=JOB, backend="table").backend == Table()
    rows = Table().rows[:1]
    assert backend_named("table", {"rows": rows}) == Table(rows=rows)


def test_metadata_of_an_older_build_hides_nothing(tmp_path, monkeypatch):
    """As in the folder of the sources, which comes before the installed packages."""
    install(tmp_path, "eastwest")
    monkeypatch.syspath_prepend(tmp_path)

    assert backend_names() == ("des", *INSTALLED)


def test_a_backend_of_two_packages_is_refused(tmp_path, monkeypatch):
    install(tmp_path, "others", f"ns3 = {__name__}:Table")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ValueError, match=rf"ns3 must be offered by one package, got {__name__}:Ta"):
        backend_named("ns3")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("des", {"seed": 1}, "backend des must be left out; got 'seed'"),
        (
            "astra-pairwise",
            {"network_aggregation": "min"},
            "backend astra-pairwise must be left out; got 'network_aggregation'",
        ),
        (
            "astra-aware",
            {"aggregation": "min", "network_aggregation": "min", "slots": 1},
            "astra-aware must only have network_aggregation; got 'aggregation', 'slots'",
        ),
    ],
)
def test_options_that_a_backend_does_not_have_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_task(backend=name, backend_options=options)


def test_a_simulator_beside_a_backend_is_refused():
    with pytest.raises(
        ValueError, match="simulator must be left out where backend astra-aware is given"
    ):
        make_task(backend="astra-aware", simulator=simulate_compiled)
