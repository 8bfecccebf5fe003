"""A tiny scope of the table of targets, and the files that its runs leave."""

from hypothesis import strategies as st

from scenarios.frame.statistics import MeanInterval
from scenarios.study.targets.command import main
from scenarios.study.targets.target import Goal, Target, Unit

QUIET = ["--figures", ""]
TINY = ["--short", "--num-epochs", "1", "--world", "east_central_west", *QUIET]
TINY += ["--trainer", "ideal"]
FILES = ("config.json", "kpi.json", "kpi.csv", "report.html")


def error_of(flags, capsys):
    capsys.readouterr()
    assert main(flags) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def numbers(*, finite=False):
    return st.floats(allow_nan=not finite, allow_infinity=not finite)


@st.composite
def targets(draw):
    """Any target: figures that are no numbers, texts of any letters."""
    sense = draw(st.sampled_from(["at least", "at most", "above", "below"]))
    low, high = sorted([draw(numbers(finite=True)), draw(numbers(finite=True))])
    bound, stretch = (low, high) if sense in ("at least", "above") else (high, low)
    return Target(
        name=draw(st.text()),
        definition=draw(st.text()),
        reference=draw(st.text()),
        goal=Goal(sense=sense, target=bound, stretch=draw(st.sampled_from([stretch, None]))),
        value=draw(numbers() | st.integers(-3, 3)),
        interval=draw(
            st.none() | st.builds(MeanInterval, mean=numbers(), half_width=numbers() | st.just(0))
        ),
        unit=draw(st.builds(Unit, name=st.text(), factor=numbers(finite=True))),
        has_fewer_gpus=draw(st.booleans()),
        notes=tuple(draw(st.lists(st.text(), max_size=3))),
        values=tuple(draw(st.lists(numbers(), max_size=3))),
    )
