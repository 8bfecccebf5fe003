"""Rules by which jobs share links; a module of its own that loads nothing slow."""

from typing import Literal, get_args

LinkRule = Literal["fair", "priority"]
"""Whether messages on a link get equal parts of it, or those of higher priority go first."""

LINK_RULES: tuple[str, ...] = get_args(LinkRule)
