"""Transfer from the loads of other jobs to a job with a short history: reports."""
