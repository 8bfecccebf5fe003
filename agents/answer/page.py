"""Page of an answer: where to place what, against the plan in force, and what would change it."""

from agents.answer.answer_facts import AnswerFacts
from agents.answer.figures import duration, figure, gbit_per_s, gigabytes, percent
from agents.answer.rows import FamilyRow
from agents.answer.sections import Section
from agents.answer.takeovers import FURTHEST
from agents.decision.token_prices import SOURCE_OF_PRICES
from des.plan.plan_texts import PERFECT_DEVICES, pipelines_text
from des.world.domain import layer_times_text

MARK = "*"
"""Mark of what changes the training."""


def sections_of(answer: AnswerFacts) -> tuple[Section, ...]:
    """Return the sections of the page."""
    found = [_headline(answer), _where(answer)]
    if answer.inside is not None or answer.why_not_inside:
        found.append(_inside(answer))
    if answer.change is not None:
        found.append(_against(answer))
    found += [_families(answer), _limits(answer), _takeovers(answer)]
    return tuple(found)


def _marked(row: FamilyRow) -> str:
    return row.title + (MARK if row.is_marked else "")


def _headline(answer: AnswerFacts) -> Section:
    best = answer.best
    names = answer.question.domain_names
    used = {domain for one in best.judged.plan.placements for domain in one.domain_of_layer}
    over = ", ".join(names[domain] for domain in sorted(used))
    lines = [
        f"{duration(best.step_s)} a step, {figure(answer.tokens_per_s)} tokens/s, on {over}",
        PERFECT_DEVICES,
        *answer.question.notes,
    ]
    if answer.best_at_par.judged != best.judged:
        par = answer.best_at_par
        lines.append(
            f"at no price in tokens: {_marked(par)}, {duration(par.step_s)} a step, "
            f"{figure(par.judged.tokens_per_s)} tokens/s"
        )
    return Section(title=f"Answer: {_marked(best)}", lines=tuple(lines))


def _where(answer: AnswerFacts) -> Section:
    judged, names = answer.best.judged, answer.question.domain_names
    plan, workload = judged.plan, judged.workload
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    rows = []
    for number, (placement, share) in enumerate(zip(plan.placements, shares, strict=True)):
        for stage in placement.stages:
            first, last = stage.first_layer, stage.first_layer + stage.num_layers - 1
            rows.append((f"{number + 1}", names[stage.domain], f"{first}-{last}", f"{share}"))
    size = answer.question.problem.job.num_sequences // workload.num_microbatches
    notes = [
        f"{answer.question.problem.job.num_sequences} sequences a step as "
        f"{workload.num_microbatches} microbatches of {size}; schedule {plan.schedule}",
        f"layer times: {layer_times_text(answer.question.problem.topology.domains)}",
        f"as text: {pipelines_text(plan, names)}",
    ]
    if plan.replicas:
        notes[1:1] = [_exchange(answer), _critical_batch(answer)]
    head = ("replica", "domain", "layers", "microbatches")
    return Section(title="Where", head=head, rows=tuple(rows), notes=tuple(notes))


def _exchange(answer: AnswerFacts) -> str:
    plan = answer.best.judged.plan
    mode, bucket_bytes = plan.synchronisation, plan.exchange.bucket_bytes
    ways = enumerate(plan.exchange.tree, start=2)
    along = ", ".join(f"replica {one} to {above + 1}" for one, above in ways)
    way = f", up a tree, {along}, and down again" if along else ""
    if bucket_bytes is not None:
        way = f", in buckets of {gigabytes(bucket_bytes)} GB{way}"
    if plan.exchange.sharded:
        return (
            f"optimiser state sharded over the {len(plan.placements)} copies: after every step "
            f"gradients are scattered, and updated weights gathered{way}"
        )
    if mode.steps_between == 1:
        return f"gradients are summed up over the replicas after every step{way}"
    num = mode.overlap_steps
    hidden = f", hidden by {num} step{'s' * (num > 1)}" if num else ""
    return (
        f"parameters are exchanged every {mode.steps_between} steps in "
        f"{mode.bits_per_value:g} bits{way}{hidden}"
    )


def _critical_batch(answer: AnswerFacts) -> str:
    """Sentence on what the split does to the batch."""
    job, plan = answer.question.problem.job, answer.best.judged.plan
    split = f"each of {len(plan.placements)} replicas takes its share of {job.tokens_per_step:,} "
    if plan.synchronisation.steps_between == 1:
        return f"{split}tokens; they step together, so the critical batch is that of one copy"
    num_microbatches = answer.best.judged.workload.num_microbatches
    own = plan.microbatches_of_replicas(num_microbatches)
    shares = [job.tokens_per_step * one // num_microbatches for one in (min(own), max(own))]
    text = " to ".join(dict.fromkeys(f"{share:,}" for share in shares))
    return (
        f"{split}tokens and steps by itself on {text}, below the critical batch sooner; "
        f"the best batch of all together grows as M^0.34 (arXiv 2503.09799, table 10)"
    )


def _inside(answer: AnswerFacts) -> Section:
    inside = answer.inside
    if inside is None:
        return Section(title="Inside the domains", lines=(f"left open: {answer.why_not_inside}",))
    rows = []
    for name, local in inside.local.items():
        shape = local.parallelism
        by = "rule" if local.is_by_rule else "local agent"
        gpus = ",".join(map(str, local.binding)) if len(local.binding) <= 16 else "all"
        rows.append((name, f"{shape.tensor}x{shape.data}x{shape.pipeline}", gpus, by))
    setting = next(iter(inside.local.values())).setting
    note = (
        f"{duration(inside.step_s)} a step as bound, with microbatches of "
        f"{setting.microbatch_size} and recomputation {setting.recomputation}"
    )
    head = ("domain", "tensor x data x pipeline", "GPUs", "decided by")
    return Section(title="Inside the domains", head=head, rows=tuple(rows), notes=(note,))


def _against(answer: AnswerFacts) -> Section:
    change, names = answer.change, answer.question.domain_names
    assert change is not None
    present = change.present
    title = f"Against the plan in force, {pipelines_text(change.in_force.plan, names)}"
    now = "" if present is None else f"{_marked(present)}: {duration(present.step_s)} a step"
    if present is None:
        lines = [f"it cannot run: {change.misfit}"]
    elif change.misfit is not None:
        lines = [f"{now}, but it does not fit: {change.misfit}"]
    elif change.stays:
        return Section(title=title, lines=(f"{now}; nothing found is quicker, so it stays",))
    else:
        lines = [f"{now}; the answer takes {percent(change.gain)} less time to the same loss"]
    lines.append(
        f"change: {gigabytes(change.num_bytes)} GB that the new domains lack and a restart, "
        f"{duration(change.change_s)}"
    )
    steps = change.steps_until_paid()
    if change.misfit is None and steps is not None:
        paid_s = change.change_s + steps * answer.step_s
        lines.append(f"paid after {steps:,} step{'s' * (steps > 1)}, {duration(paid_s)}")
    return Section(title=title, lines=tuple(lines))


def _families(answer: AnswerFacts) -> Section:
    has_usd = any(row.usd is not None for row in answer.rows)
    has_bound = any(row.bound_s is not None for row in answer.rows)
    head = ["family", "s a step", "tokens/s", "tokens needed", "s to equal loss", "WAN GB a step"]
    head += ["fullest domain", *(["USD a step"] * has_usd), *(["over the bound"] * has_bound)]
    rows = []
    for row in answer.rows:
        full = row.use.fullest
        cells = [
            _marked(row),
            figure(row.step_s),
            figure(row.judged.tokens_per_s),
            "unknown" if row.price.factor is None else f"x {figure(row.price.factor)}",
            "unknown" if row.priced_s is None else figure(row.priced_s),
            gigabytes(row.use.wan_bytes),
            f"{full.domain} {percent(full.required_bytes / full.capacity_bytes)}",
        ]
        cells += [figure(row.usd or 0.0)] * has_usd
        cells += ["" if row.over_bound is None else percent(row.over_bound)] * has_bound
        rows.append(tuple(cells))
    notes = list(answer.misfits.values())
    notes += [
        f"{row.title}: by Hi-PPO's policies" for row in answer.rows if row.decided_by == "hi_ppo"
    ]
    if any(row.is_marked for row in answer.rows):
        notes.append(f"{MARK} changes the training; {SOURCE_OF_PRICES}")
        notes += sorted(
            {f"{_marked(one)}: {one.price.note}" for one in answer.rows if one.price.note}
        )
    if answer.bound is not None:
        over = answer.best.step_s / answer.bound.step_s - 1.0
        notes.append(
            f"no plan allowed has a step below {duration(answer.bound.step_s)}: the answer is at "
            f"most {percent(over)} over it"
        )
    else:
        notes.append(f"no bound: {answer.why_no_bound}")
    title = "Best plan of each family"
    if answer.num_judged > 0:
        title += f", of {answer.num_judged:,} judged"
    return Section(title=title, head=tuple(head), rows=tuple(rows), notes=tuple(notes))


def _limits(answer: AnswerFacts) -> Section:
    name, share = answer.bottleneck
    what = "sends" if "->" in name else "computes"
    lines = [f"{name} {what} for {percent(share)} of a step"]
    if answer.explanation is not None:
        lines += answer.explanation.lines()
    return Section(title="Bottleneck", lines=tuple(lines))


def _takeovers(answer: AnswerFacts) -> Section:
    title = "What would change the answer"
    if not answer.question.bare.links:
        return Section(title=title, lines=("no bandwidth: the network has no links",))
    if len(answer.candidates) == 1:
        return Section(title=title, lines=("no bandwidth: no other plan is in the table",))
    lines = []
    for one in answer.takeovers:
        row = answer.candidates[one.row]
        least, most = gbit_per_s(one.least_bytes_per_s), gbit_per_s(one.most_bytes_per_s)
        way = "less" if one.bandwidth_factor < 1.0 else "more"
        lines.append(
            f"{_marked(row)} at {figure(one.bandwidth_factor)} times the bandwidth of all links "
            f"or {way} ({least} to {most} a link)"
        )
    for way, limit, is_there in (
        ("less", f"1/{FURTHEST:g}", any(one.bandwidth_factor < 1.0 for one in answer.takeovers)),
        ("more", f"{FURTHEST:g}", any(one.bandwidth_factor > 1.0 for one in answer.takeovers)),
    ):
        if not is_there:
            lines.append(
                f"none of the others at {way} bandwidth, to {limit} times that of all links"
            )
    return Section(title=title, lines=tuple(lines))
