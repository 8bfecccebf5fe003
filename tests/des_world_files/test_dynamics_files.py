"""The section ``dynamics`` of topology files: presets, laws, traces, and what is refused."""

import json
import math
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from law_strategies import dynamics, laws, link_state

from des import UniformLaw, read_topology
from des.dynamics import DYNAMICS, MarkovModulated, OrnsteinUhlenbeck, Product
from des.world.files.dynamics_forms import law_entry, read_law
from des.world.files.trace_files import read_link_trace
from des.worlds import EAST_CENTRAL_WEST

WORLD = json.loads(EAST_CENTRAL_WEST.with_suffix(".json").read_text(encoding="utf-8"))
WANDERING = {
    "kind": "ornstein_uhlenbeck",
    "bandwidth_sigma": 0.15,
    "latency_sigma": 0.01,
    "relaxation": "60s",
    "interval": "500ms",
    "correlation": 0.1,
    "most_sigmas": 3,
}
CHAIN = {
    "kind": "markov",
    "states": {
        "up": {
            "bandwidth_factor": 1,
            "mean_dwell": "50s",
            "followed_by": {"slow": 0.9, "down": 0.1},
        },
        "slow": {
            "bandwidth_factor": 0.3,
            "latency_factor": 2.0,
            "mean_dwell": "5s",
            "followed_by": {"up": 1},
        },
        "down": {"bandwidth_factor": 0, "mean_dwell": "for_ever"},
    },
    "starts_in": "up",
    "correlation": 0.2,
}
LAWS = {
    "wandering": (
        WANDERING,
        OrnsteinUhlenbeck(
            bandwidth_sigma=0.15,
            latency_sigma=0.01,
            relaxation_s=60.0,
            interval_s=0.5,
            correlation=0.1,
            most_sigmas=3.0,
        ),
    ),
    "chain": (
        CHAIN,
        MarkovModulated(
            states=(
                link_state("up", 50.0, slow=0.9, down=0.1),
                link_state("slow", 5.0, 0.3, 2.0, up=1.0),
                link_state("down", math.inf, 0.0),
            ),
            starts_in="up",
            correlation=0.2,
        ),
    ),
    "uniform": (
        {"kind": "uniform", "latency_jitter": 0, "update_interval": "5s", "correlation": 0.5},
        UniformLaw(
            bandwidth_fluctuation=0.3, latency_jitter=0.0, update_interval_s=5.0, correlation=0.5
        ),
    ),
    "product": (
        {"kind": "product", "laws": ["ou", "markov_fast"]},
        Product(laws=(DYNAMICS["ou"], DYNAMICS["markov_fast"])),
    ),
} | {name: (name, law) for name, law in DYNAMICS.items()}


def world_file(folder, suffix, content):
    """The shipped world with another section ``dynamics``, in either form."""
    path = folder / f"world{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps(WORLD | {"dynamics": content}), encoding="utf-8")
    else:
        given_world = yaml.safe_load(EAST_CENTRAL_WEST.read_text(encoding="utf-8"))
        text = yaml.safe_dump(given_world | {"dynamics": content}, sort_keys=False)
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@pytest.mark.parametrize(("content", "law"), LAWS.values(), ids=LAWS)
def test_a_law_is_read_from_either_form(tmp_path, suffix, content, law):
    topology = read_topology(world_file(tmp_path, suffix, content))

    assert topology.dynamics == law
    assert topology.links == read_topology(EAST_CENTRAL_WEST).links
    assert topology.movement is None


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_a_trace_lies_beside_the_file_that_names_it(tmp_path, suffix):
    rows = [
        f"{time_s},{link.source},{link.target},{link.bandwidth_bytes_per_s / 2},{link.latency_s}"
        for link in read_topology(EAST_CENTRAL_WEST).links
        for time_s in (0, 60)
    ]
    trace = tmp_path / "traces" / "week.csv"
    trace.parent.mkdir()
    header = "time_s,source,target,bandwidth_bytes_per_s,latency_s"
    trace.write_text("\n".join([header, *rows]), encoding="utf-8")
    content = {
        "kind": "replay",
        "file": "traces/week.csv",
        "holds_last": True,
        "longest_gap": "1e2s",
    }

    topology = read_topology(world_file(tmp_path, suffix, content))
    assert topology.dynamics == read_link_trace(trace, holds_last=True)
    trace.write_text("\n".join([header, *rows[2:]]), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"world{suffix}: .*week.csv: trace must hold every link"):
        read_topology(tmp_path / f"world{suffix}")


@given(law=st.one_of(dynamics(), laws(), st.sampled_from(list(DYNAMICS.values()))))
def test_a_law_that_is_written_reads_back_as_itself(law):
    """To the last bit, also by way of YAML."""
    assert read_law(yaml.safe_load(yaml.safe_dump(law_entry(law), sort_keys=False))) == law


def test_a_replay_has_no_entry(tmp_path):
    path = tmp_path / "trace.csv"
    header = "time_s,source,target,bandwidth_bytes_per_s,latency_s"
    path.write_text(f"{header}\n0,A,B,1,1\n", encoding="utf-8")

    with pytest.raises(ValueError, match="topology: dynamics must have a form in files, got Repl"):
        law_entry(read_link_trace(path))


def without(content, *keys):
    return {key: value for key, value in content.items() if key not in keys}


def with_state(**fields):
    """The chain with one state changed."""
    states = CHAIN["states"]
    return CHAIN | {"states": states | {"slow": states["slow"] | fields}}


PRESETS = "steady, calm, multi_cloud, stress, ou, markov_fast, markov_slow"
BAD = {
    "no preset": ("stormy", f"dynamics: must be a mapping or one of {PRESETS}; got 'stormy'"),
    "nothing": (None, f"dynamics: must be a mapping or one of {PRESETS}; got None"),
    "a list": (["ou"], "dynamics: must be a mapping or one of"),
    "no kind": ({"kind": "gauss"}, "dynamics.kind: must be one of uniform, ornstein_uhlenbeck, m"),
    "kind 3": ({"kind": 3}, "dynamics.kind: must be one of uniform, ornstein_uhlenbeck, markov, r"),
    "other key": (WANDERING | {"sigma": 1}, "dynamics.sigma: unknown key; "),
    "misspelt key": (
        without(WANDERING, "interval") | {"intervall": "5s"},
        "dynamics.intervall: unknown key; did you mean 'interval'?",
    ),
    "misspelt kind": ({"knd": "markov"}, "dynamics.knd: unknown key; did you mean 'kind'?"),
    "no figure": (without(WANDERING, "interval"), "dynamics.interval: must be given"),
    "no unit": (WANDERING | {"interval": 5}, "dynamics.interval: must be a time such as '30ms'"),
    "bad figure": (WANDERING | {"bandwidth_sigma": -1}, "dynamics: bandwidth_sigma must be from 0"),
    "text": (WANDERING | {"correlation": "1"}, "dynamics.correlation: Input should be a valid nu"),
    "NaN": (WANDERING | {"correlation": math.nan}, "dynamics.correlation: Input should be a finit"),
    "no states": ({"kind": "markov"}, "dynamics.states: must be given"),
    "states": ({"kind": "markov", "states": []}, "dynamics.states: Input should be a valid dictio"),
    "state": (with_state(dwell="5s"), "dynamics.states.slow.dwell: unknown key; "),
    "dwell": (with_state(mean_dwell="long"), "dynamics.states.slow.mean_dwell: must be for_ever"),
    "factor": (with_state(bandwidth_factor=-1), "dynamics: state slow: bandwidth_factor must be"),
    "successor": (with_state(followed_by={"on": 1}), "dynamics: state slow: followed_by must name"),
    "no chance": (
        with_state(followed_by={"up": "1"}),
        "dynamics.states.slow.followed_by.up: Input should be a valid number, got '1'",
    ),
    "no start": (without(CHAIN, "starts_in"), "dynamics: starts_in must be given where states"),
    "no laws": ({"kind": "product", "laws": []}, "dynamics: laws must hold at least one law"),
    "in a product": (
        {"kind": "product", "laws": ["ou", {"kind": "markov"}]},
        "dynamics.laws[1].states: must be given",
    ),
    "per epoch": (
        {"kind": "product", "laws": ["stress"]},
        "dynamics: laws[0]: law.update_interval_s must be given in seconds, got None",
    ),
    "no file": ({"kind": "replay"}, "dynamics.file: must be given"),
    "missing": ({"kind": "replay", "file": "none.csv"}, "none.csv: trace cannot be read: No such"),
}


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_bad_section_is_refused_with_file_field_and_value(tmp_path, suffix, content, message):
    path = world_file(tmp_path, suffix, content)

    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        read_topology(path)
    assert str(refusal.value).startswith(f"{path}: ")
