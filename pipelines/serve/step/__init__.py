"""One state machine per job, and what goes in and out of it: samples to windows to a model's step to a forecast."""
