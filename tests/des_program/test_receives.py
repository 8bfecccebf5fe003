"""Receives that are posted: where passes put them, what waits for them, and deadlocks."""

from dataclasses import replace

import pytest
from strategies import plan, unit_workload, world

from des import (
    NO_CORRECTIONS,
    DeadlockError,
    Operation,
    Plan,
    Topology,
    Transport,
    simulate,
)
from des.compiled.pack import pack
from des.compiled.simulate import run_to_end, simulate_compiled
from des.engine.iteration import run_alone
from des.program.actions import COMPUTE, PASSES, POST, SEND, WAIT, WAIT_SENT, WAIT_TAKEN
from des.program.deadlock import check_receives
from des.program.lowering import lower
from des.program.passes import WorkerLists, with_lists
from des.program.program import OperationList, Program
from des.program.rendezvous import NOTICE_BYTES
from des.schedules.interleaved import interleaved_1f1b
from des.schedules.zero_bubble import zb_h1
from des.world.runtime import RUNTIMES, Runtime, runtime_named

AS_NEEDED = Runtime(rendezvous=True, receives="as_needed", connections="shared")
NAMES = {SEND: "SEND", WAIT: "WAIT", POST: "RECV", WAIT_TAKEN: "TAKEN"}


def chain(runtime: Runtime, *, num_domains: int = 2, bandwidth: float = 48.0) -> Topology:
    """Domains in a row, whose links take 1 s and a second for 48 bytes, as many as a notice has."""
    names = "ABCD"[:num_domains]
    ways = [here + there for here in names for there in names if here != there]
    made = world(names, dict.fromkeys(ways, (bandwidth, 1.0)))
    return replace(made, transport=Transport(runtime=runtime))


def told(program: Program, worker: int) -> str:
    """Operations of a worker in the words of torch, without waits for inputs."""
    own, words = WorkerLists.of(program)[worker], []
    stages = program.workers[worker].stages
    for action, port, item in own.rows:
        stage = stages[port // len(PASSES)]
        if action == COMPUTE:
            words.append(f"{stage}{PASSES[port % len(PASSES)].replace('D', 'I')}{item}")
        elif action != WAIT:
            words.append(f"{stage}{NAMES[action]}_{'FB'[port % 2]}{item}")
    return " ".join(words)


def test_a_receive_that_is_posted_late_delays_its_message():
    """The notice of F0 arrives at 2 s, F0 at 4 s; B0 is sent at 7 s and arrives at 9 s."""
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1, message_bytes=NOTICE_BYTES)
    result = simulate(chain(AS_NEEDED), workload, plan(0, 1))

    assert [span.start_s for span in result.spans] == [0.0, 9.0, 4.0, 5.0]
    assert result.makespan_s == 11.0
    assert [(one.kind, one.stage, one.end_s) for one in result.transfers] == [
        ("N", 0, 2.0),  # of stage 0, which posts behind its pass
        ("F", 0, 3.0),
        ("N", 1, 1.0),
        ("B", 1, 8.0),
    ]


def test_notices_queue_behind_data_where_they_share_its_connection():
    """Stage 1 posts F1 behind B0 of 10 s: the notice leaves with it, or at once."""
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2, message_bytes=480.0)
    shared, split = (
        simulate(chain(replace(AS_NEEDED, connections=kind)), workload, plan(0, 1))
        for kind in ("shared", "split")
    )

    arrivals = {(one.kind, one.stage, one.microbatch): one.arrival_s for one in shared.transfers}
    assert arrivals["N", 1, 1] == arrivals["B", 1, 0] + 1.0
    assert split.makespan_s < shared.makespan_s
    assert {one.kind for one in split.transfers} == {"F", "B"}


def test_receives_that_are_all_posted_first_expose_nothing():
    """Notices are there before the first pass ends, so all is as without a rendezvous."""
    workload = unit_workload([(3, 2)] * 3, num_microbatches=4, message_bytes=NOTICE_BYTES)
    chosen = plan(0, 1, 2)
    first = Runtime(rendezvous=True)

    found = simulate(chain(first, num_domains=3), workload, chosen)
    ideal = simulate(chain(RUNTIMES["ideal"], num_domains=3), workload, chosen)
    assert found == ideal


def test_torch_pairs_a_send_with_the_receive_of_the_other_direction():
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2)
    program = lower(chain(RUNTIMES["torch_stock"]), workload, plan(0, 1))

    assert told(program, 0) == (
        "0F0 0SEND_F0 0F1 0TAKEN_F0 0SEND_F1 0RECV_B0 0TAKEN_F1 0B0 0RECV_B1 0B1"
    )
    assert told(program, 1) == (
        "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1TAKEN_B0 1F1 1B1 1SEND_B1 1TAKEN_B1"
    )


def test_torch_waits_for_all_sends_of_a_half_of_gpipe():
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2)
    program = lower(chain(RUNTIMES["torch_stock"]), workload, plan(0, 1, schedule="gpipe"))

    assert told(program, 0) == (
        "0F0 0SEND_F0 0F1 0SEND_F1 0TAKEN_F0 0TAKEN_F1 0RECV_B0 0B0 0RECV_B1 0B1"
    )


LOWERED = {
    "interleaved": (
        "0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 2F0 2SEND_F0 2F1 2SEND_F1 2RECV_B0 2B0 "
        "2SEND_B0 2RECV_B1 2B1 2SEND_B1 0RECV_B0 0B0 0RECV_B1 0B1",
        "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3RECV_F1 3B0 3SEND_B0 1RECV_B0 "
        "3F1 3B1 3SEND_B1 1RECV_B1 1B0 1SEND_B0 1B1 1SEND_B1",
    ),
    "zero_bubble": (
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0I0 0W0 0RECV_B1 0I1 0W1",
        "1RECV_F0 1F0 1RECV_F1 1I0 1SEND_B0 1F1 1I1 1SEND_B1 1W0 1W1",
    ),
}
"""Lists that torch 2.13 makes of two orders over two ranks: ``_add_send_recv``."""


@pytest.mark.parametrize("name", LOWERED)
def test_receives_are_where_the_lowering_of_torch_puts_them(name):
    orders = {"interleaved": interleaved_1f1b(2, 2, 2), "zero_bubble": zb_h1(2, 2)}[name]
    num_stages = {"interleaved": 4, "zero_bubble": 2}[name]
    workload = unit_workload([(1, 2)] * num_stages, num_microbatches=2)
    domains = [stage % 2 for stage in range(num_stages)]
    program = lower(chain(RUNTIMES["torch_stock"]), workload, plan(*domains), orders=orders)

    for worker, expected in enumerate(LOWERED[name]):
        words = told(program, worker).split()
        body = [word for word in words if "TAKEN" not in word]
        assert " ".join(body) == expected
        assert words[len(body) :] == [
            word.replace("SEND", "TAKEN") for word in body if "SEND" in word
        ]


def test_a_deeper_warm_up_is_lowered_as_torch_does_with_files_of_orders():
    """As 1F1B it would deadlock: senders wait for receives that come behind their gradients."""
    workload = unit_workload([(1, 2)] * 3, num_microbatches=8)
    deeper, stock = plan(0, 1, 2, schedule="1f1b_4x"), RUNTIMES["torch_stock"]
    lowered = replace(stock, receives="lowered", senders_wait="end")

    found, expected = (
        lower(chain(one, num_domains=3), workload, deeper) for one in (stock, lowered)
    )
    assert [told(found, worker) for worker in range(3)] == [
        told(expected, worker) for worker in range(3)
    ]
    with pytest.raises(DeadlockError):
        lower(chain(replace(stock, receives="as_needed"), num_domains=3), workload, deeper)


def test_sends_that_are_each_waited_for_can_deadlock():
    """1F1B with blocking sends: the textbook's case for pairs."""
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2)
    topology = chain(replace(AS_NEEDED, senders_wait="each"))

    message = (
        "program: deadlock, worker 0 waits for F1 of stage 0, which worker 1 has not posted; "
        "worker 1 waits for B0 of stage 1, which worker 0 has not posted"
    )
    with pytest.raises(DeadlockError, match=message):
        lower(topology, workload, plan(0, 1))


def test_orders_that_wait_for_each_other_are_found_before_they_run():
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2)
    orders = tuple(
        tuple(Operation(one[0], int(one[1]), stage) for one in order.split())
        for stage, order in enumerate(("F0 B0 F1 B1", "F0 F1 B0 B1"))
    )
    with pytest.raises(DeadlockError, match="worker 0 waits for B0 of stage 1, which worker 1 has"):
        simulate(chain(AS_NEEDED), workload, plan(0, 1), orders=orders)
    lowered = chain(replace(AS_NEEDED, receives="lowered"))
    with pytest.raises(DeadlockError, match=r"no input for the next pass of workers \[0, 1\]"):
        simulate(lowered, workload, plan(0, 1), orders=orders)


def program_of_two() -> tuple[Topology, Program]:
    """Two stages, two microbatches, all receives posted first."""
    topology = chain(RUNTIMES["torch_early"])
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2)
    return topology, lower(topology, workload, plan(0, 1))


def test_receives_in_another_order_than_the_sends_are_refused():
    """Torch would compute with the wrong activations."""
    _, program = program_of_two()
    first, second = (own.rows for own in WorkerLists.of(program))
    swapped = with_lists(program, [first, [second[1], second[0], *second[2:]]])

    with pytest.raises(ValueError, match=r"of worker 1 must be .*, where F0 of stage 0 is next;"):
        check_receives(swapped)
    with pytest.raises(ValueError, match="where F1 of stage 0 is next; got nothing"):
        check_receives(with_lists(program, [first, [second[0], *second[2:]]]))


def test_both_engines_say_that_a_program_does_not_end():
    """Without a check; its last receive is not posted."""
    topology, program = program_of_two()
    rows = [list(own.rows) for own in WorkerLists.of(program)]
    stuck = with_lists(program, [[row for row in rows[0] if row != (POST, 1, 1)], rows[1]])

    assert run_to_end(topology, pack(topology, stuck)) is None
    with pytest.raises(DeadlockError, match="B1 of stage 0, the end of stage 1"):
        run_alone(topology, stuck, NO_CORRECTIONS).result()


def test_posted_receives_are_packed_without_waits_for_arrivals():
    topology, program = program_of_two()
    rows = [list(own.rows) for own in WorkerLists.of(program)]
    held = with_lists(program, [[*rows[0], (WAIT_SENT, 2, 0)], rows[1]])

    with pytest.raises(ValueError, match="where receives are posted, workers must do passes"):
        pack(topology, held)


def test_a_notice_of_another_number_of_messages_is_refused():
    _, program = program_of_two()
    flows = [*program.flows[:-1], program.flows[-1]._replace(num_messages=3)]

    with pytest.raises(ValueError, match="program: notice of a flow must be a flow of 2 messages"):
        replace(program, flows=tuple(flows))
    assert isinstance(program.operations[0], OperationList)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"receives": "late"}, "receives must be one of first, as_needed, lowered, stock; got"),
        ({"rendezvous": 1}, "rendezvous must be True or False, got 1"),
        ({"connections": "two"}, "connections must be one of shared, split; got 'two'"),
        ({"senders_wait": "no"}, "senders_wait must be one of end, step, each; got 'no'"),
    ],
)
def test_a_runtime_that_cannot_be_is_refused(fields, message):
    with pytest.raises(ValueError, match=f"transport.runtime: {message}"):
        Runtime(**fields)


def test_a_runtime_without_a_name_is_refused():
    with pytest.raises(ValueError, match="preset must be one of ideal, torch_stock, torch_early"):
        runtime_named("torch")


def test_a_rendezvous_needs_senders_that_go_on():
    with pytest.raises(ValueError, match="endpoints must be overlapped where the runtime has"):
        Transport(endpoints="blocking", runtime=AS_NEEDED)
    blocking = replace(plan(0, 1), sends="blocking")
    assert isinstance(blocking, Plan)
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1)
    with pytest.raises(ValueError, match="plan: sends must be overlapped where the runtime"):
        simulate_compiled(chain(AS_NEEDED), workload, blocking)
