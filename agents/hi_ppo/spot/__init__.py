"""Hi-PPO on sites that come and go: a pointer over sets of sites."""
