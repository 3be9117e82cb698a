"""A DQN agent that scales streaming jobs, trained in the twin."""
