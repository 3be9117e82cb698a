"""A pool beside its division: its files, its hook, and how it stands, told to whoever looks."""
