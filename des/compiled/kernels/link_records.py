"""Records of links, of the media they run over, and of the rates that they share.

See `des.compiled.kernels.program`.
"""

import numpy as np

_I, _F = np.int64, np.float64

LINK = np.dtype(
    [
        ("bandwidth_bytes_per_s", _F),  # the three figures are corrected ones
        ("latency_s", _F),
        ("round_trip_s", _F),
        ("medium", _I),
        ("first_piece", _I),
        ("end_piece", _I),
        ("cap_bytes_per_s", _F),  # of one message; inf where there is none
        ("first_gate", _I),  # among the gates of links
        ("end_gate", _I),
        # of the hosts' windows, where they have them; with round_trip_s `WindowFigures`
        ("rate_bytes_per_s", _F),
        ("buffer_bytes", _F),
        ("most_bytes", _F),
        ("timeout_s", _F),
    ],
    align=True,
)

MEDIUM = np.dtype([("first_link", _I), ("second_link", _I)])
"""Medium of one link, or of two that share it; numbered by the first link."""

GATE = np.dtype([("rate_bytes_per_s", _F)])
"""Rate that several links share."""

LINK_GATE = np.dtype([("gate", _I)])

LINK_STATE = np.dtype(
    [
        ("bandwidth_bytes_per_s", _F),  # the four figures of its present offer
        ("goodput_bytes_per_s", _F),
        ("latency_s", _F),
        ("until_s", _F),
        ("since_asked_s", _F),  # time of the first question that the present offer answered
        ("last_arrival_s", _F),
        ("busy_s", _F),
        ("num_bytes", _F),
        ("left_s", _F),  # when its last message had left; this and two more for start-ups only
        *[("began_bytes", _F), ("known_bytes", _F)],
        *[("window_bytes", _F), ("round_start_s", _F), ("used_bytes", _F)],  # of hosts
        ("num_messages", np.int64),
        ("piece", np.int64),
        ("level_bytes", _F),  # from here on for fair sharing only
        ("since_s", _F),
        ("rate_bytes_per_s", _F),
        ("busy_since_s", _F),
        ("num_present", _I),
        ("num_sending", _I),
        ("head", _I),
        ("tail", _I),
        ("has_joiner", _I),
        ("fair_bytes_per_s", _F),  # of a message, with gates; negative while it is not known
        ("limit_bytes_per_s", _F),
        ("is_used", _I),  # by a message of the program, where links have gates
        ("used", _I),  # number of a used link, those of all used links in a row
    ],
    align=True,
)

MEDIUM_STATE = np.dtype([("free_s", _F), ("due_s", _F)])

GATE_STATE = np.dtype(
    [
        ("num_pieces", _I),
        ("left_bytes_per_s", _F),  # by links whose fair rates are known; this and the next
        ("num_open", _I),  # messages of the others, for fair sharing only
    ],
    align=True,
)

GATE_PIECE = np.dtype([("since_s", _F), ("left_bytes_per_s", _F)])
"""Rate that messages leave of a gate from a time on."""
