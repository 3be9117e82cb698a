"""Policies judged on loads in the twin: tables, pages, and where a forecast is worth something."""
