"""Events of Chrome's trace format: names of their threads, and events by thread."""

from collections import defaultdict


def names_in(metadata, what):
    """Names that metadata events give to processes or threads, by process and thread."""
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in metadata
        if event["name"] == what
    }


def by_thread(events):
    """Events of each thread, in their order."""
    threads = defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    return threads
