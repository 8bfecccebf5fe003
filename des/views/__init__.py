"""Gantt charts, traces, memory timelines, prices and exposure of results."""
