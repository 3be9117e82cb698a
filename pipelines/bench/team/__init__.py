"""What a team has of pools: `tidecast bench team`."""
