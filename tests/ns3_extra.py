"""Whether the extra ``ns3`` is installed, for tests that need it or its absence."""

from calibration import ReferenceRunError
from calibration.packet.process import ns3_version


def is_ns3_installed() -> bool:
    """Return whether ns-3 is installed and reports its version."""
    try:
        ns3_version()
    except ReferenceRunError:
        return False
    return True
