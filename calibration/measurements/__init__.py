"""Files of what engineers measure: links, collectives and runs, read into readings."""
