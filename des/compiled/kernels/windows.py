"""Windows of the hosts' connections in a compiled simulation, see `des.engine.wire.Window`."""

from des.base.jit import inner_kernel
from des.compiled.kernels.intrinsics import at
from des.compiled.kernels.records import ProgramRun
from des.costs.connection_window import window_after_idle, windowed_delay_s


@inner_kernel
def begin_window(run: ProgramRun, link: int) -> None:
    """Open the window of a link, or count its times from the end of the step before."""
    header, own, figures = run.header, at(run.link_states, link), at(run.links, link)
    if header.is_continued:
        own.round_start_s -= header.before_s
        own.left_s -= header.before_s
    else:
        own.window_bytes = figures.most_bytes
        own.round_start_s = -figures.round_trip_s
        own.used_bytes = own.left_s = 0.0


@inner_kernel
def window_delay_s(run: ProgramRun, link: int, start_s: float, num_bytes: float) -> float:
    """Delay of a message that begins to leave. [s]"""
    own, figures = at(run.link_states, link), at(run.links, link)
    window_bytes = window_after_idle(figures, own.window_bytes, start_s - own.left_s)
    before = (window_bytes, own.round_start_s, own.used_bytes)
    delay_s, after = windowed_delay_s(figures, before, start_s, num_bytes)
    own.window_bytes, own.round_start_s, own.used_bytes = after
    found: float = delay_s
    return found
