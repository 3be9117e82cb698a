"""What becomes of a promise in the twin, where capacity, lead time and strictness are learned as in a live job."""
