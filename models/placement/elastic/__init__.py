"""How many instances each operator of a running job needs, and when one goes to another cluster."""
