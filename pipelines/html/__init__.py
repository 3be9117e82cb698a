"""The kit that every page uses: document, plots, numbers."""
