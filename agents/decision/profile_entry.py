"""Layer profiles of a world as plain values, and back."""

from collections.abc import Mapping
from dataclasses import replace

from des import Topology
from des.base.strict_forms import StrictForm
from des.world.files.profile_files import PLACE_COLUMNS, TIME_COLUMNS, profile_point
from des.world.layer_profiles import LayerProfile, ProfilePoint


class ProfileForm(StrictForm):
    """A layer profile; its points have the columns of profile files."""

    name: str
    gpu: str
    includes_exchanges: bool
    extrapolates: bool
    points: list[dict[str, object]]


def without_profiles(topology: Topology) -> Topology:
    """Return the world with layer times from shapes in place of profiles."""
    domains = tuple(replace(one, profile=None) for one in topology.domains)
    return replace(topology, domains=domains)


def with_profile_forms(topology: Topology, forms: Mapping[str, ProfileForm]) -> Topology:
    """Return the world with profiles in the domains of these names.

    Raises
    ------
    ValueError
        If there is no such domain, or a point is wrong.
    """
    for name in forms:
        if name not in topology.index_of:
            raise ValueError(
                f"profiles: must be of domains {', '.join(topology.index_of)}; got {name!r}"
            )
    domains = tuple(
        replace(one, profile=_profile_of(one.name, forms[one.name])) if one.name in forms else one
        for one in topology.domains
    )
    return replace(topology, domains=domains)


def profile_entries(topology: Topology) -> dict[str, object]:
    """Profiles by the names of their domains, of which `with_profile_forms` makes equal ones."""
    return {
        one.name: {
            "name": one.profile.name,
            "gpu": one.profile.gpu,
            "includes_exchanges": one.profile.includes_exchanges,
            "extrapolates": one.profile.extrapolates,
            "points": [_point_entry(point) for point in one.profile.points],
        }
        for one in topology.domains
        if one.profile is not None
    }


def _point_entry(point: ProfilePoint) -> dict[str, object]:
    columns = {name: getattr(point, name) for name in (*PLACE_COLUMNS, *TIME_COLUMNS)}
    return {"layer": point.layer.kind, **point.layer.sizes, **columns}


def _profile_of(owner: str, form: ProfileForm) -> LayerProfile:
    return LayerProfile(
        name=form.name,
        gpu=form.gpu,
        points=tuple(
            profile_point(f"profiles.{owner}.points[{place}]", row)
            for place, row in enumerate(form.points)
        ),
        includes_exchanges=form.includes_exchanges,
        extrapolates=form.extrapolates,
    )
