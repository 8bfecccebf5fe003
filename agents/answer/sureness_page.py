"""Section of a page on what would change an answer, and the same facts for its document."""

from agents.answer.number_texts import figure, percent
from agents.answer.sections import Section
from agents.answer.sureness import OFF_FACTORS, OtherCase, Sureness
from agents.search.bound_rows import KIND_TITLES, BoundRow

_OFF = " to ".join(f"x {factor:g}" for factor in OFF_FACTORS)


def sureness_section(known: Sureness) -> Section:
    """Return what a fresh search answers in each case, and what the plan chosen takes there."""
    notes = [
        f"the plan above takes {figure(known.least_s)} to {figure(known.most_s)} s a step with all "
        f"bandwidths and all times of layers off by {_OFF}"
    ]
    if known.spread is not None:
        notes.append(
            f"over {known.spread.num_courses} courses of the links drawn by their law: median "
            f"{figure(known.spread.median_s)} s a step, 95th percentile "
            f"{figure(known.spread.p95_s)} s"
        )
    return Section(
        title="What would change the answer, searched again for each line",
        head=("if", "best plan then", "s a step", "the plan above"),
        rows=tuple(
            (one.title, _best_text(one), _step_text(one), _keep(one)) for one in known.cases
        ),
        notes=tuple(notes),
        num_texts=2,
    )


def sureness_dict(known: Sureness) -> dict[str, object]:
    """Return the facts as plain content."""
    spread = known.spread
    return {
        "least_s": known.least_s,
        "most_s": known.most_s,
        "cases": [
            {
                "case": one.title,
                "present_s": one.present_s,
                "misfit": one.misfit,
                "keeps_plan": one.keeps_plan,
                "step_s": None if one.row is None else one.row.figures.step_s,
                "kind": None if one.row is None else one.row.kind,
                "sites": [] if one.row is None else _sites(one.row),
                "schedule": None if one.row is None else one.row.bound.plan.schedule,
            }
            for one in known.cases
        ],
    } | (
        {}
        if spread is None
        else {
            "median_s": spread.median_s,
            "p95_s": spread.p95_s,
            "num_courses": spread.num_courses,
        }
    )


def _sites(row: BoundRow) -> list[str]:
    domains = row.bound.topology.domains
    return [domains[site].name for chain in row.candidate.chains for site in chain]


def _best_text(case: OtherCase) -> str:
    if case.row is None:
        return f"none: {case.misfit}"
    if case.keeps_plan:
        return "the same"
    kind, schedule = KIND_TITLES[case.row.kind], case.row.bound.plan.schedule
    return f"{kind} on {', '.join(_sites(case.row))}, {schedule}"


def _step_text(case: OtherCase) -> str:
    return "" if case.row is None else figure(case.row.figures.step_s)


def _keep(case: OtherCase) -> str:
    if case.present_s is None:
        return "cannot run"
    if not case.loss:
        return f"{figure(case.present_s)} s"
    return f"{figure(case.present_s)} s, {percent(case.loss)} more"
