"""Every part of a running site killed, paused, started again and robbed of its state, each in a session of its own."""
