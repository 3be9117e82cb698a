"""Everything that measures; nothing of the product imports it."""
