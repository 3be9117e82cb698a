"""Figures: their form, what each command is to reach, written by the command that measured, and their age."""
