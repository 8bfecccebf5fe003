"""Retries of waiting pods: an event for kube-scheduler when GPUs promised to a gang are free again.

kube-scheduler tries a pod again that an extender has refused at any event of the cluster, else
after 5 minutes; it does not see that a promise ended. An annotation of a node that changes is such
an event: ``NodeSchedulingPropertiesChange`` in its ``pkg/scheduler/framework/events.go``.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from scenarios.k8s.service import ExtenderService

LOG = logging.getLogger("scenarios.k8s")
PERIOD_S = 1.0
"""Time between two looks at the promises. [s]"""

Patcher = Callable[[str, Mapping[str, Any]], Awaitable[str]]
"""Patches an object of the API server; returns the error, empty if there was none."""


async def follow_promises(
    service: ExtenderService, patch: Patcher, *, period_s: float = PERIOD_S
) -> None:
    """End promises at their deadlines; when one was given up, change an annotation of its node."""
    failure = ""
    while True:
        await asyncio.sleep(period_s)
        book = service.decider.book
        book.expire(service.clock())
        node, book.given_up_on = book.given_up_on, None
        if node is None or node not in book.nodes:
            continue
        key = service.decider.keys.annotation("promises-ended")
        content = {"metadata": {"annotations": {key: f"{service.clock():.3f}"}}}
        error = await patch(f"/api/v1/nodes/{quote(node, safe='')}", content)
        if error:
            book.given_up_on = book.given_up_on or node  # again in a while
        if error and error != failure:
            LOG.warning("node %s: %s; waiting pods are not told that GPUs are free", node, error)
        failure = error
