"""What every site runs."""

from feddyn.flower import client_app
from flower_app.task import load, method, model, solver

app = client_app(method, solver, model, load)
