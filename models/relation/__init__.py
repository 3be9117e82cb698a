"""What a plan over signed, timed records means: one definition that batch, stream and replay are held against."""
