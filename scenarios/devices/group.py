"""Divide the free GPUs of a server into groups of one size, such as tensor groups."""

from dataclasses import asdict, dataclass

from des.base.flags import option, required
from des.base.lazy import lazy_imports
from des.base.names import counted
from scenarios.devices.placement_flags import (
    PlacedServerFlags,
    aligned,
    comma_separated,
    milliseconds,
    note_on_times,
    placed_server_of,
    tell,
)

with lazy_imports(__name__):
    from agents.devices import gpu_groups, gpu_placement

EXAMPLES = """\
examples:
  python -m scenarios.devices group --file topo.txt --size 2
  python -m scenarios.devices group --file topo.txt --size 2 --free 0,1,2,3,4 --json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PlacedServerFlags):
    """Flags of a division."""

    size: int = required("GPUs of a group")
    free: tuple[int, ...] | None = option(
        None, "numbers of the GPUs that others have not taken", default_text="all"
    )
    payload_bytes: float = option(100e6, "buffer of the all-reduce in each group [bytes]")
    json: bool = option(False, "print JSON, and nothing else")


def run(config: Config) -> None:
    """Divide the GPUs and print the groups."""
    server = placed_server_of(config)
    found = gpu_groups.optimal_groups(server, config.size, config.free)
    times_s = [
        gpu_placement.gpus_all_reduce_s(server, group, config.payload_bytes)
        for group in found.groups
    ]
    if config.json:
        tell(asdict(found) | {"all_reduce_s": times_s})
        return
    heads = ("GPUs", "NVLinks", "distances", "farthest", "all-reduce [ms]")
    rows = [
        (
            comma_separated(group),
            str(score.nvlinks),
            str(score.distances),
            score.farthest,
            milliseconds(time_s),
        )
        for group, score, time_s in zip(found.groups, found.scores, times_s, strict=True)
    ]
    kind = "exact" if found.is_exact else "greedy"
    left = f"; left over: {comma_separated(found.left)}" if found.left else ""
    tell(
        f"{counted(len(found.groups), 'group')} of {counted(config.size, 'GPU')} of {found.server} "
        f"({kind}), {found.nvlinks} NVLinks inside, worst group {found.worst.nvlinks}{left}\n"
        f"{aligned([heads, *rows])}{note_on_times(server)}"
    )
