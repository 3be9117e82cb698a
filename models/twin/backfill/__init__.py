"""Backfills beside simulated live loads: followed, replanned, and held against who knew everything beforehand."""
