"""Load forecasters: regular series, networks, naive baselines, scores and the gate."""
