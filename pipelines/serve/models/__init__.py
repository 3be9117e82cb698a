"""From the registry to models that are ready to serve, prepared beside the serving thread."""
