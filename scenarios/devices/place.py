"""Place a job on GPUs of one server, or of several with --servers-file or --cluster."""

from dataclasses import asdict, dataclass
from typing import Literal

from agents.devices.numa_policies import NumaPolicy
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.devices.gpus import MOST_GPUS
from des.devices.server import Server
from scenarios.devices.placement_flags import (
    JobFlags,
    aligned,
    comma_separated,
    milliseconds,
    mix_of,
    note_on_times,
    placed_server_of,
    tell,
)
from scenarios.devices.sources import list_changed_flags

with lazy_imports(__name__):
    from agents.devices import goodness, gpu_placement
    from scenarios.devices import place_servers

EXAMPLES = """\
examples:
  python -m scenarios.devices place --file topo.txt --gpus 4
  python -m scenarios.devices place --file topo.txt --gpus 4 --free 0,2,3,5,6 --policy single-numa
  python -m scenarios.devices place --file topo.txt --gpus 4 --by time --all
  python -m scenarios.devices place --servers-file servers.yaml --gpus 16 --model llama2_7b
  python -m scenarios.devices place --cluster topology.conf --simulate dgx-h100 --gpus 64
"""

_MOST_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JobFlags):
    """Flags of a placement."""

    free: tuple[int, ...] | None = option(
        None, "numbers of the GPUs that others have not taken", default_text="all"
    )
    policy: NumaPolicy = option("none", "rule for NUMA nodes, as Kubernetes has them")
    by: Literal["nvlinks", "time"] = option(
        "nvlinks", "first aim: most NVLinks inside, or least predicted all-reduce time"
    )
    payload_bytes: float = option(100e6, "buffer of the all-reduce [bytes]")
    all: bool = option(False, "list all sets with the most NVLinks inside")


def run(config: Config) -> int:
    """Place the job and print where, how good and why."""
    if config.servers_file is not None or config.cluster is not None:
        _check_alone(config)
        return place_servers.run(config, mix_of(config.mix))
    server = placed_server_of(config)
    found = _placed(server, config, config.by)
    is_exact = len(goodness.places_of(server, "free", config.free)) <= MOST_GPUS
    fastest = _placed(server, config, "time") if is_exact else None
    sets = (server, config.gpus, config.free, config.policy)
    ties = gpu_placement.best_sets(*sets) if config.all else None
    time_s = gpu_placement.gpus_all_reduce_s(server, found.gpus, config.payload_bytes)
    if config.json:
        said = asdict(found) | {"all_reduce_s": time_s, "fastest": fastest}
        tell(said if ties is None else said | {"best_sets_by_nvlink_sum": ties})
        return 0
    tell(_text(found, time_s, config.payload_bytes))
    if fastest is not None and time_s is not None:
        tell(_faster_text(fastest, time_s))
    tell(note_on_times(server) + ("" if ties is None else _ties_text(ties)))
    return 0


def _placed(
    server: Server, config: Config, by: Literal["nvlinks", "time"]
) -> "gpu_placement.GpuPlacement":
    return gpu_placement.optimal_placement(
        server,
        config.gpus,
        config.free,
        config.policy,
        by=by,
        payload_bytes=config.payload_bytes,
    )


def _check_alone(config: Config) -> None:
    """Refuse flags about one server where there are several."""
    names = ["free", "policy", "by", "all"]
    source = "--cluster" if config.servers_file is None else "--servers-file"
    if config.servers_file is not None:
        names += ["file", "simulate", "here", "nvml", "cluster", "taken", "link_speed"]
    for flag in list_changed_flags(config, names):
        raise UsageError(f"{flag} must be left out with {source}, for a job on several servers")


def _text(found: "gpu_placement.GpuPlacement", time_s: float | None, payload_bytes: float) -> str:
    score, ties = found.score, found.num_ties
    cards = "-" if score.card_distances is None else str(score.card_distances)
    rows = [
        ("NVLinks inside", str(score.nvlinks)),
        ("distances of other pairs", str(score.distances)),
        ("farthest pair", score.farthest),
        ("distances to cards", cards),
        ("NVLinks left to others", str(score.left_nvlinks)),
        ("distances left to others", str(score.left_distances)),
        ("NUMA nodes", "-" if found.num_nodes is None else str(found.num_nodes)),
        ("equally good sets", "-" if ties is None else str(ties)),
        (f"all-reduce of {payload_bytes / 1e6:g} MB [ms]", milliseconds(time_s)),
    ]
    kind = "exact" if found.is_exact else "greedy"
    gpus = f"GPU{'s' if len(found.gpus) > 1 else ''} {comma_separated(found.gpus)}"
    return f"{gpus} of {found.server} ({kind})\n{found.why}\n{aligned(rows)}"


def _faster_text(fastest: "gpu_placement.GpuPlacement", time_s: float) -> str:
    """Line about the set of least predicted time, if it is faster than the chosen one."""
    assert fastest.all_reduce_s is not None
    if fastest.all_reduce_s >= time_s:
        return ""
    shown = f"{comma_separated(fastest.gpus)}, {milliseconds(fastest.all_reduce_s)} ms"
    return f"faster by prediction: {shown} (--by time)\n"


def _ties_text(ties: tuple[tuple[int, ...], ...]) -> str:
    shown = [f"  {comma_separated(gpus)}\n" for gpus in ties[:_MOST_SHOWN]]
    left = len(ties) - len(shown)
    more = f"  ({left} more, which --json lists)\n" if left else ""
    return f"sets with the most NVLinks inside: {len(ties)}\n{''.join(shown)}{more}"
