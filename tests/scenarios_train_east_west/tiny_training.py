"""The main command with Hi-PPO, in seconds."""

TINY = [
    *("--quick", "--model", "llama2_7b", "--num-layers", "8", "--microbatches", "4"),
    *("--updates", "12", "--move-updates", "2", "--num-epochs", "4", "--validation-draws", "1"),
    *("--calibration", "none"),
]
"""12 updates of the placement policy, with checkpoints of the 10th and the last, and 2 of moves."""
