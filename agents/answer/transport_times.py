"""Times of an answer as messages really leave: NCCL's window, torch's receives, TCP of the hosts.

Nothing is ranked by them.
"""

from dataclasses import dataclass, replace

from agents.answer.number_texts import figure
from agents.answer.sections import Section
from agents.decision.bound_plan import BoundPlan
from agents.judge.nccl_sockets import nccl_steps_s, site_borders
from agents.judge.step_times import mean_step
from agents.trainers.table import trainer_named
from des.world.hosts import hosts_named
from des.world.runtime import runtime_named

_EARLY, _STOCK = "reference", "torch_stock"
_RUNTIMES = {_EARLY: "receives first", _STOCK: "receives as torch's own schedules post them"}
_AS_IT_COMES, _TUNED = "linux_default", "linux_tuned"


@dataclass(frozen=True, kw_only=True)
class TransportTimes:
    """Times of a step of a plan over several sites.

    Attributes
    ----------
    nccl_s
        Over NCCL's sockets, as it comes and with the settings of a launch: a formula, not measured.
        None where the trainer has no NCCL. [s]
    runtimes_s
        By name of a runtime and of hosts, where the trainer sends over gloo. [s]
    misfit
        Reason why no other runtime runs the plan; empty where it does.
    """

    nccl_s: tuple[float, float] | None = None
    runtimes_s: dict[tuple[str, str], float]
    misfit: str = ""


def transport_times(bound: BoundPlan) -> TransportTimes | None:
    """Work out the times of a plan; None where all of it is on one site, or devices are perfect."""
    trainer = trainer_named(bound.trainer)
    if trainer.is_ideal or not site_borders(bound):
        return None
    if trainer.uses_nccl:
        return TransportTimes(nccl_s=nccl_steps_s(bound), runtimes_s={})
    found = {}
    for runtime in _RUNTIMES:
        for hosts in (_AS_IT_COMES, _TUNED):
            try:
                found[runtime, hosts] = _step_s(bound, runtime, hosts)
            except ValueError as error:
                return TransportTimes(runtimes_s={}, misfit=str(error))
    return TransportTimes(runtimes_s=found)


def _step_s(bound: BoundPlan, runtime: str, hosts: str) -> float:
    transport = replace(
        bound.topology.transport, runtime=runtime_named(runtime), hosts=hosts_named(hosts)
    )
    world = replace(bound.topology, transport=transport)
    return mean_step(world, bound.workload, bound.plan, bound.corrections)[0]


def transport_section(times: TransportTimes) -> Section:
    """Say what settings of NCCL, early receives and tuned hosts are worth."""
    title = "As messages leave"
    if times.nccl_s is not None:
        as_it_comes, own = map(figure, times.nccl_s)
        line = (
            f"over NCCL's sockets {as_it_comes} s a step as it comes, {own} s with nccl.env of "
            "eastwest launch: a formula, not measured"
        )
        return Section(title=title, lines=(line,))
    if times.misfit:
        return Section(title=title, lines=(f"other runtimes do not run the plan: {times.misfit}",))
    step_s = times.runtimes_s
    early_s = step_s[_STOCK, _TUNED] - step_s[_EARLY, _TUNED]
    tuned_s = step_s[_EARLY, _AS_IT_COMES] - step_s[_EARLY, _TUNED]
    return Section(
        title=title,
        head=("s a step over gloo", "hosts as Linux comes", "tuned"),
        rows=tuple(
            (text, *(figure(step_s[name, hosts]) for hosts in (_AS_IT_COMES, _TUNED)))
            for name, text in _RUNTIMES.items()
        ),
        notes=(
            f"receives first save {figure(early_s)} s a step on tuned hosts, tuning the hosts "
            f"{figure(tuned_s)} s where receives are first",
        ),
    )


def transport_dict(times: TransportTimes) -> dict[str, object]:
    """Return the times as values of a document."""
    return {
        "nccl_s": None if times.nccl_s is None else list(times.nccl_s),
        "runtimes": [
            {"runtime": runtime, "hosts": hosts, "step_s": step_s}
            for (runtime, hosts), step_s in times.runtimes_s.items()
        ],
        "misfit": times.misfit,
    }
