"""What somebody who knows the load could do: the clairvoyant plan, and a bound that nobody goes below."""
