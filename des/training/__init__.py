"""One training job over time: epochs, background load and changes of plan."""
