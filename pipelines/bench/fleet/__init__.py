"""What autoscaler and serving take, and how late they are, by the number of jobs."""
