"""Page of an answer with a bound plan: where what runs on which GPUs, rivals, other trainers."""

from collections.abc import Iterator
from itertools import groupby

from agents.answer.bound_facts import BoundFacts
from agents.answer.number_texts import duration, figure, gigabytes, percent
from agents.answer.sections import Section
from agents.answer.sureness_page import sureness_section
from agents.answer.transport_times import transport_section
from agents.answer.whole_run import whole_run_section
from agents.decision.bound_plan import BoundPlan, server_counts
from agents.decision.token_prices import SOURCE_OF_PRICES, changes_training
from agents.search.bound_rows import KIND_TITLES, BoundRow
from agents.trainers.plan_checks import domains_in_use
from agents.trainers.table import trainer_named
from des.plan.decoupled import DecoupledDiLoCo
from des.plan.parallelism import UNSHARED
from des.plan.placement import Stage
from des.plan.plan import Plan
from des.plan.plan_texts import pipelines_text
from des.plan.synchronisation import agree_every_step
from des.world.domain import layer_times_text


def bound_sections(answer: BoundFacts) -> tuple[Section, ...]:
    """Return the sections of the page."""
    found = [_headline(answer), where_section(answer.best)]
    if answer.change is not None:
        found.append(_change(answer))
    if answer.run is not None:
        found.append(whole_run_section(answer.run))
    found.append(_kinds(answer))
    if answer.conditional:
        found.append(_conditional(answer))
    found.append(_bottleneck(answer.best))
    if answer.transport is not None:
        found.append(transport_section(answer.transport))
    if answer.sureness is not None:
        found.append(sureness_section(answer.sureness))
    if answer.others:
        found.append(_others(answer))
    return tuple(found)


def _headline(answer: BoundFacts) -> Section:
    best = answer.best
    trainer = trainer_named(best.bound.trainer)
    lines = [
        f"{figure(best.bound.step_s)} s a step, {figure(_tokens_per_s(best))} tokens/s, on "
        f"{', '.join(_site_names(best))}, with {trainer.title}"
    ]
    if trainer.is_ideal:
        lines.append("every domain counts as one perfect device, which no trainer has")
    if changes_training(best.bound.plan):
        factor = f"x {best.figures.token_factor:.3f}"
        lines.append(f"* changes the training, which needs {factor} of the tokens to equal loss")
    single = next((row for row in answer.rows if row.kind == "single"), None)
    if single is not None and best.kind != "single":
        less = 1.0 - best.bound.step_s / single.bound.step_s
        lines.append(
            f"{percent(less)} less than on the best single domain, {_site_names(single)[0]} "
            f"({figure(single.bound.step_s)} s)"
        )
    lines += _decide(answer)
    return Section(title=f"Answer: {KIND_TITLES[best.kind]}", lines=(*lines, *answer.notes))


def _decide(answer: BoundFacts) -> Iterator[str]:
    """Say who found the plan, where Hi-PPO decides too."""
    if "hi_ppo" not in answer.rows_of:
        return
    titles = {"search": "the search", "hi_ppo": "Hi-PPO, whose proposals are bound"}
    own = answer.decided_by(answer.best)
    others = "".join(
        f"; {titles[name]}: {figure(rows[0].bound.step_s)} s"
        for name, rows in answer.rows_of.items()
        if name != own
    )
    yield f"found by {titles[own]}{others}"


def _tokens_per_s(row: BoundRow) -> float:
    return row.bound.workload.tokens_per_iteration / row.bound.step_s


def _site_names(row: BoundRow) -> list[str]:
    domains = row.bound.topology.domains
    return [domains[site].name for chain in row.candidate.chains for site in chain]


def where_section(row: BoundRow) -> Section:
    """Degrees, layers and GPUs of every site, replica by replica."""
    bound = row.bound
    head = ("site", "GPUs", "tensor x data", "stages", "layers", "of each stage", "memory")
    rows = []
    for number, stages in enumerate(bound.plan.stages_of_replicas):
        for site, own in _by_site(stages):
            domain = bound.topology.domains[site]
            shared = bound.plan.parallelism[site] if bound.plan.parallelism else UNSHARED
            last = max(stage.device for stage in own)
            gpus = f"{bound.gpus_of(site, 0)[0]}-{bound.gpus_of(site, last)[-1]}"
            more = f" x context {shared.context}" if shared.context > 1 else ""
            kind = "whole experts" if shared.whole_experts else "experts"
            more += f", {kind} over {shared.expert}" if shared.expert > 1 else ""
            memory = next(one for one in row.memory if one.domain == domain.name)
            prefix = f"{number + 1} " if bound.plan.replicas else ""
            rows.append(
                (
                    prefix + domain.name,
                    gpus,
                    f"{shared.tensor} x {shared.data}{more}",
                    f"{last + 1}",
                    _layers_text(own),
                    _counts_text([stage.num_layers for stage in own]),
                    percent(memory.required_bytes / memory.capacity_bytes),
                )
            )
    return Section(title="Where", head=head, rows=tuple(rows), notes=tuple(_how(bound)))


def _by_site(stages: tuple[Stage, ...]) -> Iterator[tuple[int, list[Stage]]]:
    """Stages of each site, in the order in which the pipeline reaches them."""
    for site in dict.fromkeys(stage.domain for stage in stages):
        yield site, [stage for stage in stages if stage.domain == site]


def _layers_text(stages: list[Stage]) -> str:
    """Layers of a site from 0 on, such as ``0-19`` or ``0-9, 40-49``."""
    runs: list[list[int]] = []
    for stage in stages:
        if runs and runs[-1][1] == stage.first_layer:
            runs[-1][1] += stage.num_layers
        else:
            runs.append([stage.first_layer, stage.first_layer + stage.num_layers])
    return ", ".join(f"{first}-{end - 1}" for first, end in runs)


def _counts_text(counts: list[int]) -> str:
    """Layers of each stage, such as ``6 + 5`` or ``3 of 2 + 1``."""
    runs = [(count, len(list(run))) for count, run in groupby(counts)]
    return " + ".join(f"{num} of {count}" if num > 1 else f"{count}" for count, num in runs)


def _how(bound: BoundPlan) -> Iterator[str]:
    """Microbatches, schedule and what the trainer does, below the table."""
    plan, workload, shape = bound.plan, bound.workload, bound.workload.shape
    names = [domain.name for domain in bound.topology.domains]
    assert shape is not None
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    each = " | ".join(map(str, shares if len(set(shares)) > 1 else shares[:1]))
    total = round(workload.num_microbatches * shape.batch_size)
    yield (
        f"{total} sequences a step: {each} microbatch{'es' * (max(shares) > 1)} of "
        f"{bound.microbatch_size:g} on each data rank; schedule {plan.schedule}, sends "
        f"{plan.sends}; recomputation {shape.recomputation}"
        + ("" if shape.attention is None else f" with {shape.attention} attention")
        + f", gradients {workload.gradient_precision}"
        + ("" if workload.precision == "bf16" else f", linear layers in {workload.precision}")
    )
    domains = (bound.topology.domains[site] for site in domains_in_use(plan))
    yield f"layer times: {layer_times_text(domains)}"
    if plan.replicas:
        yield _exchange_text(plan)
    if plan.parallelism:
        yield from _servers_text(bound)
    yield f"as text: {pipelines_text(plan, names)}"


def _servers_text(bound: BoundPlan) -> Iterator[str]:
    """Servers that are not known, and how GPUs are named."""
    domains = bound.topology.domains
    used = domains_in_use(bound.plan)
    if assumed := [domains[site].name for site in used if domains[site].nodes is None]:
        yield (
            f"servers of {', '.join(assumed)} are not given: each counts as one server of all its "
            "GPUs (assumed), tensor at most 8"
        )
    counts = {server_counts(domain)[1] for domain in domains}
    yield f"GPUs are server/gpu, of {' or '.join(map(str, sorted(counts)))} GPUs a server"


def _exchange_text(plan: Plan) -> str:
    """Sentence on what replicas exchange, and when."""
    mode = plan.synchronisation
    if agree_every_step(mode):
        kind = "scattered and new weights gathered" if plan.exchange.sharded else "summed up"
        return f"gradients are {kind} over the replicas after every step"
    steps = f"{mode.overlap_steps} step{'s' * (mode.overlap_steps > 1)}"
    hidden = f", a part at a time, hidden by {steps}" if mode.overlap_steps else ""
    if isinstance(mode, DecoupledDiLoCo):
        goes_on = f"go on for {steps}" if mode.overlap_steps else "wait"
        return (
            f"learners report every {mode.steps_between} steps, each by its own clock, and "
            f"{goes_on}; {mode.quorum} of {len(plan.placements)} merge, after up to "
            f"{mode.grace_steps:g} steps of grace, weighed by tokens, in {mode.bits_per_value:g} "
            "bits; s a step is the mean time of the tokens of a step"
        )
    return (
        f"parameters are exchanged every {mode.steps_between} steps in {mode.bits_per_value:g} "
        f"bits{hidden}; s a step is the mean over them"
    )


def _change(answer: BoundFacts) -> Section:
    change = answer.change
    assert change is not None
    names = [domain.name for domain in change.in_force.topology.domains]
    title = f"Against the plan in force, {pipelines_text(change.in_force.plan, names)}"
    present = "" if change.present_s is None else f"it takes {figure(change.present_s)} s a step"
    lines = [present or f"it cannot run: {change.misfit}"]
    if change.change_s == 0.0:
        return Section(title=title, lines=(*lines, "it is the answer and stays"))
    if change.cost is None:
        return Section(title=title, lines=(*lines, "no links lead to where layers would go"))
    lines.append(
        f"change: {gigabytes(change.num_bytes)} GB that the new sites lack and a restart, "
        f"{duration(change.change_s)}"
    )
    if change.present_s is not None:
        saved_s = change.present_s - answer.step_s
        pays = f"paid after {figure(change.change_s / saved_s)} steps" if saved_s > 0.0 else ""
        lines.append(pays or "it never pays")
    return Section(title=title, lines=tuple(lines))


def _kinds(answer: BoundFacts) -> Section:
    has_usd = any(row.figures.usd is not None for row in answer.rows)
    is_changed = any(changes_training(row.bound.plan) for row in answer.rows)
    head = ["kind", "s a step", "tokens/s", "GPUs' use", "WAN GB a step", "fullest domain"]
    rows = []
    for row in answer.rows:
        cells = [
            KIND_TITLES[row.kind],
            figure(row.bound.step_s),
            figure(_tokens_per_s(row)),
            percent(row.figures.utilisation),
            gigabytes(row.figures.wan_bytes),
            percent(row.figures.memory_fraction),
        ]
        if has_usd:
            cells.append(figure(row.figures.usd or 0.0))
        if is_changed:
            cells.append(f"x {row.figures.token_factor:.3f}")
        rows.append(tuple(cells))
    notes = [
        "use: useful FLOPs over the peak of all GPUs of the sites in use",
        f"at least {figure(answer.bound_s)} s for any plan of "
        f"{trainer_named(answer.best.bound.trainer).title} with the degrees, microbatches and "
        "recomputation searched, as the GPUs of all sites have that much work: "
        f"{percent(answer.over_bound)} over the bound",
    ]
    if is_changed:
        notes.append(f"* changes the training; ranked by time x tokens needed; {SOURCE_OF_PRICES}")
    return Section(
        title=f"Best plan of each kind, of {answer.num_judged:,} judged",
        head=(*head, *(["USD a step"] * has_usd), *(["tokens needed"] * is_changed)),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _conditional(answer: BoundFacts) -> Section:
    """Quicker plans that are no answer without a price in tokens from the user."""
    lines = []
    for row in answer.conditional:
        domains = row.bound.topology.domains
        sites = " | ".join(
            ",".join(domains[site].name for site in one) for one in row.candidate.chains
        )
        mode = row.bound.plan.synchronisation
        known = "" if row.price.factor is None else f", x {row.price.factor:.3f} or more"
        lines.append(
            f"{KIND_TITLES[row.kind]}: {figure(row.bound.step_s)} s a step on {sites}, every "
            f"{mode.steps_between} steps in {mode.bits_per_value:g} bits; tokens needed{known}: "
            f"{row.condition}"
        )
    lines.append("--token-factor says how many more tokens such training needs and compares them")
    return Section(title="Quicker, at a price in tokens that is not published", lines=tuple(lines))


def _bottleneck(row: BoundRow) -> Section:
    name, busy_s = max(row.busy_s.items(), key=lambda one: one[1])
    what = "sends" if "->" in name else "computes"
    line = f"{name} {what} for {percent(busy_s / row.bound.step_s)} of a step"
    return Section(title="Bottleneck", lines=(line,))


def _others(answer: BoundFacts) -> Section:
    lines = []
    for one in answer.others:
        if one.row is None:
            lines.append(f"{one.title}: {one.misfit}")
            continue
        lines.append(
            f"{one.title}: {figure(one.row.bound.step_s)} s a step, {KIND_TITLES[one.row.kind]} on "
            f"{', '.join(_site_names(one.row))}, {one.row.bound.plan.schedule}"
            + (f", x {factor:.3f} tokens" if (factor := one.row.figures.token_factor) > 1.0 else "")
        )
    return Section(title="With other trainers", lines=tuple(lines))
