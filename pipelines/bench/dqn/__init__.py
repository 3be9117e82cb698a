"""The DQN learner beside a peer."""
