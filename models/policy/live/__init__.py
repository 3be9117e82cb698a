"""One live job: what is remembered, what is seen, what is decided and why, and the audit of a log."""
