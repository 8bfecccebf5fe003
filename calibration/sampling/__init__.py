"""What placements are drawn from, and how."""
