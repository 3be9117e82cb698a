"""A drawn plan of faults, carried out on processes and on a way to a broker that the bench itself has started."""
