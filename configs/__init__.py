"""Values and their types: typed, frozen settings, the YAML they are read from, and job contracts."""
