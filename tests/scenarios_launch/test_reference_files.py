"""Launch files of the reference runtime: they say the plan, and are those of the plan they say."""

from dataclasses import replace

import pytest
from bound_cases import bound_plan, job
from launch_cases import bound_of, drawn_bound

from agents.judge.step_times import mean_step
from des import DecoupledDiLoCo, DiLoCo, GradientExchange, Placement, StreamingDiLoCo
from scenarios.iteration.launch_folder import HOSTS, read_hosts
from scenarios.iteration.plan_file import launch_plan
from scenarios.iteration.reference_launch import as_run
from scenarios.iteration.reference_operations import read_operations
from scenarios.iteration.runtime_job import RUNTIME, read_runtime_job
from scenarios.launch.launch_files import launch_files
from scenarios.rehearse.rehearsed_world import RehearsedWorld


def launched(plan, workload=None):
    """A plan for the reference runtime, and its launch."""
    bound = bound_of(replace(plan, sends="overlapped"), workload=workload, trainer="reference")
    parts = bound.topology, bound.workload, bound.plan, bound.corrections
    bound = replace(bound, step_s=mean_step(*parts)[0])
    return bound, launch_files(bound)


@pytest.mark.parametrize("seed", range(10))
def test_files_of_drawn_plans_take_their_time_to_the_last_bit(seed):
    """Drawn for torchtitan: any schedule, replicas, DiLoCo, fragments on their way."""
    drawn = as_run(replace(drawn_bound("torchtitan", seed), trainer="reference"))
    parts = drawn.topology, drawn.workload, drawn.plan, drawn.corrections
    bound = replace(drawn, step_s=mean_step(*parts)[0])
    launch = launch_files(bound)

    assert (launch.step_s, launch.unsaid) == (bound.step_s, ())
    read = launch_plan(launch.files).scenario.plan
    assert read.stages_of_replicas == bound.plan.stages_of_replicas


def test_operations_by_hand():
    """Two sites, three microbatches, 1F1B: all receives first, or each where it is waited for."""
    plan = bound_plan("0*16,1*16", "8x1x1")
    files = launched(plan, job(num_microbatches=3))[1].files

    assert files["receives_first.csv"].splitlines() == [
        "0RECV_B0,0RECV_B1,0RECV_B2,0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_B0,0B0,0F2,0SEND_F2,"
        "0WAIT_B1,0B1,0WAIT_B2,0B2,0SENT_F0,0SENT_F1,0SENT_F2",
        "1RECV_F0,1RECV_F1,1RECV_F2,1WAIT_F0,1F0,1B0,1SEND_B0,1WAIT_F1,1F1,1B1,1SEND_B1,"
        "1WAIT_F2,1F2,1B2,1SEND_B2,1SENT_B0,1SENT_B1,1SENT_B2",
    ]
    assert (
        files["receives_stock.csv"]
        .splitlines()[0]
        .startswith("0F0,0SEND_F0,0F1,0SENT_F0,0SEND_F1,0RECV_B0,")
    )


def test_replicas_of_unequal_shares_with_diloco():
    plan = bound_plan(
        "0*32",
        "8x1x2",
        replicas=(Placement.parse("1*32"),),
        shares=(20, 12),
        synchronisation=DiLoCo(steps_between=4, bits_per_value=8.0, behind_backward=False),
    )
    bound, launch = launched(plan)
    own = read_runtime_job(launch.files[RUNTIME])

    assert (own.shares, own.steps_between, own.bits_per_value) == ([20, 12], 4, 8.0)
    assert [one.stages for one in own.buckets if one.after_step] == [[1, 3], [0, 2]]
    assert launch_plan(launch.files).scenario.plan == as_run(bound).plan


def streaming(steps_between):
    """Two replicas that exchange fragments of 16 layers."""
    mode = StreamingDiLoCo(steps_between=steps_between, layers_per_fragment=16, bits_per_value=4.0)
    shared = {"replicas": (Placement.parse("1*32"),), "shares": (20, 12)}
    return bound_plan("0*32", "8x1x2", synchronisation=mode, **shared)


def test_fragments_are_buckets_with_the_step_in_which_they_are_due():
    """Layers 0, 2, 4, ... after the second step of four, the others after the last."""
    bound, launch = launched(streaming(4))
    own = read_runtime_job(launch.files[RUNTIME])

    due = {one.first_layer: one.due_step for one in own.buckets if one.after_step}
    assert due == {layer: (2, 4)[layer % 2] for layer in range(32)}
    assert (own.steps_between, own.overlap_steps, own.bits_per_value) == (4, 1, 4.0)
    assert launch_plan(launch.files).scenario.plan == as_run(bound).plan


def test_a_fragment_that_is_due_before_it_is_back_is_refused():
    with pytest.raises(ValueError, match=r"steps_between must be above overlap_steps, 1.*got 1"):
        launched(streaming(1))


def test_plans_whose_fragments_overlap_later_steps_are_not_rehearsed():
    """A rehearsal is of one step."""
    bound = as_run(launched(streaming(4))[0])

    with pytest.raises(ValueError, match="must exchange within a step; got Streaming DiLoCo"):
        RehearsedWorld(
            bound=bound,
            receives="first",
            num_connections=2,
            hosts="linux_tuned",
            scale=0.1,
            link_gbit=0.25,
        )


def test_ranks_are_processes_of_the_hosts_of_their_devices():
    _, launch = launched(bound_plan("0*32", "4x1x4"))

    assert [(one.name, one.num_gpus) for one in read_hosts(launch.files[HOSTS])] == [
        ("A-0", 2),
        ("A-1", 2),
    ]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("receives_first.csv", "1RECV_F0,1RECV_F1", "1RECV_F1,1RECV_F0", "row 1 must be that of"),
        (RUNTIME, '"num_layers": 8', '"num_layers": 7', "num_layers|layers"),
        (RUNTIME, "eastwest-runtime 1", "eastwest-runtime 9", "format must be"),
        (HOSTS, "3 B-1 1 B\n", "", "must have the 4 ranks"),
        (HOSTS, "B-1 1 B", "B-1 1 C", "row"),
    ],
)
def test_files_changed_by_hand_are_refused(name, old, new, message):
    files = dict(launched(bound_plan())[1].files)
    assert old in files[name], files[name][:300]
    files[name] = files[name].replace(old, new, 1)

    with pytest.raises(ValueError, match=message):
        launch_plan(files)


def test_what_the_runtime_cannot_do_is_refused_where_it_takes_time():
    plan = bound_plan(
        "0*32",
        "8x1x2",
        replicas=(Placement.parse("1*32"), Placement.parse("2*32")),
        exchange=GradientExchange(tree=(0, 0)),
    )
    with pytest.raises(ValueError, match=r"they cannot say exchange .*tree"):
        launched(plan, job(num_microbatches=3))


def test_learners_that_do_not_wait_are_refused_and_those_that_do_are_launched():
    copies = {"replicas": (Placement.parse("1*32"),), "shares": (20, 12)}
    mode = DecoupledDiLoCo(steps_between=4, quorum=2)
    waiting = bound_plan("0*32", "8x1x2", **copies, synchronisation=mode)
    bound, launch = launched(waiting)

    assert launch.step_s == bound.step_s
    with pytest.raises(ValueError, match=r"reference runtime: quorum .* be all 2 learners"):
        launched(replace(waiting, synchronisation=replace(mode, quorum=1)))


def test_cells_of_other_forms_are_refused_with_their_row():
    with pytest.raises(ValueError, match=r"x.csv: row 1 must have cells .* got '1RECV_W0'"):
        read_operations("0F0\n1RECV_W0\n", "x.csv")
