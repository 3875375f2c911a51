"""Networks, and any nn.Module as a function of one flat vector."""
