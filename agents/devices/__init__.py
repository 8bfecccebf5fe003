"""Decisions about GPUs of servers and sets of nodes."""
