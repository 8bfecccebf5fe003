"""Reference runtime of plans on torch.distributed, and its rehearsal on one machine."""
