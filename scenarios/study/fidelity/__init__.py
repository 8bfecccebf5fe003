"""The same placements at every level of detail: what each level costs and changes."""
