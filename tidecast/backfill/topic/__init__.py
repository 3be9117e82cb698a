"""A range counted again for a compacted topic: kept in files, compared with what is there, sent where it differs."""
