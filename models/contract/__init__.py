"""Live records and a replay beside each other under a declared contract: admission, prices of limits, relief, trace."""
