"""Watch a training: measurements come in, and the plan in force stays or is left.

Reads files that are dropped into a folder (iperf3, ping, mtr, Prometheus, or lines of JSON), or
asks Prometheus, and decides after each round: stay, or move to a plan that pays for the move.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from agents.answer.config import Config as Question
from agents.trainers.table import DEFAULT_TRAINER, TRAINERS
from calibration.measurements.sites import Sites, read_sites
from des.base.atomic_write import write_atomically
from des.base.checks import prefixed_errors
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.flags import option, required
from des.base.lazy import lazy_imports
from des.base.quantities import DURATION_S, parse_quantity
from des.base.speaking import SPEAKER
from des.worlds.world_flags import LayerFlags, NetworkFlag
from scenarios.launch.command import HOSTS_HELP

with lazy_imports(__name__):
    from agents.answer import bound_reading
    from agents.replanning import observed_world, other_plans, search_triggers, stay_or_move
    from agents.replanning import watch as watches
    from des.figures import paper
    from scenarios.k8s import api_server, http_server
    from scenarios.launch import launch_files
    from scenarios.watch import folder_source, node_source, replay, url_source, watch_state, watcher

PROG = "python -m scenarios.watch"
_API_TIMEOUT_S = 10.0
_EPILOG = f"""\\
examples:
  {PROG} --network world.yaml --job job.json --state state.json --from measured
      files that appear in the folder measured, looked for every minute
  {PROG} --network world.yaml --state state.json --from measured --once
      one round, such as from cron: the state keeps what it has seen
  {PROG} --network world.yaml --state state.json --launch launches --on-decision ./restart.sh \\\\
      --from 'http://prometheus:9090/api/v1/query_range?query=link_bandwidth_bits_per_second'
      a launch folder and a command after each change of plan
  {PROG} --network world.yaml --from day --dry-run --picture day.png
      what would have been decided over a recorded day

a line of a .jsonl file in the folder:
  {{{{"time": 1700000000, "link": "East->West", "bandwidth": "4.2Gbps", "latency": "31ms"}}}}
  {{{{"time": "2026-11-29T15:00:00Z", "site": "East", "up": true, "gpus": 7, "utilisation": 0.5}}}}
  {{{{"time": 1700000000, "restart": "95s"}}}}
commands get EASTWEST_ACTION, EASTWEST_WHY and EASTWEST_LAUNCH, and the plan on standard input

exit codes: 0 ended by --once, --dry-run or SIGTERM; 2 bad input, or the state is of another job;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(LayerFlags, NetworkFlag):
    """Flags of a watch."""

    network: str = required("world as it is thought to be: YAML or JSON, or a name", is_file=True)
    job: str | None = option(
        None, "job file, or an example's name; none: the flags of the model", is_file=True
    )
    microbatches: int = option(32, "sequences of an iteration, without --job")
    from_: str = required("folder that measurements are dropped into, or address of query_range")
    sites: Path | None = option(
        None, "hosts of sites: YAML such as 'East: [10.1.0.0/16, east-*]'", is_file=True
    )
    kubeconfig: Path | None = option(
        None, "cluster whose nodes say which GPUs sites have; sites are named by --sites or labels"
    )
    in_cluster: bool = option(False, "the same by this pod's service account")
    state: Path | None = option(None, "file of what the watch knows; made if it is not there")
    trainer: str = option(DEFAULT_TRAINER, f"one of {', '.join(TRAINERS)}")
    last: str | None = option(None, "plan in force when the watch begins, of decide --json")
    every: str = option("60s", "time between rounds")
    horizon: str = option("24h", "time within which a move must pay")
    confidence: float = option(0.4, "chance that a move pays, below which none is made")
    smoothing: str = option("5min", "age at which a measurement of a link counts 1/e")
    restart: str | None = option(
        None, "time of a restart with its checkpoint", default_text="assumed, until measured"
    )
    replan_threshold: float | None = option(
        None,
        "search where the step is longer, or a rate higher, by more than this share; below it "
        "plans are re-bound inside sites",
        default_text="0.05 for the step, 0.25 for rates",
    )
    replan_every: int | None = option(None, "iterations after which to search; none: never")
    stale: str = option("15min", "age beyond which a link's measurements are called stale")
    once: bool = option(False, "end after one round")
    dry_run: bool = option(False, "replay what the folder holds by its times, and change nothing")
    picture: Path | None = option(None, "with --dry-run: picture to write, .png, .pdf or .svg")
    launch: Path | None = option(None, "folder that gets a launch folder for each change")
    hosts: Path | None = option(None, f"with --launch: {HOSTS_HELP}", is_file=True)
    on_decision: str | None = option(None, "command to run after each change of plan")
    listen: str | None = option(None, "address for /metrics, such as 127.0.0.1:9105")

    def __post_init__(self) -> None:
        if self.state is None and not self.dry_run:
            raise UsageError(f"{PROG}: --state must be given without --dry-run, got none")
        if self.dry_run and (self.kubeconfig is not None or self.in_cluster):
            raise UsageError(f"{PROG}: --kubeconfig and --in-cluster must be left out of --dry-run")
        if self.kubeconfig is not None and self.in_cluster:
            raise UsageError(f"{PROG}: --kubeconfig and --in-cluster cannot both be given")
        if self.picture is not None and not self.dry_run:
            raise UsageError(f"{PROG}: --picture must be given with --dry-run, got it alone")
        if self.picture is not None:
            paper.require_formats("--picture", (self.picture.suffix.removeprefix("."),))
        if self.launch is not None:
            launch_files.require_writer(self.trainer)

    def seconds(self, field: str) -> float:
        """A duration of a field. [s]"""
        with prefixed_errors(f"{PROG}: --{field} ", UsageError):
            return parse_quantity(getattr(self, field), DURATION_S)


@command_given(Config, PROG, __doc__, _EPILOG)
def main(config: Config, given: frozenset[str]) -> int:
    """Run the command on its settings."""
    watch = watch_of(config, given)
    source = _source(config, watch)
    if config.dry_run:
        return _replay(config, watch, source)
    assert config.state is not None
    state = watch_state.read_watch_state(config.state, watch)
    source.known = dict(state.files)
    watching = watcher.Watcher(
        source=source,
        state=state,
        outlets=watcher.Outlets(
            state=config.state,
            launch=config.launch,
            hosts=config.hosts,
            hook=config.on_decision,
        ),
        say=_say,
        complain=_complain,
        stale_s=config.seconds("stale"),
    )
    with SPEAKER.resting():
        return asyncio.run(_watching(config, watching))


def watch_of(config: Config, given: frozenset[str]) -> watches.Watch:
    """The watch of the flags, before it has seen anything."""
    names = {one for one in Question.__dataclass_fields__ if one in Config.__dataclass_fields__}
    own = {name: getattr(config, name) for name in names - {"horizon"}}
    asked = bound_reading.bound_question_of(Question(**own), given & names)
    restart_s = None if config.restart is None else config.seconds("restart")
    share = config.replan_threshold
    return watches.Watch(
        world=observed_world.ObservedWorld(
            base=asked.request.topology, time_constant_s=config.seconds("smoothing")
        ),
        others=other_plans.OtherPlans(request=asked.request),
        triggers=search_triggers.SearchTriggers(
            every_iterations=config.replan_every,
            **({} if share is None else {"slower": share, "quicker": share}),
        ),
        rule=stay_or_move.PayoffRule(
            horizon_s=config.seconds("horizon"),
            confidence=config.confidence,
        ),
        replacement=(
            None if restart_s is None else replace(asked.replacement, restart_s=restart_s)
        ),
        in_force=asked.in_force,
    )


def _source(
    config: Config, watch: watches.Watch
) -> folder_source.FolderSource | url_source.UrlSource | node_source.NodeSource:
    sites = Sites(patterns={}) if config.sites is None else read_sites(config.sites)
    if config.from_.startswith(("http://", "https://")):
        if config.dry_run:
            raise UsageError(f"{PROG}: --from must be a folder with --dry-run, got {config.from_}")
        source: folder_source.FolderSource | url_source.UrlSource = url_source.UrlSource(
            url=config.from_, sites=sites
        )
    elif Path(config.from_).is_dir():
        source = folder_source.FolderSource(folder=Path(config.from_), sites=sites)
    else:
        raise UsageError(f"{PROG}: --from must be a folder or an address, got {config.from_!r}")
    api = api_server.reach(config.kubeconfig, config.in_cluster, _API_TIMEOUT_S)
    if api is None:
        return source
    return node_source.NodeSource(
        api=api,
        beside=source,
        sites=sites,
        per_server={
            one.name: 1 if one.nodes is None else one.nodes.gpus_per_node
            for one in watch.world.base.domains
        },
    )


def _replay(
    config: Config,
    watch: watches.Watch,
    source: folder_source.FolderSource | url_source.UrlSource | node_source.NodeSource,
) -> int:
    arrivals = source.arrivals()
    for problem in arrivals.problems:
        _complain(problem)
    day = replay.replay_day(watch, arrivals.observations, decided=_say_change, complain=_complain)
    _say(day.summary)
    if config.picture is not None:
        kind = config.picture.suffix.removeprefix(".")
        write_atomically(config.picture, paper.image_bytes(replay.day_figure(day), kind))
    return 0


async def _watching(config: Config, watching: watcher.Watcher) -> int:
    """Run rounds until SIGTERM, or one with ``--once``."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    every_s = config.seconds("every")
    server = http_server.HttpServer(handler=watching.metrics.answer)
    listening = None if config.listen is None else await _listening(config.listen, server)
    watching.resume()
    while not ended.is_set():
        await asyncio.to_thread(watching.round)
        if config.once:
            break
        try:
            await asyncio.wait_for(ended.wait(), every_s)
        except TimeoutError:
            continue
    if listening is not None:
        listening.close()
    return 0


async def _listening(address: str, server: http_server.HttpServer) -> asyncio.Server:
    host, _, port = address.rpartition(":")
    try:
        if not host or not port.isdecimal():
            raise ValueError("must be HOST:PORT")
        loop = asyncio.get_running_loop()
        found = await loop.create_server(server.connection, host, int(port))
    except (OSError, ValueError, OverflowError) as error:
        raise UsageError(f"{PROG}: --listen {address}: cannot listen: {error}") from error
    own = found.sockets[0].getsockname()
    SPEAKER.say(f"metrics at http://{own[0]}:{own[1]}/metrics")
    return found


def _say_change(verdict: watches.WatchVerdict) -> None:
    if verdict.action != "stay":
        _say(watcher.line_of(verdict))


def _complain(line: str) -> None:
    SPEAKER.say(f"warning: {line}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
