"""The whole ring once: history, training, serving, a live load, and what was learned from it."""
