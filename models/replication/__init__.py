"""Rules of papers that are held to the papers' numbers by tests, and that nothing which runs uses."""
