"""The value map: what a forecast is worth by load and lead time, in several processes, as tables, text and page."""
