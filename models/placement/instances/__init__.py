"""Operators that run as several instances each, and the nodes on which these lie."""
