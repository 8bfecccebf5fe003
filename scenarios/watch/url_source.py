"""Prometheus as a source: an answer to ``query_range`` is fetched again and again."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from agents.replanning.observed_world import WorldObservation
from calibration.measurements.sites import Sites
from scenarios.watch.folder_source import MOST_FILE_BYTES, Arrivals
from scenarios.watch.measured_files import observations_of_file

_FIRST_SPAN_S = 600.0
_TIMEOUT_S = 30.0


@dataclass(kw_only=True)
class UrlSource:
    """Fetches an address; without a start and an end it asks for what is new.

    Attributes
    ----------
    known
        End of the latest span under the address, in whole seconds since 1970.
    """

    url: str
    sites: Sites
    known: dict[str, str | int] = field(default_factory=dict)
    clock: Callable[[], float] = time.time

    def arrivals(self) -> Arrivals:
        """Return what the address answers; a line says why where it does not."""
        url, end_s = self._spanned()
        try:
            with urlopen(url, timeout=_TIMEOUT_S) as answer:
                content = answer.read(MOST_FILE_BYTES + 1)
        except (URLError, OSError) as error:
            return Arrivals(observations=(), problems=(f"{url}: cannot be read: {error}",))
        try:
            if len(content) > MOST_FILE_BYTES:
                raise ValueError(f"must have at most {MOST_FILE_BYTES} bytes, got more")
            found = self._read(content)
        except ValueError as error:
            return Arrivals(observations=(), problems=(f"{url}: {error}",))
        self.known = {self.url: end_s}
        ordered = sorted(found, key=lambda one: one.time_s)
        return Arrivals(observations=tuple(ordered), problems=())

    def _read(self, content: bytes) -> tuple[WorldObservation, ...]:
        with TemporaryDirectory(prefix="eastwest-watch-") as folder:
            path = Path(folder) / "answer.json"
            path.write_bytes(content)
            try:
                return observations_of_file(path, self.sites, self.clock())
            except ValueError as error:
                raise ValueError(str(error).replace(f"{path}: ", "")) from error

    def _spanned(self) -> tuple[str, int]:
        """The address with the span since the latest answer, and its end."""
        end_s = int(self.clock())
        parts = urlsplit(self.url)
        if not parts.path.endswith("/query_range") or "start" in parse_qs(parts.query):
            return self.url, end_s
        start_s = self.known.get(self.url, end_s - int(_FIRST_SPAN_S))
        return f"{self.url}&start={start_s}&end={end_s}&step=60", end_s
