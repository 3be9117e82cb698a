"""The core: thinking without I/O, clock or globals."""
