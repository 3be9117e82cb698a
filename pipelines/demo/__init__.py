"""The main job: history, training, serving, a live load, and what was learned from it."""
