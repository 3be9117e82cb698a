"""The read model: messages in, what the pages show of every job out; no broker, no clock, nothing else is asked."""
