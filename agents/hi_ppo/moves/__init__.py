"""The move policy: when a change of plan pays for itself."""
