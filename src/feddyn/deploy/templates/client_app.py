"""What every site runs.

A site's samples are those of the setting's device number `partition-id`, from the site's configuration. For data of
the site's own, write a function that is given this configuration and returns a feddyn.Population of one device:

    def load(site):
        x, y = my_own_reader(site["data"])
        return feddyn.Population.from_arrays(x, y, device=[0] * len(y))

    app = client_app(Path(__file__).parent / "setting.toml", load)
"""

from pathlib import Path

from feddyn.settings.deploying import client_app

app = client_app(Path(__file__).parent / "setting.toml")
