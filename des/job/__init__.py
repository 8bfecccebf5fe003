"""Models and the workload of one training job."""
