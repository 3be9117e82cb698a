"""Figures: written by the command that measured, rendered into the pages, listed once they are older than the code."""
