"""The section ``availability`` of a topology file: sites that come and go."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from des.base.quantities import DURATION_S, TIME_S, format_quantity, parse_quantity
from des.base.strict_forms import StrictForm, form_errors
from des.dynamics.site_law import NOTICE_S, SiteLaw, SpotLaw
from des.dynamics.stay_law import StayLaw
from des.world.files.spot_trace_files import read_spot_trace


def _read_notice(value: object) -> float:
    if isinstance(value, str) and value in NOTICE_S:
        return NOTICE_S[value]
    try:
        return parse_quantity(value, DURATION_S)
    except ValueError as error:
        raise ValueError(
            f"must be a time or one of {', '.join(NOTICE_S)}; got {value!r}"
        ) from error


_Duration = Annotated[float, BeforeValidator(lambda value: parse_quantity(value, DURATION_S))]
_Notice = Annotated[float, BeforeValidator(_read_notice)]


class _StayForm(StrictForm):
    weight: float
    median: _Duration
    sigma: float
    other_median: _Duration
    other_sigma: float


def _read_stay(value: object) -> StayLaw:
    """Read a mean length, or the figures of a mixture."""
    if not isinstance(value, Mapping):
        return StayLaw.of_mean(parse_quantity(value, DURATION_S))
    with form_errors("stays"):
        form = _StayForm.model_validate(value)
        return StayLaw(
            weight=form.weight,
            median_s=form.median,
            sigma=form.sigma,
            other_median_s=form.other_median,
            other_sigma=form.other_sigma,
        )


_Stay = Annotated[StayLaw | None, BeforeValidator(_read_stay)]


class _SiteForm(StrictForm):
    """Stays of a site: lengths of those up and down, or a trace to which they are fitted."""

    up: _Stay = None
    down: _Stay = None
    trace: str | None = None
    least_servers: int = Field(default=1, ge=1)

    def to_law(self, name: str, folder: Path) -> SiteLaw:
        """Make the value; a trace lies in the folder."""
        given = [key for key in ("up", "down", "trace") if getattr(self, key) is not None]
        if given == ["trace"] and self.trace is not None:
            course = read_spot_trace(folder / self.trace, least_servers=self.least_servers)
            with form_errors(str(folder / self.trace)):
                up, down = map(StayLaw.fitted, course.stays(0, are_whole=False))
            return SiteLaw(name=name, up=up, down=down)
        if self.up is None or self.down is None or self.trace is not None:
            raise ValueError(
                f"must have up and down, or trace; got {' and '.join(given) or 'none of them'}"
            )
        return SiteLaw(name=name, up=self.up, down=self.down)


class AvailabilityForm(StrictForm):
    """Sites that come and go, by the names of domains; the others are always there."""

    sites: dict[str, _SiteForm]
    notice: _Notice = NOTICE_S["aws"]
    correlation: float = 0.0
    daily_swing: float = 0.0
    peak_h: float = 0.0

    def to_law(self, names: Mapping[str, int], folder: Path) -> SpotLaw:
        """Make the value, for the domains of a world."""
        sites = []
        for name, site in self.sites.items():
            if name not in names:
                raise ValueError(
                    f"availability.sites: must be one of {', '.join(names)}; got {name!r}"
                )
            with form_errors(f"availability.sites.{name}"):
                sites.append(site.to_law(name, folder))
        with form_errors("availability"):
            return SpotLaw(
                sites=tuple(sites),
                correlation=self.correlation,
                daily_swing=self.daily_swing,
                peak_h=self.peak_h,
                notice_s=self.notice,
            )


def availability_entry(law: SpotLaw) -> dict[str, object]:
    """Write a law as the mapping that reads back as it, to the last bit."""
    return {
        "notice": format_quantity(law.notice_s, "s", TIME_S),
        "correlation": float(law.correlation),
        "daily_swing": float(law.daily_swing),
        "peak_h": float(law.peak_h),
        "sites": {
            site.name: {"up": _stay_entry(site.up), "down": _stay_entry(site.down)}
            for site in law.sites
        },
    }


def _stay_entry(stay: StayLaw) -> dict[str, object]:
    return {
        "weight": float(stay.weight),
        "median": format_quantity(stay.median_s, "s", TIME_S),
        "sigma": float(stay.sigma),
        "other_median": format_quantity(stay.other_median_s, "s", TIME_S),
        "other_sigma": float(stay.other_sigma),
    }
