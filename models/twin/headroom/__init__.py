"""What a policy that sets the parameters of `mpc` could gain."""
