"""One calibration: placements drawn, measured and predicted, and the resulting factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.message_cases import message_cases
from calibration.cases.sampler import Purpose
from calibration.fit.errors import Errors, fidelity
from calibration.fit.fit import NEGLIGIBLE_ERROR, Fit, case_errors, fit
from calibration.fit.prediction import predict
from calibration.fit.regimes import case_names
from calibration.fit.transport_fit import fit_law, fit_transport
from calibration.loop.region import Choices, Region
from calibration.loop.training_state import Subject
from calibration.measuring.measure import measure_all
from calibration.reference.astra_config import as_seen
from calibration.runs.store import Store
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.transport_law import TransportLaw

Kind = Literal["fit", "probe"]
"""Factors are fitted, or those in force are tested on a few placements of the policy."""

_PURPOSES: dict[Kind, Purpose] = {"fit": "fit", "probe": "check"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A calibration to do: its number, the factors now in force, and what the policy chooses."""

    number: int
    kind: Kind
    in_force: Corrections
    choices: Choices = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRound:
    """Result of a calibration; equal orders give equal results.

    Parameters
    ----------
    num_cases
        Placements or logs that it is of.
    before
        Errors of the iteration time under the factors that were in force.
    after
        Errors under ``corrections``: where these were fitted, each case by factors that were fitted
        without it.
    corrections
        Factors for the next steps.
    reason
        Reason for these factors.
    region
        Around the placements; None: factors hold wherever a policy places.
    """

    num_cases: int
    before: Errors
    after: Errors
    corrections: Corrections
    reason: str
    region: Region | None


def calibrate(subject: Subject, order: Order) -> CalibrationRound:
    """Do what is ordered, in this process.

    Raises
    ------
    ValueError
        If there are no such placements, or the reference cannot run one.
    ReferenceRunError
        If the reference gives no result.
    """
    cases = subject.cases(_PURPOSES[order.kind], order.number, order.choices)
    measured = measure_all(
        cases,
        subject.backend,
        num_workers=None,
        store=None if subject.store is None else Store.open(subject.store),
        aggregation=subject.aggregation,
        binaries=subject.binaries,
    )
    seen = _seen(subject, cases)
    in_force = [predict(case, order.in_force) for case in seen]
    names = case_names(seen)
    best = _Candidate(order.in_force, in_force, "the factors were tested")
    if order.kind == "fit":
        law = _law_of(subject)
        best = _best(order.in_force, in_force, seen, measured, seed=order.number, law=law)
    return CalibrationRound(
        num_cases=len(cases),
        before=fidelity(names, in_force, measured).makespan,
        after=fidelity(names, best.predicted, measured).makespan,
        corrections=best.corrections,
        reason=best.reason,
        region=Region.around(case.plan.placement for case in cases),
    )


def _seen(subject: Subject, cases: Sequence[PlacementCase]) -> list[PlacementCase]:
    """Return the cases in the world that the reference can express."""
    backend = subject.backend
    if backend == "ns3":
        return list(cases)
    return [as_seen(case, backend, subject.aggregation) for case in cases]


def _law_of(subject: Subject) -> TransportLaw | None:
    """Measure single messages and fit the law of fresh connections; None for all others.

    Windows of reused connections stay open from iteration to iteration of a training.
    """
    packets = subject.topology.transport.packets
    if subject.backend != "ns3" or packets.connections != "fresh":
        return None
    singles = message_cases(subject.topology)
    store = None if subject.store is None else Store.open(subject.store)
    return fit_law(singles, measure_all(singles, "ns3", num_workers=None, store=store), packets)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Factors, what is predicted with them, and what there is to say about them."""

    corrections: Corrections
    predicted: Sequence[Measurement]
    reason: str


def _best(
    in_force: Corrections,
    predicted: Sequence[Measurement],
    seen: Sequence[PlacementCase],
    measured: Sequence[Measurement],
    *,
    seed: int,
    law: TransportLaw | None,
) -> _Candidate:
    """Keep the factors in force, unless those of a fit, or none where that finds none, are better.

    Better is what makes the mean error less by more than the standard error of the difference. The
    placements are new to the factors in force, and those of the fit are judged on cases that they
    were not fitted to, so the comparison favours neither.
    """
    if law is None:
        found = fit(seen, measured, predict=predict, seed=seed)
    else:
        found = fit_transport(law, seen, measured, predict=predict)
    rival = _rival(found)
    if rival.corrections == in_force:
        return rival
    gains = case_errors(predicted, measured) - case_errors(rival.predicted, measured)
    gain, spread = float(np.mean(gains)), float(np.std(gains, ddof=1)) / len(gains) ** 0.5
    if gain > max(spread, NEGLIGIBLE_ERROR):
        return rival
    reason = f"others are not better than those in force (gain {gain:.2%} ± {spread:.2%})"
    return _Candidate(in_force, predicted, reason)


def _rival(found: Fit) -> _Candidate:
    if found.kept:
        return _Candidate(found.corrections, found.held_out, found.reason)
    return _Candidate(NO_CORRECTIONS, found.before, found.reason)
