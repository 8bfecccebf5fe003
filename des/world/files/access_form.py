"""Keys of a domain for its way to other sites: site, uplink, downlink, caps."""

from des.base.strict_forms import StrictForm
from des.world.access import Access
from des.world.files.quantity_fields import Bandwidth


class AccessForm(StrictForm):
    """Limits of a site's links, shared by both forms of topology files.

    ``uplink`` alone holds each way; ``downlink: null`` then leaves the way in open.
    """

    site: str | None = None
    uplink: Bandwidth | None = None
    downlink: Bandwidth | None = None
    flow_cap: Bandwidth | None = None
    host_cap: Bandwidth | None = None

    def to_access(self) -> Access:
        """Make the value."""
        is_same = "downlink" not in self.model_fields_set
        return Access(
            uplink_bytes_per_s=self.uplink,
            downlink_bytes_per_s=self.uplink if is_same else self.downlink,
            flow_cap_bytes_per_s=self.flow_cap,
            host_cap_bytes_per_s=self.host_cap,
        )
