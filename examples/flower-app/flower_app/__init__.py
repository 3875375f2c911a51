"""FedDyn on Flower: the same app in Flower's simulation and in a deployment."""
