"""Closed forms: layer times, collectives, message times and memory."""
