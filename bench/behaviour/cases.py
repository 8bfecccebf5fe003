"""The commands that are run: small arguments, every deterministic output."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import loads
from pathlib import Path

WORLDS = ("aws_like", "east_central_west", "east_west_hubs", "four_uneven")
SCHEDULES = ("gpipe", "1f1b", "deep_1f1b", "zb_h1", "zb_h2", "zb_auto", "greedy", "exact")
INTERLEAVED = "interleaved_1f1b"
Flags = tuple[str, ...]
IDEAL: Flags = ("--trainer", "ideal")
"""Cases are of perfect devices, as those of the baseline are."""

SMALL_JOB: Flags = ("--model", "llama2_7b", "--num-layers", "16", "--microbatches", "8")
GOLDEN = "{golden}"
"""Stands in arguments for the folder of recorded figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Commands that run one after the other in one folder.

    Attributes
    ----------
    name
        Its group, a slash and what tells it from the others of the group.
    commands
        Arguments of ``python -m``, the module first.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]

    @property
    def group(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]


def one(name: str, module: str, *flags: str) -> Case:
    """Return a case of a single command."""
    return Case(name=name, commands=((module, *flags),))


def simulate(_: Path) -> Iterator[Case]:
    """Every shipped world under every schedule, and every kind of plan once."""
    module = "scenarios.simulate"
    for world in WORLDS:
        flags: Flags = ("--network", world, *SMALL_JOB, "--seed", "3", "--out", "out")
        for schedule in SCHEDULES:
            yield one(f"simulate/{world}-{schedule}", module, "--schedule", schedule, *flags)
        chunks = {"aws_like": 6, "east_central_west": 3, "east_west_hubs": 6, "four_uneven": 4}
        placement = ",".join(f"{domain}*2" for domain in [*range(chunks[world])] * 2)
        layers = str(4 * chunks[world])
        flags = ("--placement", placement, *flags, "--num-layers", layers, "--microbatches", "12")
        yield one(f"simulate/{world}-{INTERLEAVED}", module, "--schedule", INTERLEAVED, *flags)
    plans: dict[str, Flags] = {
        "default": (),
        "moving": ("--placement", "0*28,1*26,2*26", "--seed", "7"),
        "replicas": ("--model", "llama2_7b", "--placement", "0*32", "--replicas", "1*32;2*32"),
        "parallel": (
            *SMALL_JOB,
            "--parallelism",
            "2x2x2",
            "--shard-optimiser",
            "--gradient-bucket-mb",
            "500",
        ),
        "compressed": ("--activation-compression", "4", "--recomputation", "full"),
        "late_sums": (*SMALL_JOB, "--parallelism", "4x2x1", "--no-overlap-gradients"),
    }
    for name, flags in plans.items():
        yield one(f"simulate/{name}", module, *flags, "--out", "out")


def train(_: Path) -> Iterator[Case]:
    """Training of a few updates: without calibration, with it, and where changes cost something."""
    quick = (
        *("--policy", "flat", "--quick", "--evaluation-draws", "2", "--workers", "1"),
        *("--out", "out"),
    )
    module = "scenarios.east_west_train"
    yield one("train/plain", module, *quick, "--steps", "256", "--calibration", "none", "--no-kpi")
    flags: Flags = ("--steps", "512", "--no-kpi", "--replacement", "full")
    yield one("train/calibrated", module, *quick, *flags)
    flags = ("--steps", "256", "--calibration", "none", "--no-kpi", "--actions", "per_layer")
    yield one("train/per_layer", module, *quick, *flags, "--num-layers", "12")


def decide(_: Path) -> Iterator[Case]:
    """A decision across domains on every shipped world, with and without reasons."""
    module = "agents.decide"
    job = ("--model", "llama2_7b", *IDEAL, "--deciders", "hi_ppo", "--across-only", "--json")
    for world in WORLDS:
        yield one(f"decide/{world}", module, "--network", world, *job)
        yield one(f"decide/{world}-explained", module, "--network", world, *job, "--explain")
    here = ("--network", "east_central_west", *job)
    last = (*here, "--last", "East*10,Central*10,West*12", "--last-schedule", "gpipe")
    yield one("decide/in_force", module, *last, "--restart-s", "2")
    yield one("decide/restart_only", module, *last, "--restart-only", "--objective", "0,0,1")
    bound = ("--objective", "0,0,1", "--most-slowdown", "0.05", "--out", "plan.json")
    yield one("decide/bounded", module, *here, *bound)


def compare(_: Path) -> Iterator[Case]:
    """All planners and all rules."""
    flags = ("--num-worlds", "1", "--num-draws", "2", "--num-domains", "4", "--num-epochs", "4")
    suites = "eval_static,eval_held,hard,cheap_moves"
    yield one("compare/all", "scenarios.compare", *flags, *IDEAL, "--suite", suites, "--out", "out")


def kpi(_: Path) -> Iterator[Case]:
    """The targets without timed ones, of the shipped policy and of planners."""
    tiny = ("--quick", "--num-worlds", "1", "--num-epochs", "3", *IDEAL, "--out", "out")
    untimed = "time,communication,pareto,allocation,gap,stability,fluctuation,headroom,ranking"
    yield one("kpi/policy", "scenarios.kpi", *tiny, "--targets", untimed)
    methods = ("--method", "search_once,search_h1")
    few = ("--targets", "time,communication,fluctuation")
    yield one("kpi/planners", "scenarios.kpi", *tiny, *methods, *few)


def pareto(_: Path) -> Iterator[Case]:
    """Fronts of one priced world under all tables."""
    flags = ("--worlds", "1", "--num-domains", "5", "--evaluations", "400", "--preferences", "6")
    yield one("pareto/one_world", "scenarios.pareto", *flags, "--out", "out")


def suites(_: Path) -> Iterator[Case]:
    """The first worlds of every suite."""
    names = ("train", "eval_static", "eval_calm", "eval_held", "hard", "cheap_moves", "null")
    for name in names:
        yield one(f"suites/{name}", "scenarios.suites", name, "--num", "6", "--out", "out")


def calibration(_: Path) -> Iterator[Case]:
    """Fit and check, side by side, and export, by domains and by GPUs."""
    module = "calibration"
    small = ("--num-layers", "8", "--microbatches", "4,8", "--workers", "1")
    fit = (module, "run", *small, "--samples", "24", "--out", "fit")
    check = (module, "check", *small, "--samples", "12", "--corrections", "fit/corrections.json")
    yield Case(
        name="calibration/pairwise",
        commands=((*fit, "--backend", "pairwise"), (*check, "--backend", "pairwise")),
    )
    gpus = ("--granularity", "gpu", "--backend", "unaware")
    yield Case(name="calibration/gpus", commands=((*fit, *gpus), (*check, *gpus)))
    flags: Flags = ("--samples", "6", "--store", "none", "--out", "compare.csv")
    yield one("calibration/compare", module, "compare", *small, *flags)
    drawn = ("--worlds", "drawn", "--num-domains", "3,5")
    yield one("calibration/compare_drawn", module, "compare", *small, *flags, *drawn)
    job = (*SMALL_JOB, "--out", "out")
    yield one("calibration/export", module, "export", *job)
    flags = ("--endpoints", "overlapped", "--backend", "pairwise", "--seed", "5", *job)
    yield one("calibration/export_pairwise", module, "export", *flags)
    flags = ("--granularity", "gpu", "--parallelism", "4x2x1", "--backend", "unaware", *job)
    yield one("calibration/export_gpus", module, "export", *flags)


def reproduce(_: Path) -> Iterator[Case]:
    """The four published tables; exact schedules of CrossPipe get a little deterministic work."""
    module, to = "scenarios.reproduce", ("--out", "out")
    for table in ("zero_bubble", "diloco"):
        cases = f"{GOLDEN}/published/{table}.json"
        yield one(f"reproduce/{table}", module, table, "--cases", cases, *to)
    flags = ("--cases", f"{GOLDEN}/published/crosspipe.json", "--exact-work", "0.02")
    yield one("reproduce/crosspipe", module, "crosspipe", *flags, *to)
    yield one("reproduce/sailor", module, "sailor", "--cases", f"{GOLDEN}/sailor", *to)


def training_run(_: Path) -> Iterator[Case]:
    """Whole training runs on moving links: held, with other jobs, and re-planned."""
    module = "scenarios.training_run"
    tiny: Flags = (
        "--model",
        "llama2_7b",
        "--num-layers",
        "6",
        "--microbatches",
        "4",
        "--epochs",
        "3",
    )
    tiny += ("--epoch-s", "60", "--out", "out")
    jobs = ("--arrivals-per-s", "0.02", "--mean-duration-s", "60")
    moving = ("--dynamics", "markov_fast", "--restart-s", "0.5", "--horizon-epochs", "100")
    for law in ("steady", "calm", "multi_cloud", "stress", "ou", "markov_fast", "markov_slow"):
        yield one(f"training_run/{law}", module, *tiny, *IDEAL, "--dynamics", law, "--seed", "4")
    yield one("training_run/jobs", module, *tiny, *IDEAL, *jobs)
    for planner in ("exact", "proportional"):
        flags = ("--planner", planner, *moving, *jobs)
        yield one(f"training_run/{planner}", module, *tiny, *IDEAL, *flags)
    replicas = ("--placement", "East*6", "--replicas", "West*6", "--parallelism", "2x2x2")
    as_given = ("--trainer", "reference")
    yield one("training_run/replicas", module, *tiny, *as_given, *replicas)


def learning(_: Path) -> Iterator[Case]:
    """Training of Hi-PPO's policies and of the local agent, a few updates each."""
    tiny = ("--updates", "2", "--worlds", "2", "--samples", "2", "--rounds", "1", "--workers", "1")
    moves = ("--move-worlds", "2", "--move-draws", "1", "--move-updates", "2", "--out", "out")
    train = "scenarios.east_west_train"
    yield one("learning/hi_ppo", train, "moves", "--seed", "7", *tiny, *moves)
    yield one("learning/local", train, "local", "--quick", "--seed", "3", "--out", "out")


def others(_: Path) -> Iterator[Case]:
    """Drawn worlds, curves over fluctuation and ablations."""
    module = "scenarios.make_topology"
    flags: Flags = (
        "--num-domains",
        "6",
        "--price-usd-per-gb",
        "0.05",
        "--gpu-price-usd-per-hour",
        "2",
    )
    yield one("others/drawn_world", module, *flags, "--out", "six.yaml")
    flags = ("--num-worlds", "1", "--num-epochs", "2", "--fluctuations", "0,0.3")
    flags += ("--jitters", "0.2", "--planners", "search_once", "--out", "out")
    yield one("others/robustness", "scenarios.robustness", *flags)
    flags = ("--num-domains", "4", "--num-worlds", "2", "--out", "out")
    yield one("others/ablations", "scenarios.ablations", *flags)


def astra(golden: Path) -> Iterator[Case]:
    """The recorded cases of ASTRA-sim through our engine of its files."""
    paths = sorted((golden / "astra").glob("*/expected.json"))
    if not paths:
        raise ValueError(f"--golden {golden}: must hold recorded cases in astra/*/, got none")
    for path in paths:
        expected = loads(path.read_text("utf-8"))
        folder = f"{GOLDEN}/astra/{path.parent.name}"
        files = {"workload": "trace", "system": "system.json", "network": "network.yml"}
        files["remote-memory"] = "remote_memory.json"
        if (path.parent / "comm_group.json").exists():
            files["comm-group"] = "comm_group.json"
        flags = [f"--{flag}-configuration={folder}/{name}" for flag, name in files.items()]
        module = f"astra_sim.{expected['backend'].removeprefix('congestion_')}"
        yield one(f"astra/{path.parent.name}", module, *flags, *expected["extra_args"])


GROUPS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "simulate": simulate,
    "train": train,
    "decide": decide,
    "compare": compare,
    "kpi": kpi,
    "pareto": pareto,
    "suites": suites,
    "calibration": calibration,
    "training_run": training_run,
    "learning": learning,
    "others": others,
    "reproduce": reproduce,
    "astra": astra,
}
NEED_GOLDEN = frozenset({"reproduce", "astra"})
"""Groups that read reference figures, which --golden names the folder of."""

IN_TURN = {"simulate": 11, "suites": 7, "training_run": 6, "decide": 6, "astra": 30}
"""Groups of short commands, and how many of them share a process; others have one each."""


def batches_of(groups: list[str], golden: Path | None) -> list[list[Case]]:
    """Return the cases of groups, those together that share a process.

    Groups that need the folder of recorded figures are left out where it is not given.
    """
    found = []
    for group in groups:
        if golden is not None or group not in NEED_GOLDEN:
            cases, size = list(GROUPS[group](golden or Path())), IN_TURN.get(group, 1)
            found += [cases[begin : begin + size] for begin in range(0, len(cases), size)]
    return found
