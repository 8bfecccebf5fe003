"""Programs that engines run: a plan lowered to lists of operations, and passes over these lists."""
