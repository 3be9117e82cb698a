"""Where others put instances: what schemes of this package are held against."""
