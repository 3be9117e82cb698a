"""The lake: Delta tables, and loads read from them."""
