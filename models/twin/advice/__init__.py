"""What would help a job most: what was measured of it, the changes that may be tried, and what each gains."""
