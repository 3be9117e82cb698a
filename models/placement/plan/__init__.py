"""The cheapest placement of a topology that keeps its target."""
