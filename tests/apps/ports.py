"""Ports for tests: nobody else is given one that this process was given."""

import fcntl
import os
import pathlib
import random
import socket
import tempfile

# Below those that the kernel gives to sockets without a port of their own.
RANGE = range(10000, 20000)
FOLDER = pathlib.Path(tempfile.gettempdir()) / f"cohort-test-ports-{os.getuid()}"
held = []  # a lock for each, until this process ends


def free_port():
    FOLDER.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(RANGE, 100):
        lock = open(FOLDER / str(port), "w", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        held.append(lock)
        return port
    raise OSError("no free port")
