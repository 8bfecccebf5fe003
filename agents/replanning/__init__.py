"""Re-planning during training: tables of plan costs, pools of plans, rules and schedulers."""
