"""What a job's latency and load will be, learned from its rates and placements. Pa-Stream paper, "LSTM"."""
