"""Link conditions while a compiled simulation runs, see `des.engine.conditions`."""

import math

from des.base.arithmetic import goodput
from des.base.jit import inner_kernel
from des.base.scalar import scalar
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.program import BEYOND, OK, STARVED, STEADY, UNIFORM
from des.compiled.kernels.records import ProgramRun
from des.dynamics.uniform_course import segment_ruling, uniform_factors


@inner_kernel
def begin_offers(run: ProgramRun) -> None:
    """Let no offer be known yet; links that stand still have one for ever."""
    header = run.header
    for link in range(header.num_links):
        own = at(run.link_states, link)
        own.until_s = own.since_asked_s = 0.0
        own.piece = at(run.links, link).first_piece
        if header.weather == STEADY:
            _offer(run, link, 1.0, 1.0, math.inf)


@inner_kernel
def refresh_offer(run: ProgramRun, link: int, time_s: float) -> None:
    """Let a link offer what it does at a time."""
    own = at(run.link_states, link)
    if not own.since_asked_s <= time_s < own.until_s:
        own.since_asked_s = time_s
        _look_up(run, link, time_s)


@inner_kernel
def _look_up(run: ProgramRun, link: int, time_s: float) -> None:
    header, own = run.header, at(run.link_states, link)
    if header.weather == UNIFORM:
        segment = segment_ruling(header.start_s, time_s, header.interval_s)
        bandwidth_factor, latency_factor = uniform_factors(
            header.seed, link, segment, header.bandwidth_fluctuation, header.latency_jitter
        )
        until_s = (segment + 1) * header.interval_s - header.start_s
        _offer(run, link, bandwidth_factor, latency_factor, until_s)
        return
    first_piece, end_piece = at(run.links, link).first_piece, at(run.links, link).end_piece
    while own.piece > first_piece and at(run.pieces, own.piece - 1).until_s > time_s:
        own.piece -= 1
    while own.piece < end_piece and at(run.pieces, own.piece).until_s <= time_s:
        own.piece += 1
    if own.piece == end_piece or at(run.pieces, own.piece).from_s > time_s:
        give_up(run, BEYOND, link, time_s)
        _offer(run, link, 0.0, 1.0, math.inf)
        return
    piece = at(run.pieces, own.piece)
    _offer(run, link, piece.bandwidth_factor, piece.latency_factor, piece.until_s)


@scalar
def goodput_at(where: tuple[ProgramRun, int], time_s: float) -> tuple[float, float]:
    """Rate of a message alone on a link [bytes/s], and until when it holds [s]."""
    run, link = where
    refresh_offer(run, link, time_s)
    own = at(run.link_states, link)
    return own.goodput_bytes_per_s, own.until_s


@inner_kernel
def give_up(run: ProgramRun, status: int, link: int, time_s: float) -> None:
    """Record why the run cannot continue; the first reason counts."""
    outcome = run.outcome
    if outcome.status == OK:
        outcome.status, outcome.link, outcome.time_s = status, link, time_s


@inner_kernel
def starve(run: ProgramRun, link: int) -> None:
    """A message waits for a link that is down for ever."""
    give_up(run, STARVED, link, math.inf)


@inner_kernel
def _offer(
    run: ProgramRun,
    link: int,
    bandwidth_factor: float,
    latency_factor: float,
    until_s: float,
) -> None:
    base, own = at(run.links, link), at(run.link_states, link)
    own.bandwidth_bytes_per_s = base.bandwidth_bytes_per_s * bandwidth_factor
    own.latency_s = base.latency_s * latency_factor
    rate = goodput(
        own.bandwidth_bytes_per_s,
        base.round_trip_s * latency_factor,
        run.header.window_bytes,
    )
    own.goodput_bytes_per_s = min(rate, base.cap_bytes_per_s)
    own.until_s = until_s
