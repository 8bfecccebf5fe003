"""Flags that describe a fleet and its requests, and the world that they give."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import require_count
from des.base.command import UsageError
from des.base.flags import option
from des.base.text_files import read_text
from des.dynamics.presets import DYNAMICS
from des.serving.conversations import conversation_requests
from des.serving.engines import engine_named
from des.serving.fleet_links import FleetSites
from des.serving.fleet_routers import ROUTERS
from des.serving.fleet_settings import ScalingLimits, Slo, StartDelay
from des.serving.fleet_world import MIXED, PROMPT, TOKEN, World, admitted
from des.serving.request_streams import (
    draw_moving_requests,
    modulated_requests,
    poisson_requests,
    stretched,
    thinned,
)
from des.serving.requests import Request
from des.serving.trace_files import (
    parse_trace,
    read_request_trace,
    recognised_form,
    requests_of,
)
from des.worlds.reading import read_topology
from scenarios.autoscale import application_files
from scenarios.frame.named_columns import named_columns
from scenarios.frame.outputs import OutputFlags
from scenarios.reproduce.serving_cases import shipped_cases

_SHIPPED_SUFFIX = (".csv", ".jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetConfig(OutputFlags):
    """Flags of a fleet."""

    trace: str = option(
        "azure-2023-conv",
        "trace file (Azure, Bailian, BurstGPT, Mooncake, Vidur, or CSV with --columns), name of a "
        "shipped one, or a law: "
        "poisson:RATE:SECONDS, mmpp:RATE/RATE:MEAN_STAY:SECONDS, conversations:RATE:SECONDS, "
        f"or a moving rate ({', '.join(DYNAMICS)}), such as ou:RATE:SECONDS",
    )
    columns: tuple[str, ...] = option(
        (),
        "columns of another CSV file: time=NAME,prompt=NAME,output=NAME, times in seconds or dates",
    )
    num_requests: int | None = option(None, "only the first requests of the trace")
    stretch: float = option(1.0, "factor of the times between requests; 0.5 is twice the load")
    thin: float = option(1.0, "share of the requests to keep, by --seed")
    slo_ttft: float = option(0.5, "longest time to the first token of a good request [s]")
    slo_tbt: float = option(0.1, "longest gap between tokens of a good request [s]")
    engine: str = option(
        "h100-llama-3.3-70b-fp8-tp8", "engine with fitted times, or shapes:MODEL:GPU:NUM_GPUS"
    )
    token_engine: str | None = option(
        None, "engine of the token pool, such as one of 4 GPUs beside 8 (default: that of --engine)"
    )
    mixed: int = option(0, "instances of one mixed pool at the start")
    prompt: int = option(4, "instances of the prompt pool at the start")
    token: int = option(2, "instances of the token pool at the start")
    max_batch_size: int = option(256, "most requests in a batch")
    chunk_tokens: int = option(1024, "most tokens of an iteration with prompts")
    router: str = option("least_work", f"router: {', '.join(ROUTERS)}")
    prefix_block_tokens: int = option(
        0, "tokens of a block of the prefix cache, those of the trace (0: no cache)"
    )
    swap_gb_per_s: float = option(
        0.0, "rate of swaps of preempted requests to the host and back [GB/s] (0: recompute)"
    )
    usd_per_gpu_h: float = option(2.5, "price of a GPU [USD/h] (assumed)")
    provision: float = option(0.0, "time to get a server [s]")
    load: float = option(30.0, "time to load the weights [s]")
    warm_up: float = option(0.0, "time to warm up [s]")
    start_variation: float = option(0.0, "standard deviation over mean of the time of a start")
    warm: int = option(0, "drained instances that are kept ready to serve")
    sleeping: int = option(0, "more of them whose weights are kept in the memory of the host")
    wake: float = option(3.0, "time until a sleeping instance serves [s]")
    sleeping_cost: float = option(1.0, "share of the price that a sleeping instance costs")
    decision_interval: float = option(10.0, "time between decisions [s]")
    min_instances_per_pool: int = option(1, "least instances of a pool")
    max_instances_per_pool: int | None = option(
        None, "most instances of a pool (default: no bound)"
    )
    max_total_instances: int = option(100, "most instances in all")
    cooldown: float = option(0.0, "time after a change without scaling down [s]")
    drain_timeout: float = option(0.0, "time after which a drain gives up requests [s] (0: never)")
    drain_moves_out: bool = option(
        False, "whether a draining instance sends its requests with their KV memory to others"
    )
    drains_soonest: bool = option(
        False,
        "whether to drain the instances expected to be empty first (default: the least loaded)",
    )
    packs_servers: bool = option(
        False, "whether instances share a server as far as its GPUs go (default: one each)"
    )
    transfer_gb_per_s: float = option(50.0, "rate of KV transfers of an instance [GB/s]")
    network: str | None = option(
        None, "world of the domains of pools: a file or a preset (default: all in one domain)"
    )
    domains: tuple[str, ...] = option((), "domain of each pool, with --network")
    weights_from: str | None = option(
        None, "domain from which weights are loaded over the links (default: --load)"
    )
    weights_gb: float = option(70.0, "weights of an instance, with --weights-from [GB]")
    contention: bool = option(True, "whether transfers of an instance wait for each other")
    applications: Path | None = option(
        None, "YAML file of applications, for --load and the interval of looking at drains"
    )
    application: str = option("0", "application of that file")
    start_state: Path | None = option(
        None, "YAML file of instance and number of each pool, for --engine and pools"
    )
    horizon: float | None = option(None, "time at which the run ends [s]")
    seed: int = option(0, "seed of starts and thinning")


def requests_named(name: str, seed: int, columns: Sequence[str] = ()) -> tuple[Request, ...]:
    """Read a trace file or a shipped trace, or draw requests of a law by the seed.

    ``columns`` are those of a CSV file: ``time=NAME`` and so on. What form a file has is said.

    Raises
    ------
    UsageError
        If there is neither.
    ValueError
        If the file is wrong.
    """
    law, *values = name.split(":")
    if law in _LAWS:
        return _drawn(law, values, seed)
    path = Path(name)
    if path.is_file():
        own = named_columns(columns)
        rows = read_request_trace(path, own)
        sys.stderr.write(f"{name}: read as {recognised_form(read_text(path), name, own)}\n")
        return requests_of(rows)
    if columns:
        raise UsageError(f"--columns must be of a trace file, got --trace {name}")
    shipped = {
        each.rsplit(".", 1)[0]: each
        for each in shipped_cases()["traces"]
        if each.endswith(_SHIPPED_SUFFIX)
    }
    if name not in shipped:
        raise UsageError(
            f"--trace must be a file or one of {', '.join(sorted(shipped))}, got {name!r}"
        )
    text = shipped_cases()["traces"][shipped[name]].decode("utf-8")
    return requests_of(parse_trace(text, name))


_LAWS = {"poisson": 2, "mmpp": 3, "conversations": 2} | dict.fromkeys(DYNAMICS, 2)
"""Laws of arrivals, and how many values each has."""


def _drawn(law: str, values: list[str], seed: int) -> tuple[Request, ...]:
    if len(values) != _LAWS[law]:
        raise UsageError(f"--trace {law} must have {_LAWS[law]} values, got {len(values)}")
    try:
        rates = [float(each) for each in values[0].split("/")]
        times_s = [float(each) for each in values[1:]]
    except ValueError as error:
        raise UsageError(f"--trace {law} must have numbers, got {':'.join(values)}") from error
    if law == "conversations":
        return conversation_requests(rates[0], times_s[0], seed)
    if law in DYNAMICS:
        return draw_moving_requests(DYNAMICS[law], rates[0], times_s[0], seed)
    if law == "poisson":
        return poisson_requests(rates[0], times_s[0], seed)
    return modulated_requests(rates, times_s[0], times_s[1], seed)


def config_requests(config: FleetConfig) -> tuple[Request, ...]:
    """Requests of the trace after the flags that change it.

    Raises
    ------
    ValueError
        If a flag is out of range or nothing is left.
    """
    requests = requests_named(config.trace, config.seed, config.columns)
    if config.num_requests is not None:
        require_count("--num-requests", "value", config.num_requests)
        requests = requests[: config.num_requests]
    if config.thin != 1.0:
        requests = thinned(requests, config.thin, config.seed)
    return requests if config.stretch == 1.0 else stretched(requests, config.stretch)


def config_world(config: FleetConfig, requests: tuple[Request, ...]) -> World:
    """Make the world of a configuration.

    Raises
    ------
    ValueError
        If a value is out of range or limits contradict each other.
    """
    drain_check_s, load_s = 0.0, config.load
    if config.applications is not None:
        manager = application_files.read_manager(config.applications, config.application)
        drain_check_s, load_s = manager.drain_check_interval, manager.scale_up_delay
    initial = (
        {MIXED: config.mixed} if config.mixed else {PROMPT: config.prompt, TOKEN: config.token}
    )
    names = dict.fromkeys(initial, config.engine)
    if config.token_engine is not None:
        if TOKEN not in names or config.start_state is not None:
            raise UsageError("--token-engine must be of a token pool, without --start-state")
        names[TOKEN] = config.token_engine
    if config.start_state is not None:
        state = application_files.read_start_state(config.start_state)
        initial, names = state.initial, state.engines
    made = {
        name: engine_named(
            name,
            max_batch_size=config.max_batch_size,
            chunk_tokens=config.chunk_tokens,
            usd_per_gpu_h=config.usd_per_gpu_h,
            prefix_block_tokens=config.prefix_block_tokens,
            swap_bytes_per_s=config.swap_gb_per_s * 1e9,
        )
        for name in names.values()
    }
    served, rejected = admitted(requests, *made.values())
    first = next(iter(made))
    return World(
        requests=served,
        rejected=rejected,
        engine=made[first],
        engines={pool: made[name] for pool, name in names.items() if name != first},
        initial=initial,
        slo=Slo(ttft_s=config.slo_ttft, gap_s=config.slo_tbt),
        start=StartDelay(
            provision_s=config.provision,
            load_s=load_s,
            warm_up_s=config.warm_up,
            variation=config.start_variation,
            num_warm=config.warm,
            num_sleeping=config.sleeping,
            wake_s=config.wake,
            sleeping_cost=config.sleeping_cost,
        ),
        limits=ScalingLimits(
            min_per_pool=config.min_instances_per_pool,
            max_total=config.max_total_instances,
            max_per_pool=config.max_instances_per_pool,
            cooldown_s=config.cooldown,
            drain_timeout_s=config.drain_timeout,
            drain_check_s=drain_check_s,
            drain_moves_out=config.drain_moves_out,
            drains_soonest=config.drains_soonest,
            packs_servers=config.packs_servers,
        ),
        decision_interval_s=config.decision_interval,
        transfer_bytes_per_s=config.transfer_gb_per_s * 1e9,
        horizon_s=config.horizon,
        transfers_contend=config.contention,
        router=config.router,
        sites=_sites(config, tuple(initial)),
    )


def _sites(config: FleetConfig, pools: tuple[str, ...]) -> FleetSites | None:
    if config.network is None:
        if config.domains or config.weights_from is not None:
            raise UsageError("--domains and --weights-from need --network, got none")
        return None
    if len(config.domains) != len(pools):
        raise UsageError(
            f"--domains must name a domain for each of {', '.join(pools)}, "
            f"got {','.join(config.domains)!r}"
        )
    return FleetSites(
        topology=read_topology(config.network),
        domain_of=dict(zip(pools, config.domains, strict=True)),
        weights_from=config.weights_from,
        weights_bytes=config.weights_gb * 1e9,
    )
