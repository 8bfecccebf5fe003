"""Compiled code of the measurements."""
