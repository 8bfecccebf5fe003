"""Exchange of groups of domains over the links between two of them."""

from collections import Counter

import numpy as np

from agents.planners.bounds.exchanges import ExchangeBound
from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.pair_kernels import PairLinks


def pair_links(
    figures: JobFigures, exchange: ExchangeBound, late_s: Real, sent_late_s: Real
) -> PairLinks:
    """Collect what compiled code needs of an exchange between groups. [s]

    ``late_s`` and ``sent_late_s`` are those of each set, see `count_of_set`, (2^K,).
    """
    rate, waited, alone = (
        figures.rate_bytes_per_s,
        Counter(exchange.waited),
        Counter(exchange.alone),
    )
    due = [[waited[one], alone[one], *one] for one in waited | alone]
    hidden_s, first_s = exchange.alone_parts_s(figures)
    slower_or_quicker = np.minimum if exchange.num_replicas == 2 else np.maximum
    held = exchange.held(figures)
    return PairLinks(
        is_behind=exchange.is_behind,
        sent_bytes_per_s=rate,
        both_bytes_per_s=slower_or_quicker(rate, rate.T),
        way=exchange.way(figures),
        due=np.array(due, dtype=float).reshape(-1, 5),
        period_steps=exchange.period_steps,
        num_steps=exchange.num_windows,
        sent_bytes=exchange.sent_bytes,
        sent_share=exchange.sent_share(figures),
        hidden_share=exchange.hidden_share(figures),
        late_s=late_s,
        sent_late_s=sent_late_s,
        alone_late_s=figures.overhead_s + held.update_s.sum(axis=1),
        alone_hidden_s=hidden_s,
        alone_first_s=first_s,
    )
