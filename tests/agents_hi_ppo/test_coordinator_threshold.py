"""The coordinator below a threshold of change."""

from small_policies import THREE, coordinator, situation_on, slowed

from agents.decision.threshold import ReplanThreshold


def test_below_the_threshold_the_last_plan_stays_without_a_question():
    scheduler = coordinator(moves=False, replan_threshold=ReplanThreshold(share=0.2))
    first = scheduler.decide(situation_on()).plan

    calm = scheduler.decide(situation_on(slowed(THREE, 0.9), epoch=1, last_plan=first))
    assert (calm.plan, calm.level, set(calm.response_s)) == (first, "nothing", {"inter_domain"})
    violent = scheduler.decide(situation_on(slowed(THREE, 0.1), epoch=2, last_plan=first))
    assert "proposals" in violent.response_s
    assert scheduler.counts.decisions == 3
