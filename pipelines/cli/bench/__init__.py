"""`tidecast bench NAME`: what is measured, a command each."""
