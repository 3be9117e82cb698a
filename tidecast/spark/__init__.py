"""The application as the agent sees and changes it: executors, sources, progress."""
