"""The forecasts that others must beat: repetitions of the past, and one regression per step ahead."""
