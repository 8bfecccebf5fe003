"""Orders that no workers can execute are refused, from any maker."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from strategies import STATIC_SCHEDULES, free_world, plan, unit_workload

from des import DeadlockError, Operation, simulate
from des.schedules import schedule_orders, stage_orders
from des.schedules.check import check_schedule, input_of
from des.schedules.interleaved import loop_devices, wave_devices
from des.schedules.pipeline import Pipeline
from des.schedules.registry import Schedule

MODULE = """
from des.schedules.operations import Operation
from des.schedules.registry import Schedule

def backwards(num_stages, num_microbatches, factor):
    passes = [(kind, each) for each in range(num_microbatches) for kind in "BF"]
    return tuple(tuple(Operation(*one, stage) for one in passes) for stage in range(num_stages))

STATIC = Schedule("backward first", backwards)
LOOKING = Schedule("the same, of a pipeline", of_pipeline=lambda pipeline, factor: backwards(
    pipeline.num_stages, pipeline.num_microbatches, factor))
"""


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """An installed package that offers two schedules whose backward passes come first."""
    (tmp_path / "impossible_schedules.py").write_text(MODULE)
    folder = tmp_path / "impossible-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: impossible\n")
    rows = [f"{name.lower()} = impossible_schedules:{name}" for name in ("STATIC", "LOOKING")]
    (folder / "entry_points.txt").write_text("\n".join(["[eastwest.schedules]", *rows]) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("name", ["static", "looking"])
def test_a_schedule_of_another_package_with_backwards_first_is_refused(name, offered):
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=4)

    with pytest.raises(ValueError, match=f"^schedule {name}: stage 0 must do F0 before B0, got"):
        simulate(free_world(3), workload, plan(0, 1, 2, schedule=name))


def can_be_executed(orders, device_of_stage, num_microbatches):
    """Do whatever can be done until nothing can, and see whether that was each pass once."""
    left, done, outputs = [list(one) for one in orders], [], {None}
    num_stages, device_of = len(device_of_stage), dict(enumerate(device_of_stage))
    progress = True
    while progress:
        progress = False
        for one in left:
            while one:
                kind, microbatch, stage = one[0]
                before = {"F": None, "B": "F", "D": "F", "W": "D"}.get(kind)
                ready = before is None or Operation(before, microbatch, stage) in done
                if not ready or input_of(one[0], num_stages) not in outputs:
                    break
                done.append(one.pop(0))
                outputs |= set() if kind == "W" else {("F" if kind == "F" else "B", *done[-1][1:])}
                progress = True
    passes = Counter((stage, microbatch, kind) for kind, microbatch, stage in done)
    halves = [
        [passes.pop((stage, each, kind), 0) for kind in "FBDW"]
        for stage in range(num_stages)
        for each in range(num_microbatches)
    ]
    stages = [{one.stage for one in order} for order in orders]
    alone = all(len(set(map(device_of.get, own))) == 1 for own in stages)
    once = sum(map(len, stages)) == len(set.union(*stages))
    whole = all(each in ([1, 1, 0, 0], [1, 0, 1, 1]) for each in halves)
    return alone and once and whole and not passes and not any(left)


def mutate(orders, generator, num_stages):
    """Swap, drop, repeat or change an operation of an order, or swap two orders."""
    rows = [list(one) for one in orders]
    row = rows[generator.integers(len(rows))]
    at, other = generator.integers(len(row), size=2)
    match generator.integers(6):
        case 0:
            row[at], row[other] = row[other], row[at]
        case 1:
            del row[at]
        case 2:
            row.insert(other, row[at])
        case 3:
            row[at] = row[at]._replace(kind="FBDWX"[generator.integers(5)])
        case 4:
            row[at] = row[at]._replace(microbatch=int(generator.integers(-1, 5)))
        case _:
            row[at] = row[at]._replace(stage=int(generator.integers(-1, max(4, num_stages + 1))))
    return tuple(map(tuple, rows))


def stage_each(generator):
    """A static schedule, one stage on each worker: name, devices, microbatches and orders."""
    name = STATIC_SCHEDULES[generator.integers(len(STATIC_SCHEDULES))]
    num_stages, num_microbatches = generator.integers(1, 4, size=2).tolist()
    orders = stage_orders(name, num_stages, num_microbatches)
    return name, tuple(range(num_stages)), num_microbatches, orders


def several_stages(generator):
    """The same where a worker has several stages, in loops, or down the devices and back up."""
    num_devices, num_microbatches = generator.integers(2, 4, size=2).tolist()
    devices_of = (loop_devices, wave_devices)[generator.integers(2)]
    name = "interleaved_1f1b"
    if devices_of is wave_devices:
        name = ("greedy", "zb_auto")[generator.integers(2)]
    device_of_stage = devices_of(num_devices, int(generator.integers(2, 4)))
    uniform = Pipeline.uniform(len(device_of_stage), num_microbatches, num_devices=num_devices)
    pipeline = replace(uniform, device_of_stage=device_of_stage)
    return name, device_of_stage, num_microbatches, schedule_orders(name, pipeline)


@pytest.mark.parametrize("draw", [stage_each, several_stages])
def test_of_10_000_mutations_of_valid_orders_all_impossible_ones_are_refused_and_no_others(draw):
    generator, counts = np.random.default_rng(0), Counter()
    messages = set()
    for _ in range(10_000):
        name, device_of_stage, num_microbatches, valid = draw(generator)
        orders = mutate(valid, generator, len(device_of_stage))
        try:
            check_schedule(name, orders, device_of_stage, num_microbatches)
            accepted = True
        except ValueError as error:
            accepted = False
            messages.add(str(error).startswith(f"schedule {name}: "))
        assert accepted == can_be_executed(orders, device_of_stage, num_microbatches), orders
        counts[accepted] += 1
    assert min(counts.values()) > 300
    assert messages == {True}


def order(text, stage=0):
    return tuple(Operation(one[0], int(one[1:]), stage) for one in text.split())


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ([order("F0 B0")], r"must give a tuple of orders.* got \[\(Operation\(.* in order 0$"),
        ((order("F0 B0"), ()), r"at least one; got \(\) in order 1$"),
        (((("F", 0, 0), ("B", 0, 0)),), r"got \('F', 0, 0\) in order 0$"),
        (None, "got None in order 0$"),
        ((order("F0 B0 F7"),), "each of 1 microbatches must be done once, got F7 of stage 0 1x$"),
        ((order("F0 B0"), order("F0", 1)), "stages must be numbered 0 to 0, got F0 of stage 1$"),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_schedule(orders, message):
    with pytest.raises(ValueError, match=f"^schedule mine: .*{message}"):
        check_schedule("mine", orders, (0,), 1)


def test_workers_that_wait_for_each_other_are_refused_before_anything_is_simulated():
    crossed = (order("F0 B0 F1 B1"), order("F0 F1 B0 B1", 1))

    with pytest.raises(DeadlockError, match=r"^schedule mine: deadlock, .*: B0 of stage 0, F1 of"):
        check_schedule("mine", crossed, (0, 1), 2)


def test_a_static_schedule_has_a_worker_a_stage_in_their_order(monkeypatch):
    swapped = Schedule("1f1b, stages swapped", lambda p, m, _: stage_orders("1f1b", p, m)[::-1])
    monkeypatch.setattr("des.schedules.registry.schedule_named", lambda _: (swapped, None))

    with pytest.raises(ValueError, match=r"^schedule s: order 0 must be of its stage, got F0 of"):
        stage_orders("s", 2, 3)
    pipeline = replace(Pipeline.uniform(2, 3), memory_bytes=(2.0, 2.0))
    with pytest.raises(ValueError, match=r"^schedule s: order 0 must be of its stage"):
        schedule_orders("s", pipeline)
