"""One simulation: from files to a result, a report or a diagnosis."""
