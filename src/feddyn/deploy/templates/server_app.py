"""What the server runs."""

from pathlib import Path

from feddyn.settings.deploying import server_app

app = server_app(Path(__file__).parent / "setting.toml")
