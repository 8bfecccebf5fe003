"""Fit of a law of TCP's start-up and losses to single messages, and its test on placements."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.message_cases import SIZES_IN_PRODUCTS, message_figures
from calibration.fit.fit import Fit, case_errors
from calibration.fit.prediction import measurement_of, predict
from calibration.fit.residuals import Predictor
from des.base.lazy import lazy_imports
from des.base.parallel_map import ParallelMap
from des.compiled.simulate import simulate_compiled
from des.costs.start_up import fresh_connection_s, start_up_on, start_up_s
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.transport_law import LEAST_GROWTH, TransportLaw
from des.world.packet_transport import MOST_QUEUE_BYTES, PacketTransport

with lazy_imports(__name__):
    from scipy import optimize

_LEAST_GAIN = 0.9
"""A law with more figures counts only where it lowers the error to this part of that without."""

_NEGLIGIBLE_ERROR = 1e-9

_GROWTHS = (0.08, 0.15, 0.3, 0.6)
_FIRST_SEGMENTS = (1, 6, 36, 216)
_MOST_FIRST_SEGMENTS = 1e5
"""Places from which growing windows are sought, and the most bytes that they may begin with."""

_OPEN_WINDOW_BYTES = 2.0**60
"""First window of connections without a start-up. [bytes]"""


class _Found(NamedTuple):
    """A law and the root mean square of its relative errors of single messages."""

    law: TransportLaw
    error: float


def fit_law(
    cases: Sequence[PlacementCase], measured: Sequence[Measurement], packets: PacketTransport
) -> TransportLaw:
    """Find the law of a transport by which single messages take as long as measured.

    Parameters
    ----------
    cases, measured
        `calibration.cases.message_cases.message_cases`, and their measurements with ``packets``.

    Raises
    ------
    ValueError
        If cases and measurements do not match, or there are none.

    Notes
    -----
    For windows that leave in bursts and for paced ones, with and without a recovery behind each
    size of the grid, opening, slowdown and recovery are non-negative least squares of relative
    errors; the best of these laws counts. First windows are those of the transport and double.
    Paced windows that grow more slowly, and the bytes that they begin with, are found by
    Nelder and Mead's simplex search.
    """
    if not cases or len(cases) != len(measured):
        raise ValueError(
            f"fit of a law: measured must hold one measurement for each of at least 1 case, got "
            f"{len(measured)} for {len(cases)}"
        )
    delays = _Delays(cases, measured)
    forms = list(_forms(packets))
    if packets.congestion == "bbr":  # it paces
        forms.append(_growing(delays, forms[-1]))
    steady = min((delays.best(law, None) for law in forms), key=lambda one: one.error)
    edges = [math.sqrt(low * high) for low, high in pairwise(SIZES_IN_PRODUCTS)]
    recovering = min(
        (delays.best(law, edge) for law in forms for edge in edges),
        key=lambda one: one.error,
    )
    is_better = recovering.error < _LEAST_GAIN * steady.error - _NEGLIGIBLE_ERROR
    return (recovering if is_better else steady).law


def _growing(delays: "_Delays", paced: TransportLaw) -> TransportLaw:
    """Find growth and first window of a paced form; its other figures follow from these."""

    def law_at(place: Sequence[float]) -> TransportLaw:
        growth = min(max(math.exp(place[0]), LEAST_GROWTH), 1.0)
        first_bytes = paced.segment_bytes * min(max(math.exp(place[1]), 1.0), _MOST_FIRST_SEGMENTS)
        return replace(paced, growth=growth, first_window_bytes=first_bytes)

    def error_at(place: np.ndarray, *_: object) -> float:
        return float(delays.best(law_at(place.tolist()), None).error)

    starts = [(math.log(growth), math.log(num)) for growth in _GROWTHS for num in _FIRST_SEGMENTS]
    start = min(starts, key=lambda place: delays.best(law_at(place), None).error)
    found = optimize.minimize(
        error_at,
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-3, "fatol": 1e-6, "maxfev": 120},
    )
    return law_at(found.x.tolist())


def closed_form_error(
    cases: Sequence[PlacementCase], measured: Sequence[Measurement], packets: PacketTransport
) -> float:
    """Mean error of single messages by the closed form, which knows no losses and takes no run.

    Parameters
    ----------
    cases, measured
        As `fit_law` takes them; ``packets`` have fresh connections.
    """
    window_bytes = packets.first_window_segments(MOST_QUEUE_BYTES) * packets.segment_bytes
    errors = []
    for case, found in zip(cases, measured, strict=True):
        num_bytes, rate, latency_s = message_figures(case)
        closed_s = fresh_connection_s(
            num_bytes,
            bandwidth_bytes_per_s=rate,
            latency_s=latency_s,
            first_window_bytes=float(packets.flows * window_bytes),
        )
        errors.append(abs(2.0 * closed_s / found.makespan_s - 1.0))
    return float(np.mean(errors))


def _forms(packets: PacketTransport) -> Iterator[TransportLaw]:
    """Laws with the first windows of a transport, in bursts and paced."""
    opening_bytes = packets.segment_bytes if packets.connections == "reused" else 0.0
    if packets.congestion == "line_rate_window" and packets.first_segments is None:
        window_bytes = math.inf
    else:
        window_bytes = packets.first_window_segments(math.inf) * packets.segment_bytes
    for is_paced in (False, True):
        yield TransportLaw(
            connections=packets.connections,
            first_window_bytes=min(
                packets.flows * (window_bytes + opening_bytes), _OPEN_WINDOW_BYTES
            ),
            segment_bytes=float(packets.segment_bytes),
            is_paced=is_paced,
        )


class _Delays:
    """Delays of single messages against ideal links, as rows of linear equations."""

    def __init__(self, cases: Sequence[PlacementCase], measured: Sequence[Measurement]) -> None:
        ideal_s = np.array([predict(case).makespan_s for case in cases])
        figures = np.array([message_figures(case) for case in cases])
        self._num_bytes, self._rates, self._latencies_s = figures.T
        self._measured_s = np.array([each.makespan_s for each in measured]) / 2.0
        self._delays_s = self._measured_s - ideal_s / 2.0

    def best(self, law: TransportLaw, edge: float | None) -> _Found:
        """Return the best law of a form, with a recovery beyond a size unless that is None."""
        round_trips_s = 2.0 * self._latencies_s
        rounds_s = [
            start_up_s(start_up_on(law, rate, round_trip_s), 0.0, num_bytes)
            for rate, round_trip_s, num_bytes in zip(
                self._rates.tolist(), round_trips_s.tolist(), self._num_bytes.tolist(), strict=True
            )
        ]
        is_beyond = self._num_bytes > (edge or math.inf) * self._rates * round_trips_s
        columns = np.stack(
            [round_trips_s, self._num_bytes / self._rates, round_trips_s * is_beyond], axis=1
        )
        weights = 1.0 / self._measured_s
        found, rest = optimize.nnls(
            columns * weights[:, np.newaxis], (self._delays_s - np.array(rounds_s)) * weights
        )
        opening, slowdown, recovery = (float(each) for each in found)
        fitted = replace(
            law,
            start_up_round_trips=opening,
            efficiency=1.0 / (1.0 + slowdown),
            recovery_round_trips=recovery,
            recovery_after_products=edge,
        )
        return _Found(fitted, float(rest) / math.sqrt(len(weights)))


def predict_with_law(case: PlacementCase, corrections: Corrections = NO_CORRECTIONS) -> Measurement:
    """Simulate a case with `des` under a law of the transport, as `predict`.

    Fresh connections share a link equally, as TCP's flows do; reused ones queue for it.
    """
    topology = case.topology
    packets = topology.transport.packets
    if corrections.transport is not None and packets.connections == "fresh":
        topology = replace(topology, transport=replace(topology.transport, sharing="fair"))
    result = simulate_compiled(topology, case.workload, case.plan, corrections)
    return measurement_of(case, result, corrections)


def fit_transport(
    law: TransportLaw,
    cases: Sequence[PlacementCase],
    reference: Sequence[Measurement],
    *,
    predict: Predictor,
    at_work: ParallelMap = map,
) -> Fit:
    """Judge a law on placements, none of which it was fitted to.

    The law is kept if the mean error falls by more than its standard error. ``predict`` is as
    `calibration.fit.fit.fit` takes it, such as `predict_with_law`.
    """
    fitted = Corrections(transport=law)
    before = tuple(at_work(partial(_predict_with, predict, NO_CORRECTIONS), cases))
    after = tuple(at_work(partial(_predict_with, predict, fitted), cases))
    errors_before, errors_after = (case_errors(each, reference) for each in (before, after))
    gains = errors_before - errors_after
    gain = float(np.mean(gains))
    spread = float(np.std(gains, ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
    kept = gain > spread
    return Fit(
        corrections=fitted if kept else NO_CORRECTIONS,
        fitted=fitted,
        intervals=(),
        not_identified=(),
        error_before=float(np.mean(errors_before)),
        error_after=float(np.mean(errors_after)),
        gain_standard_error=spread,
        kept=kept,
        reason=(
            f"the error of placements {'falls' if gain > 0.0 else 'rises'} by {abs(gain):.2%} "
            f"(standard error {spread:.2%}), from {np.mean(errors_before):.2%} to "
            f"{np.mean(errors_after):.2%}"
        ),
        before=before,
        held_out=after,
    )


def _predict_with(predict: Predictor, corrections: Corrections, case: PlacementCase) -> Measurement:
    """Predict a case; a function of a module, for pools of processes."""
    return predict(case, corrections)


def law_lines(law: TransportLaw) -> list[str]:
    """Say what a law is, a line for each figure."""
    windows = "paced" if law.is_paced else "in bursts"
    lines = [
        f"{law.connections} connections, windows {windows}, the first of "
        f"{law.growth * law.first_window_bytes:.4g} bytes, each {1.0 + law.growth:.3g} times the "
        "one before",
        f"start_up_round_trips = {law.start_up_round_trips:.4g}",
        f"efficiency = {law.efficiency:.6g}",
    ]
    if law.recovery_after_products is not None:
        lines.append(
            f"recovery_round_trips = {law.recovery_round_trips:.4g} beyond "
            f"{law.recovery_after_products:.3g} bandwidth-delay products"
        )
    return lines
