"""A DRA driver of somebody else's: a process that is told where it runs by its environment alone.

``python -m tests.conformance.foreign_driver DIR [KUBELET]``: what happens to its devices is told by
files in DIR; with KUBELET it needs no environment, and waits for the kubeconfig there.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from accelkit.conformance.command_driver import KUBECONFIG, KUBELET, NODE
from accelkit.conformance.setups import Setup, Site
from accelkit.conformance.stage import NODE as USUAL
from tests.conformance.toy_claims import ToyClaims

LOOK_S = 0.02


def main(state: str, kubelet: str = "") -> int:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    root = Path(kubelet or os.environ[KUBELET])
    config = Path(os.environ.get(KUBECONFIG, str(root / "kubeconfig")))
    driver = ToyClaims(Path(state))
    while not (config.exists() and (root / "plugins_registry").is_dir()):
        if ended.wait(LOOK_S):
            return 0
    driver.furnish(Site(kubeconfig=config, node=os.environ.get(NODE, USUAL)), Setup())
    driver.start(root)
    broken = Path(state, "broken")
    while not ended.is_set():
        if broken.exists() != bool(driver.hardware.sick):
            change = driver.break_device if broken.exists() else driver.mend_device
            change()
        time.sleep(LOOK_S)
    driver.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
