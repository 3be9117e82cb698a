"""What every forecaster is made of: series, state, residuals, scores, and how many series are followed."""
