"""What the agent costs the job it is attached to."""
