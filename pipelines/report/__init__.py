"""What a run did: its summary and its page."""
