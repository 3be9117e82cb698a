"""Pure functions from an observation and a forecast to a decision."""
