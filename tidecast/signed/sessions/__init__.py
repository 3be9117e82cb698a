"""Session windows: what a key did without a pause, cut anew whenever a record comes or is retracted."""
