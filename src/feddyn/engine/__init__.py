"""One round of a federation: who is active, who trains whom, exact sums, device states, evaluation."""
