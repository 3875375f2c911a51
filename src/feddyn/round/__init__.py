"""What a round is made of, the same in a simulation as in a deployment: who is active, seeds, a device's work, exact
sums, evaluation."""
