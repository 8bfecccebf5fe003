"""Pictures on pages that need nothing else."""

import base64
import html
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG with the sentence below it, which also describes it to those who cannot see it."""

    caption: str
    png: bytes


def picture_html(picture: Picture) -> str:
    """A picture within a page that needs nothing else."""
    encoded = base64.b64encode(picture.png).decode("ascii")
    caption = html.escape(picture.caption)
    return (
        f'<figure><img src="data:image/png;base64,{encoded}" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>\n"
    )
