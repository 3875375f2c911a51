"""The data sets of the paper: where they come from, how they are read, and federations made of them."""
