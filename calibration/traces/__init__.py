"""Parts of execution traces: nodes, sets of traces, their files, and which NPU is where."""
