"""What the server runs."""

from feddyn.flower import Rules, server_app
from flower_app.task import load, method, model

app = server_app(method, model, Rules(rounds=5, sites=3), test=load({"partition-id": 0}))
