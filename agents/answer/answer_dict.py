"""Answer as plain content for programs: names of domains, seconds, bytes."""

from agents.answer.answer_facts import AnswerFacts
from agents.answer.rows import FamilyRow
from agents.trainers.ideal import IDEAL
from des.plan.plan_texts import pipelines_text


def answer_dict(answer: AnswerFacts) -> dict[str, object]:
    """Return the content of an answer, for JSON."""
    name, share = answer.bottleneck
    return {
        "trainer": IDEAL.name,
        **_row_dict(answer, answer.best),
        "stages": _stages(answer),
        "at_par": _row_dict(answer, answer.best_at_par),
        "families": [_row_dict(answer, row) for row in answer.rows],
        "misfits": dict(answer.misfits),
        "bottleneck": {"name": name, "busy_fraction": share},
        "takeovers": [
            {
                "bandwidth_factor": one.bandwidth_factor,
                "least_bytes_per_s": one.least_bytes_per_s,
                "most_bytes_per_s": one.most_bytes_per_s,
                "family": answer.candidates[one.row].judged.family,
                "placement": _placement(answer, answer.candidates[one.row]),
            }
            for one in answer.takeovers
        ],
        "lower_bound_s": None if answer.bound is None else answer.bound.step_s,
        "layer_times": {
            one.name: one.layer_times for one in answer.question.problem.topology.domains
        },
        "num_judged": answer.num_judged,
        "notes": list(answer.question.notes),
        **_change_dict(answer),
        **_inside_dict(answer),
        **({} if answer.explanation is None else {"why": answer.explanation.as_dict()}),
    }


def _row_dict(answer: AnswerFacts, row: FamilyRow) -> dict[str, object]:
    judged, full = row.judged, row.use.fullest
    mode, plan = judged.plan.synchronisation, judged.plan
    num_sequences = answer.question.problem.job.num_sequences
    return {
        "family": judged.family,
        "placement": _placement(answer, row),
        "schedule": plan.schedule,
        "microbatch_size": num_sequences // judged.workload.num_microbatches,
        "activation_compression": plan.activation_compression,
        "steps_between": mode.steps_between if plan.replicas else 1,
        "bits_per_value": mode.bits_per_value if plan.replicas else None,
        "optimiser_sharded": plan.exchange.sharded,
        "bucket_bytes": plan.exchange.bucket_bytes if plan.replicas else None,
        "iteration_s": row.step_s,
        "tokens_per_s": judged.tokens_per_s,
        "changes_training": row.is_marked,
        "token_factor": row.price.factor,
        "token_factor_note": row.price.note,
        "priced_iteration_s": row.priced_s,
        "wan_bytes": row.use.wan_bytes,
        "fullest_domain": full.domain,
        "memory_fraction": full.required_bytes / full.capacity_bytes,
        "usd": row.usd,
        "bound_s": row.bound_s,
        "decided_by": row.decided_by,
    }


def _placement(answer: AnswerFacts, row: FamilyRow) -> str:
    return pipelines_text(row.judged.plan, answer.question.domain_names)


def _stages(answer: AnswerFacts) -> list[dict[str, object]]:
    names = answer.question.domain_names
    return [
        {
            "replica": replica,
            "domain": names[stage.domain],
            "first_layer": stage.first_layer,
            "num_layers": stage.num_layers,
        }
        for replica, placement in enumerate(answer.best.judged.plan.placements)
        for stage in placement.stages
    ]


def _change_dict(answer: AnswerFacts) -> dict[str, object]:
    change = answer.change
    if change is None:
        return {"change_s": 0.0}
    return {
        "change_s": change.change_s,
        "change": {
            "present": None if change.present is None else _row_dict(answer, change.present),
            "misfit": change.misfit,
            "num_bytes": change.num_bytes,
            "gain": change.gain,
            "steps_until_paid": change.steps_until_paid(),
        },
    }


def _inside_dict(answer: AnswerFacts) -> dict[str, object]:
    inside = answer.inside
    if inside is None:
        return {}
    return {
        "inside": {
            "iteration_s": inside.step_s,
            "domains": {name: one.as_dict() for name, one in inside.local.items()},
        }
    }
