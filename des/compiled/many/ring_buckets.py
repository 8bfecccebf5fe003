"""Buckets of the exchanges of one plan, and the domains between which they are summed up.

The twin of `des.plan.buckets` for rows of plans.
"""

from des.base.jit import kernel
from des.compiled.many.family_layout import ReplicaExchange
from des.compiled.many.layout import Real


@kernel
def lay_out(plan: ReplicaExchange) -> int:
    """Write down the buckets of a plan, see `des.plan.buckets`; returns how many, -1: no link."""
    kinds, job, room = plan.kinds, plan.job, plan.room
    num_replicas, num_buckets, run_first, run_bytes = plan.num_replicas, 0, -1, 0.0
    for replica in range(num_replicas):
        room.stage_of[replica] = plan.rows.pipelines.num_stages[plan.first + replica] - 1
    for layer in range(job.num_parameters.size - 1, -1, -1):
        same = _descend(plan, layer)
        if not kinds.is_due[plan.kind, layer]:
            continue
        own_bytes = job.gradient_bytes * job.num_parameters[layer]
        goes_on = same and run_first == layer + 1 and num_buckets > 0
        if not goes_on or run_bytes + own_bytes > kinds.most_bytes[plan.kind]:
            for replica in range(num_replicas):
                member = num_buckets * num_replicas + replica
                room.member_stage[member] = room.stage_of[replica]
            room.parameters[num_buckets] = float(layer + 1)  # its end, until it is complete
            num_buckets += 1
            run_bytes = 0.0
        run_first = room.first_layer[num_buckets - 1] = layer
        run_bytes += own_bytes
    for bucket in range(num_buckets):
        end, begin = int(room.parameters[bucket]), room.first_layer[bucket]
        room.parameters[bucket] = _sum_of(job.num_parameters, begin, end, room.partials)
        if not _frees_links(plan, bucket):
            return -1
    divide_buckets(plan, num_buckets, kinds.bits_per_value[plan.kind])
    return num_buckets


@kernel
def divide_buckets(plan: ReplicaExchange, num_buckets: int, bits_per_value: float) -> None:
    """Write the bytes of a message of each bucket. [bytes]"""
    for bucket in range(num_buckets):
        num_bytes = plan.room.parameters[bucket] * bits_per_value / 8.0
        plan.room.part_bytes[bucket] = num_bytes / plan.scripts.num_parts[plan.script]


@kernel
def _descend(plan: ReplicaExchange, layer: int) -> bool:
    """Find the stages that hold a layer, above which all are known; whether they are the same."""
    same, end_layers = True, plan.rows.pipelines.end_layer
    for replica in range(plan.num_replicas):
        stage = plan.room.stage_of[replica]
        while stage > 0 and layer < end_layers[plan.first + replica, stage - 1]:
            stage -= 1
            same = False
        plan.room.stage_of[replica] = stage
    return same


@kernel
def _frees_links(plan: ReplicaExchange, bucket: int) -> bool:
    """Let the links of an exchange be idle; whether there are all."""
    scripts, member = plan.scripts, bucket * plan.num_replicas
    for way in range(scripts.first_way[plan.script], scripts.first_way[plan.script + 1]):
        sender, receiver = scripts.ways[way, 0], scripts.ways[way, 1]
        here, there = domain_of(plan, member + sender), domain_of(plan, member + receiver)
        if plan.job.goodput_bytes_per_s[here, there] <= 0.0:
            return False
        plan.room.free_s[here, there] = plan.room.last_arrival_s[here, there] = 0.0
    return True


@kernel
def domain_of(plan: ReplicaExchange, member: int) -> int:
    """Domain of a member of an exchange."""
    pipeline = plan.first + member % plan.num_replicas
    domain: int = plan.rows.pipelines.domain[pipeline, plan.room.member_stage[member]]
    return domain


@kernel
def _sum_of(values: Real, begin: int, end: int, partials: Real) -> float:
    """Sum of some values, rounded once as `math.fsum` does [1]_.

    .. [1] J. R. Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric
       predicates", Discrete & Computational Geometry 18, 1997.
    """
    count = 0
    for place in range(begin, end):
        x, kept = values[place], 0
        for each in range(count):
            y = partials[each]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[kept] = low
                kept += 1
            x = high
        partials[kept] = x
        count = kept + 1
    total = low = 0.0
    while count > 0:
        count -= 1
        x, y = total, partials[count]
        total = x + y
        low = y - (total - x)
        if low != 0.0:
            break
    rest = partials[count - 1] if count > 0 else 0.0
    if (low < 0.0 and rest < 0.0) or (low > 0.0 and rest > 0.0):  # half-way: the rest decides
        doubled = 2.0 * low
        x = total + doubled
        if x - total == doubled:
            total = x
    rounded: float = total
    return rounded
