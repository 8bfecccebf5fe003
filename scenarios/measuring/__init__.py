"""World of files of measurements: figures that they set, and those that stay assumed."""
