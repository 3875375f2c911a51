# Sourced by the other scripts: Flower neither reports its use, nor looks for updates, nor installs anything.
export FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
export FLWR_HOME="$$here/flwr" OMP_NUM_THREADS="$${OMP_NUM_THREADS:-1}"
