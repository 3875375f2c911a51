"""`python -m feddyn`, which is also how torchrun starts it: torchrun --nproc-per-node 4 -m feddyn run my.toml."""

from feddyn.cli import main

main()
