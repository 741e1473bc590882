"""Runs the program under test, each test in a folder of its own.

    python3 cli_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import array
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

COHORT = ""
SOURCE = pathlib.Path()

# How much longer than on a quiet machine things may take. With 1 the tests hold the program to the
# times that its documents promise.
PATIENCE = float(os.environ.get("COHORT_TEST_PATIENCE", "10"))


def patiently(seconds):
    return seconds * PATIENCE


def clean_environment():
    """Without what changes the program's arithmetic or where it looks for files."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("OPENBLAS", "DNNL", "COHORT", "XDG_CACHE"))}


# Small enough that starting the program takes longer than training.
TINY = ["--model", "mlp-100", "--data", "synthetic", "--synthetic-shape", "1x12x12",
        "--train-size", "256", "--test-size", "64", "--batch", "32", "--lr", "0.02"]
# Batch normalisation, and steps slow enough to be interrupted between them.
SLOWER = ["--model", "resnet8", "--data", "synthetic", "--synthetic-shape", "3x12x12",
          "--train-size", "200", "--test-size", "32", "--batch", "32", "--threads", "1"]


def changed(arguments, **settings):
    """The same flags with other values: changed(TINY, lr="1")."""
    flags = dict(zip(arguments[::2], arguments[1::2]))
    flags.update({"--" + name.replace("_", "-"): str(value) for name, value in settings.items()})
    return [part for flag in flags.items() for part in flag]


def main():
    global COHORT, SOURCE
    COHORT = os.path.abspath(sys.argv[1])
    SOURCE = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(module="__main__", argv=sys.argv[:1] + sys.argv[3:], verbosity=2)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        # In memory where possible: a run syncs its files often, and the disk may be busy.
        shared = "/dev/shm"
        parent = shared if os.access(shared, os.W_OK) else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cohort-", dir=parent))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = clean_environment()
        self.environment["HOME"] = str(self.folder)

    def start(self, *arguments, **options):
        process = subprocess.Popen([COHORT, *map(str, arguments)], cwd=self.folder, text=True,
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_with(self, variables, *arguments, **options):
        """As start(), with more in the environment."""
        environment = {**self.environment, **{name: str(value) for name, value in variables.items()}}
        own, self.environment = self.environment, environment
        try:
            return self.start(*arguments, **options)
        finally:
            self.environment = own

    def finish(self, processes, status=0, within_s=60):
        """Waits for all; returns what each wrote to its error stream."""
        errors = []
        for process in processes:
            out, err = process.communicate(timeout=patiently(within_s))
            self.assertEqual(process.returncode, status, f"{out}\n{err}")
            errors.append(err)
        return errors

    def cohort(self, *arguments, status=0, **options):
        """Runs to the end; its exit status must be `status`."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=patiently(60))
        result = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        self.assertEqual(result.returncode, status, f"{arguments}\n{out}\n{err}")
        return result

    def train(self, name, *arguments, status=0, **options):
        """Trains as run `name`; returns its folder."""
        self.last = self.cohort("train", "--name", name, *arguments, status=status, **options)
        return self.folder / "runs" / name

    def latest(self, run):
        return run / "checkpoints" / (run / "checkpoints" / "latest").read_text().split()[0]

    def assert_same_weights(self, run, other):
        for file in ("model.safetensors", "state.safetensors"):
            self.assertEqual((self.latest(run) / file).read_bytes(),
                             (self.latest(other) / file).read_bytes(), file)

    def weights(self, run):
        return {name: array.array("f", data)
                for name, (kind, _, data) in
                read_safetensors(self.latest(run) / "model.safetensors").items() if kind == "F32"}

    def assert_near(self, run, other, tolerance=1e-5):
        ours, theirs = self.weights(run), self.weights(other)
        self.assertEqual(ours.keys(), theirs.keys())
        furthest = max(abs(a - b) for name in ours for a, b in zip(ours[name], theirs[name]))
        self.assertLess(furthest, tolerance)

    def wait_for_step(self, process, run, step, timeout_s=60):
        """Until metrics.jsonl has a record of that step, or the program ends."""
        deadline = time.monotonic() + patiently(timeout_s)
        while time.monotonic() < deadline and process.poll() is None:
            if any(record["step"] >= step for record in self.metrics(run, "step", torn=True)):
                return
            time.sleep(0.005)
        if process.poll() is not None:
            self.fail(f"ended by itself: {process.communicate()}")
        self.fail(f"no step {step} in {timeout_s} s")

    def metrics(self, run, kind, torn=False):
        path = run / "metrics.jsonl"
        if torn and not path.exists():
            return []
        text = path.read_text()
        lines = text[:text.rfind("\n") + 1].splitlines() if torn else text.splitlines()
        records = [json.loads(line) for line in lines]
        return [record for record in records if record["type"] == kind]


def read_safetensors(path):
    """Name -> (dtype, shape, bytes), written from the format's description."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}
