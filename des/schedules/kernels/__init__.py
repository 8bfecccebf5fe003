"""List scheduling in compiled code."""
