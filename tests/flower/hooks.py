"""An app for a deployment whose processes kill themselves where they are told to: files in the server's and the sites'
folders name the points."""

SERVER = '''
"""A server that kills itself before or after it writes its ledger."""
import os
import signal
from pathlib import Path

from feddyn.flower import ledger
from feddyn.settings.deploying import server_app

write = ledger.write


def hooked(directory, found):
    fault = directory.parent / "fault"
    when, _, round = fault.read_text().partition(" ") if fault.exists() else ("", "", "")
    if int(round or -1) != found.round or found.recorded == 0:
        return write(directory, found)
    fault.unlink()
    if when == "after":
        write(directory, found)
    os.kill(os.getpid(), signal.SIGKILL)


ledger.write = hooked
app = server_app(Path(__file__).parent / "setting.toml")
'''

CLIENT = '''
"""A site that fails, or kills itself or its SuperNode, at points of its work; and that loses replies."""
import os
import random
import signal
from pathlib import Path

from feddyn.flower import store
from feddyn.flower.store import DeviceStore
from feddyn.settings.deploying import client_app

write, settle = DeviceStore.write, DeviceStore.settle


def point(root, name):
    fault = root.parent / "fault"
    if not fault.exists() or not fault.read_text().startswith(name):
        return
    whom = fault.read_text().split()[-1]
    fault.unlink()
    if whom == "supernode":
        for line in (root.parent / "pid").read_text().split():
            os.kill(int(line), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def hooked_settle(self, counted):
    state = settle(self, counted)
    point(self.root, "settled")
    return state


def hooked_write(self, ticket, base, vectors):
    point(self.root, "trained")
    write(self, ticket, base, vectors)
    point(self.root, "written")
    if base and (self.root.parent / "lossy").exists() and random.Random(ticket[:16] + self.site).random() < 0.3:
        raise RuntimeError("the reply is lost on the way")


DeviceStore.write, DeviceStore.settle = hooked_write, hooked_settle
app = client_app(Path(__file__).parent / "setting.toml")
'''
