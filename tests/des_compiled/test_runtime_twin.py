"""The compiled engine posts receives as the readable one does, to the last bit."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from law_strategies import movements
from sending import transports
from strategies import corrections, topologies, workloads
from test_compiled_equality import require_equal
from ties import any_plans, even_corrections, even_workloads, even_worlds

from des import NO_CORRECTIONS, Transport, simulate
from des.compiled.pack import pack
from des.compiled.results import iteration_result
from des.compiled.simulate import run_to_end
from des.engine.iteration import run_alone
from des.program.lowering import lower
from des.program.program import Program
from des.program.rendezvous import NOTICE_BYTES
from des.world.hosts import HOSTS, hosts_named
from des.world.runtime import Runtime


@st.composite
def runtime_transports(draw: st.DrawFn) -> Transport:
    """Rules of links under which senders go on, and a runtime with a rendezvous."""
    runtime = st.builds(
        Runtime,
        rendezvous=st.booleans(),
        receives=st.sampled_from(["first", "as_needed", "lowered", "stock"]),
        senders_wait=st.sampled_from(["end", "step", "each"]),
        connections=st.sampled_from(["shared", "split"]),
    )
    rules = draw(transports())
    hosts = draw(st.none() | st.sampled_from(sorted(HOSTS))) if rules.sharing == "fifo" else None
    return replace(
        rules,
        endpoints="overlapped",
        runtime=draw(runtime),
        hosts=None if hosts is None else hosts_named(hosts),
    )


@given(
    data=st.data(),
    topology=even_worlds(),
    workload=even_workloads(),
    corrected=even_corrections(),
    step=st.integers(0, 3),
)
def test_what_happens_at_the_same_time_happens_in_the_same_order(
    data, topology, workload, corrected, step
):
    chosen = data.draw(any_plans(topology, workload))
    rules = data.draw(runtime_transports())
    require_equal(replace(topology, transport=rules), workload, chosen, corrected, step=step)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    corrected=corrections(),
    movement=st.none() | movements(),
)
def test_links_of_any_kind(data, topology, workload, corrected, movement):
    chosen = data.draw(any_plans(topology, workload))
    rules = data.draw(runtime_transports())
    moved = replace(topology, transport=rules, movement=movement)
    require_equal(moved, workload, chosen, corrected)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    rules=runtime_transports(),
)
def test_links_carry_all_data_and_a_notice_for_each_message(data, topology, workload, rules):
    """Also after the program has been written to bytes and read back."""
    chosen = data.draw(any_plans(topology, workload))
    world = replace(topology, transport=rules)
    try:
        program = lower(world, workload, chosen)
    except (ValueError, RuntimeError):
        return
    plain = simulate(replace(world, transport=replace(rules, runtime=Runtime())), workload, chosen)
    read_back = Program.from_bytes(program.to_bytes())
    found = run_alone(world, read_back, NO_CORRECTIONS).result()
    arrays = pack(world, read_back)

    assert iteration_result(world, read_back, arrays, run_to_end(world, arrays)) == found
    data_of = [
        sorted(one[:4] for one in each.transfers if one.kind != "N") for each in (plain, found)
    ]
    assert data_of[0] == data_of[1]
    num_notices = [
        sum(one.kind == "N" for one in found.transfers if one.link == link)
        for link in range(len(world.links))
    ]
    for before, use, notices in zip(plain.links, found.links, num_notices, strict=True):
        assert use.num_messages == before.num_messages + notices
        assert (
            abs(use.num_bytes - before.num_bytes - notices * NOTICE_BYTES) <= 1e-6 * use.num_bytes
        )
