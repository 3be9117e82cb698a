"""Every reader of every topic on one corpus of records: the same verdict, and nothing that stops."""
