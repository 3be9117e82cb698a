"""Jobs of several operators, each a function of DataFrames; topologies name these modules."""
