"""The trained network as a policy: what it observes, how it may move, what it is paid."""
