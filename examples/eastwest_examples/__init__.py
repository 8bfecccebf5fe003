"""Extensions of EastWest, one file each, installed as any package.

By kind: `schedule.ONE_BY_ONE`, `planner.fastest_domain`, `law.HalfTide`, `backend.latency_free`,
`model.small_workload`, `rule.EveryNEpochs`, `target.measure`.
"""
