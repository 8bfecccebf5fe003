"""Programs of others as references: how they are run, and what they print."""
