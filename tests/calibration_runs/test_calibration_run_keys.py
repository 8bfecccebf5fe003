"""Keys that runs are known by: equal for equal runs, and for these alone."""

import math
import pickle
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from processes import words_printed
from spot_cases import three_sites
from strategies import cases, plan, unit_workload, world

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import (
    RunKey,
    binary_version,
    case_digest,
    case_key,
    describe_case,
    engine_version,
)
from des import Parallelism, UniformLaw

OF_WHOLE_SEQUENCES = {"replicated_activation_bytes", "replicated_input_bytes"}
"""Numbers that only plans without sequence parallelism see."""

NOT_IN_A_RUN = {"dynamics", "price_usd_per_gb", "gpu_price_usd_per_hour"} | OF_WHOLE_SEQUENCES


def hand_case():
    """Two domains, a link each way, three layers."""
    return PlacementCase(
        topology=world("AB", {"AB": (10.0, 0.5), "BA": (5.0, 0.25)}),
        workload=unit_workload([(1.0, 2.0)] * 3, num_microbatches=4, message_bytes=20.0),
        plan=plan(0, 0, 1),
    )


def number_leaves(value, path=()):
    """Yield where the numbers of a value are, as paths of field names and positions."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield path
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from number_leaves(item, (*path, index))
    else:
        for field in fields(value):
            yield from number_leaves(getattr(value, field.name), (*path, field.name))


def with_leaf(value, path, change):
    """Return the value with one of its numbers changed."""
    if not path:
        return change(value)
    first, *rest = path
    if isinstance(value, tuple):
        return (*value[:first], with_leaf(value[first], rest, change), *value[first + 1 :])
    return replace(value, **{first: with_leaf(getattr(value, first), rest, change)})


def next_number(number):
    """Return the next larger number of the same type."""
    return number + 1 if isinstance(number, int) else math.nextafter(number, math.inf)


def map_numbers(value, change):
    """Return the value with all of its floats changed."""
    if isinstance(value, tuple):
        return tuple(map_numbers(item, change) for item in value)
    if is_dataclass(value):
        items = {
            each.name: map_numbers(getattr(value, each.name), change) for each in fields(value)
        }
        return replace(value, **items)
    return change(value) if isinstance(value, float) else value


@st.composite
def drawn_cases(draw):
    """Any case at either granularity."""
    topology, workload, drawn_plan = draw(cases(min_domains=2))
    granularity = draw(st.sampled_from(["domain", "gpu"]))
    return PlacementCase(
        topology=topology, workload=workload, plan=drawn_plan, granularity=granularity
    )


@given(case=drawn_cases(), choice=st.data())
def test_any_number_that_a_run_sees_changes_the_key_by_its_last_bit(case, choice):
    path = choice.draw(st.sampled_from(list(number_leaves(case))))
    try:
        other = with_leaf(case, path, next_number)
    except ValueError:
        assume(False)  # out of range, such as a domain that does not exist

    assert (case_digest(other) == case_digest(case)) == bool(NOT_IN_A_RUN & set(path))


@given(case=drawn_cases(), choice=st.data())
def test_keys_are_equal_for_equal_cases_alone(case, choice):
    """Some of the same few changes go into either copy of a case."""
    paths = [path for path in number_leaves(case) if not NOT_IN_A_RUN & set(path)]
    some = st.lists(st.sampled_from(paths), max_size=2, unique=True)
    pool = choice.draw(some)
    copies = []
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(case))
        try:
            for path in choice.draw(st.sets(st.sampled_from(pool))) if pool else ():
                copy = with_leaf(copy, path, next_number)
        except ValueError:
            assume(False)
        copies.append(copy)
    one, other = copies

    assert (case_digest(one) == case_digest(other)) == (one == other)


@pytest.mark.parametrize(
    "other",
    [
        replace(hand_case(), granularity="gpu"),
        replace(hand_case(), plan=plan(0, 1, 1)),
        replace(hand_case(), plan=plan(0, 0, 1, schedule="gpipe")),
        replace(hand_case(), plan=replace(plan(0, 0, 1), activation_compression=2.0)),
    ],
    ids=["granularity", "placement", "schedule", "compression"],
)
def test_choices_are_part_of_the_key(other):
    assert case_digest(other) != case_digest(hand_case())


def test_what_gpus_keep_whole_counts_only_without_sequence_parallelism():
    case = hand_case()
    keeps = tuple(
        replace(layer, replicated_input_bytes=layer.weight_input_bytes)
        for layer in case.workload.layers
    )
    other = replace(case, workload=replace(case.workload, layers=keeps))
    digests = []
    for sequence_parallel in (True, False):
        shared = (Parallelism(sequence_parallel=sequence_parallel),) * 2
        digests.append(
            [
                case_digest(replace(one, plan=replace(one.plan, parallelism=shared)))
                for one in (case, other)
            ]
        )

    assert digests[0][0] == digests[0][1] != digests[1][0] != digests[1][1]
    precise = replace(case, workload=replace(case.workload, gradient_precision="fp32"))
    assert case_digest(precise) != case_digest(case)
    low = replace(case, workload=replace(case.workload, precision="fp8"))
    assert case_digest(low) != case_digest(case)


def test_transport_and_routes_are_part_of_the_key():
    case = hand_case()
    topology = case.topology
    others = [
        replace(topology, transport=replace(topology.transport, endpoints="one_in_flight")),
        replace(topology, routing_latencies_s=(1.0, 2.0)),
    ]

    digests = {case_digest(replace(case, topology=other)) for other in (topology, *others)}
    assert len(digests) == 3


def test_prices_and_the_laws_of_standing_links_and_sites_are_not():
    case = hand_case()
    priced = replace(
        case.topology,
        domains=tuple(
            replace(domain, gpu_price_usd_per_hour=3.0) for domain in case.topology.domains
        ),
        links=tuple(replace(link, price_usd_per_gb=0.1) for link in case.topology.links),
        dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2),
        availability=three_sites(),
    )

    assert case_digest(replace(case, topology=priced)) == case_digest(case)


@pytest.mark.parametrize("number_type", [np.float64, int])
def test_equal_numbers_of_other_types_have_the_same_key(number_type):
    case = hand_case()
    whole = replace(case, topology=world("AB", {"AB": (10.0, 1.0), "BA": (5.0, 2.0)}))

    assert case_digest(map_numbers(whole, number_type)) == case_digest(whole)


def test_keys_and_versions_are_the_same_in_another_process(tmp_path):
    """Hashes of texts differ from process to process; keys must not."""
    case = hand_case()
    (tmp_path / "case").write_bytes(pickle.dumps(case))
    script = (
        "import pickle, sys; from pathlib import Path; from calibration.cases.case_key import *; "
        "print(case_digest(pickle.loads(Path(sys.argv[1]).read_bytes())), engine_version())"
    )
    printed = words_printed(script, str(tmp_path / "case"), NUMBA_DISABLE_JIT="1")

    assert printed == [case_digest(case), engine_version()]


@pytest.mark.parametrize("field", ["case_digest", "backend", "aggregation", "version"])
def test_every_part_of_a_key_counts(field):
    key = case_key(hand_case(), "aware", None, "1")

    assert key.digest == case_key(hand_case(), "aware", None, "1").digest
    assert replace(key, **{field: "other"}).digest != key.digest


def test_parts_of_a_key_do_not_run_into_each_other():
    one = RunKey(case_digest="0", backend="aware", aggregation="min", version="x")
    other = RunKey(case_digest="0", backend="awaremin", aggregation="", version="x")

    assert one.digest != other.digest


def test_a_binary_is_known_by_its_content(tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    for path, content in ((first, b"one"), (second, b"one"), (third, b"two")):
        path.write_bytes(content)

    assert binary_version(first) == binary_version(second) != binary_version(third)
    with pytest.raises(ValueError, match="missing: cannot be read: No such file"):
        binary_version(tmp_path / "missing")


def test_a_case_is_described_by_its_figures():
    """Stages of 2 and 1 layers: the larger one has 4/3 of the mean."""
    figures = describe_case(hand_case())

    assert figures["num_crossings"] == 1
    assert figures["num_used_domains"] == figures["num_domains"] == 2
    assert figures["imbalance_factor"] == pytest.approx(4 / 3)
    assert figures["placement"] == "0*2,1*1"


def test_the_digest_of_a_case_stays_though_classes_get_other_names():
    """Stored runs are found by it, and it says which cases are for fitting."""
    recorded = "756a49ab2619223daf227990abe866a666d3b11ae2168d3a45394349ba0863b7"

    assert case_digest(hand_case()) == recorded
