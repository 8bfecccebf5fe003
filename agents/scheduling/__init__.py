"""The Gymnasium scheduling task: plans of any family that persist, on moving links with loads."""
