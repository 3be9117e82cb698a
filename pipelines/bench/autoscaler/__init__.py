"""What the autoscaler costs beside the job."""
