"""How methods are written, by the names that records have of them; known without torch."""

LABELS = {
    "feddyn": "FedDyn",
    "feddynm": "FedDynM",
    "scaffold": "SCAFFOLD",
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "fedsplit": "FedSplit",
    "feddr": "FedDR",
    "feddc": "FedDC",
    "adabest": "AdaBest",
    "fedacg": "FedACG",
    "fedavgm": "FedAvgM",
    "fedadam": "FedAdam",
    "fedyogi": "FedYogi",
}
