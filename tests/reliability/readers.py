"""Every reader of files: one row each, with a valid sample."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from processes import ROOT
from samples import (
    COLLECTIVES_CSV,
    ITERATIONS_JSON,
    LAYERS_CSV,
    METRICS_CSV,
    PLACEMENT_CSV,
    PROFILE_CSV,
    PROFILE_JSON,
    SERVERS_YAML,
    SYSTEM_JSON,
    TRACE_CSV,
    VIEW_JSON,
    corrections_json,
    episodes_file,
    local_policy,
    store_file,
    trace_file,
)

from agents.decision.job_files import read_job
from agents.decision.plan_document import read_document
from agents.hi_ppo.local.policy import load_policy
from agents.hi_ppo.policies import Policies, shipped
from agents.serving.decide import Config as DecideConfig
from agents.serving.decide import pool_proposal, view_of
from astra_sim.files.comm_groups import read_comm_groups
from astra_sim.files.errors import AstraSimError
from astra_sim.files.execution_trace import read_trace
from astra_sim.files.memory_config import read_memory_config
from astra_sim.files.network_config import read_network_config
from astra_sim.files.system_config import read_system_config
from calibration.fit.corrections_file import read_corrections
from calibration.measured.collective_table import read_measured_table
from calibration.measured.layer_tables import read_timed_rows
from calibration.measured.runs import read_runs
from calibration.runs.store import Store
from des.base.text_files import read_json, read_yaml
from des.devices.cluster_files.table import read_cluster
from des.devices.figures_file import read_link_figures
from des.devices.files.server_files import read_files
from des.job.architecture_files import read_architecture
from des.world.files.load_files import read_loads
from des.world.files.profile_files import read_layer_profile
from des.world.files.trace_files import read_link_trace
from des.worlds.reading import read_topology
from scenarios.devices.place_servers import read_servers
from scenarios.frame.files import read_csv
from scenarios.frame.metrics_log import read_metrics
from scenarios.frame.run_folder import RunFolder
from scenarios.reproduce.cases import read_cases
from scenarios.reproduce.crosspipe import SHIPPED as CROSSPIPE
from scenarios.reproduce.crosspipe_runs import DelayRow
from scenarios.study.training_curves import read_log
from scenarios.train.episode_files import read_tables

WORLDS = ROOT / "des" / "worlds"
GOLDEN = ROOT / "tests" / "golden"
_WORLD = "east_central_west"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader of one file: what it is called, a valid content, and the call.

    ``refuses`` are the errors by which it says that a file is bad.
    """

    name: str
    suffix: str
    sample: Callable[[], bytes]
    read: Callable[[Path], object]
    refuses: tuple[type[Exception], ...] = field(default=(ValueError,))

    @property
    def kind(self) -> str:
        """Format, by which bombs are chosen."""
        return self.suffix.removeprefix(".")


def _text(content: str) -> Callable[[], bytes]:
    return content.encode


def _file(path: Path) -> Callable[[], bytes]:
    return path.read_bytes


def _with_dynamics() -> bytes:
    laws = (
        "dynamics: {kind: product, laws: [{update_interval: 5s}, "
        "{kind: markov, states: {up: {bandwidth_factor: 1, mean_dwell: 300s, "
        "followed_by: {down: 1}}, down: {bandwidth_factor: 0.1, mean_dwell: 60s, "
        "followed_by: {up: 1}}}}]}\n"
    )
    text = (WORLDS / f"{_WORLD}.yaml").read_text()
    return (text.partition("dynamics:")[0] + laws).encode()


OWN_FORMS = GOLDEN / "forms"
"""A file of each form of ours, written by version 1.0."""

Table = Mapping[str, tuple[str, Callable[[], bytes], Callable[[Path], object]]]
"""Suffix, sample and call of readers by name."""


def own_forms() -> Table:
    """Readers of the project's own files."""
    world = read_topology(_WORLD)
    loads = ", ".join(f"{one.name}: {{utilisation: 0.2}}" for one in world.domains)
    return {
        "network": (".yaml", _file(WORLDS / f"{_WORLD}.yaml"), read_topology),
        "network with laws": (".yaml", _with_dynamics, read_topology),
        "network matrices": (".json", _file(WORLDS / f"{_WORLD}.json"), read_topology),
        "settings": (".yaml", _text("steps: 5\nseeds: [1, 2]\nname: a\n"), read_yaml),
        "loads": (".yaml", _text(f"{{{loads}}}"), lambda path: read_loads(str(path), world)),
        "plan": (".json", _file(OWN_FORMS / "plan.json"), _plan),
        "job": (".json", _file(WORLDS / "examples" / "four_domains_0.job.json"), read_job),
        "model": (".yaml", _file(_SAILOR_MODEL), lambda path: read_architecture(str(path))),
        "profile table": (".csv", _text(PROFILE_CSV), read_layer_profile),
        "profile": (".json", _text(PROFILE_JSON), read_layer_profile),
        "link trace": (".csv", _text(TRACE_CSV), read_link_trace),
        "link figures": (".json", _file(_LINK_FIGURES), read_link_figures),
        "corrections": (".json", corrections_json, read_corrections),
        "servers": (".yaml", _text(SERVERS_YAML), read_servers),
        "run record": (".json", _text('{"config": {"seed": 1}}'), _record),
        "training log": (".csv", _text(METRICS_CSV), read_metrics),
        "results": (".csv", _text("planner,time_s\nexact,1.5\nnone,2\n"), read_csv),
        "measured all-reduces": (".csv", _text(COLLECTIVES_CSV), read_measured_table),
        "measured all-reduces, JSON": (".json", _file(_ALL_REDUCES), read_measured_table),
        "measured layers": (".csv", _text(LAYERS_CSV), read_timed_rows),
        "measured iterations": (".json", _text(ITERATIONS_JSON), read_runs),
        "published rows": (".json", _file(CROSSPIPE), _published),
        "episodes": (".npz", episodes_file, read_tables),
        "log of placements": (".csv", _text(PLACEMENT_CSV), read_log),
        "view of a fleet": (".json", _text(VIEW_JSON), _proposed),
        "store of runs": (".sqlite", store_file, _stored),
        "checkpoint": (".safetensors", _file(shipped(0)), Policies.load),
        "checkpoint of local plans": (".safetensors", local_policy, load_policy),
    }


def _astra() -> Table:
    """Readers of the engine's files."""
    return {
        "ASTRA-sim network": (".yml", _text(_ASTRA_NETWORK), read_network_config),
        "ASTRA-sim system": (".json", _text(SYSTEM_JSON), read_system_config),
        "ASTRA-sim memory": (
            ".json",
            _text(_MEMORY),
            read_memory_config,
        ),
        "ASTRA-sim groups": (".json", _text('{"1": [0, 1], "2": [2, 3]}'), read_comm_groups),
        "Chakra trace": (".et", trace_file, read_trace),
    }


def _rows() -> list[Reader]:
    rows = [
        Reader(name=name, suffix=suffix, sample=sample, read=read)
        for name, (suffix, sample, read) in own_forms().items()
    ]
    rows += [
        Reader(
            name=f"cluster {path.stem}", suffix=path.suffix, sample=_file(path), read=read_cluster
        )
        for path in sorted((GOLDEN / "clusters").glob("*.*"))
        if path.suffix != ".md"
    ]
    matrix = GOLDEN / "topo" / "01-h100-nv18-8gpu-8nic.txt"
    rows += [Reader(name="matrix", suffix=".txt", sample=_file(matrix), read=_server)]
    rows += [
        Reader(
            name=name, suffix=suffix, sample=sample, read=read, refuses=(ValueError, AstraSimError)
        )
        for name, (suffix, sample, read) in _astra().items()
    ]
    return rows


def _plan(path: Path) -> object:
    return read_document(read_json(path))


def _record(path: Path) -> object:
    target = path.with_name("config.json")
    path.rename(target)
    return RunFolder(path=path.parent).read_config()


def _stored(path: Path) -> object:
    return Store.open(path, must_exist=True).rows()


def _proposed(path: Path) -> object:
    """Proposal of the policy that computes most with a view, besides those that are trained."""
    config = DecideConfig(view=path, policy="predictive")
    return pool_proposal(view_of(read_json(path), config), config)


def _server(path: Path) -> object:
    return read_files([path])


def _published(path: Path) -> object:
    return read_cases(path, DelayRow, CROSSPIPE)


_SAILOR_MODEL = ROOT / "scenarios" / "reproduce" / "data" / "sailor" / "opt_350m.yaml"
_ALL_REDUCES = ROOT / "calibration" / "measured" / "data" / "all_reduce.json"
_LINK_FIGURES = ROOT / "des" / "devices" / "data" / "link_figures.json"
_MEMORY = '{"memory-type": "NO_MEMORY_EXPANSION"}'
_ASTRA_NETWORK = (
    "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 25.0 ]\n"
    "latency: [ 500.0, 700 ]\n"
)

READERS = {row.name: row for row in _rows()}
