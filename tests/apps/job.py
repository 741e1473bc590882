"""Jobs of many processes, started as a user starts them and watched rank by rank."""

import contextlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import program
from program import ProgramTest

STEPS = 40
# Batch normalisation, momentum, an epoch that ends on the way.
TRAIN = ["train", "--model", "resnet8", "--data", "synthetic", "--synthetic-shape", "3x12x12",
         "--train-size", "400", "--test-size", "32", "--batch", "16", "--threads", "1",
         "--method", "all-reduce", "--iterations", STEPS, "--record-every", 1,
         "--checkpoint-every", 3, "--eval-every", 0]
# Steps long enough to be hit between two of them, also by a test that gets little of the cores.
SLOW = ";".join(f"training.compute.rank{rank}=sleep:60" for rank in range(4))

# Stands between the launcher and the program: notes who it is, what it says and how it ends, which
# mpirun does not tell. Ends as the program did.
WRAPPER = """#!PYTHON -BES
import os, signal, subprocess, sys
folder, command = sys.argv[1], sys.argv[2:]
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
def note(name, text):
    with open(f"{folder}/{name}.tmp{rank}", "w") as file:
        file.write(text)
    os.rename(f"{folder}/{name}.tmp{rank}", f"{folder}/{name}.{rank}")
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, lambda *_: None)  # the launcher means the program
note("job", os.environ.get("PMIX_NAMESPACE", ""))
process = subprocess.Popen(command, stderr=subprocess.PIPE)
note("pid", str(process.pid))
with open(f"{folder}/err.{rank}", "wb", buffering=0) as file:
    while chunk := os.read(process.stderr.fileno(), 65536):
        file.write(chunk)
        os.write(2, chunk)
status = process.wait()
note("status", str(status))
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if status != -9 else None
    os.kill(os.getpid(), -status)
sys.exit(status)
"""

# In the place of mpirun, for `cohort launch`: the real one, with the wrapper before the program.
MPIRUN = """#!/bin/sh
for word; do
  shift
  if [ "$word" = "PROGRAM" ]; then set -- "$@" WRAPPER FOLDER; fi
  set -- "$@" "$word"
done
exec REAL "$@"
"""


def alive(process):
    try:
        text = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


class Job:
    """Processes of one mpirun, seen through what the wrapper notes."""

    def __init__(self, test, process, folder, size):
        self.test = test
        self.process = process
        self.folder = folder
        self.size = size

    def noted(self, name, rank):
        path = self.folder / f"{name}.{rank}"
        return path.read_text() if path.exists() else ""

    def pid(self, rank):
        return int(self.noted("pid", rank))

    def signal(self, rank, number):
        os.kill(self.pid(rank), number)

    def wait_until_ended(self, ranks, within_s):
        """The statuses of these ranks, which must have ended by then."""
        deadline = time.monotonic() + program.patiently(within_s)
        while not all(self.noted("status", rank) for rank in ranks):
            if time.monotonic() > deadline:
                self.test.fail(f"not all of {ranks} ended within {within_s} s: {self.everything()}")
            time.sleep(0.02)
        return [int(self.noted("status", rank)) for rank in ranks]

    def wait_until_gone(self, ranks, within_s):
        """These ranks' processes must have ended by then, however."""
        deadline = time.monotonic() + program.patiently(within_s)
        while any(alive(self.pid(rank)) for rank in ranks):
            if time.monotonic() > deadline:
                self.test.fail(f"not all of {ranks} ended within {within_s} s: {self.everything()}")
            time.sleep(0.02)

    def finish(self, within_s=10):
        """Waits for the launcher; returns its status."""
        try:
            self.out, self.err = self.process.communicate(timeout=program.patiently(within_s))
        except subprocess.TimeoutExpired:
            self.test.fail(f"the launcher has not ended within {within_s} s: {self.everything()}")
        return self.process.returncode

    def everything(self):
        return {path.name: path.read_text()[-800:] for path in sorted(self.folder.iterdir())}

    def assert_nothing_left(self):
        started = [rank for rank in range(self.size) if self.noted("pid", rank)]
        self.wait_until_gone(started, 3)  # the launcher kills them and ends
        left = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
        jobs = {f".{int(self.noted('job', rank)):x}." for rank in range(self.size)
                if self.noted("job", rank)}
        self.test.assertEqual([name for name in left if any(job in name for job in jobs)], [])
        # What ranks share; the tests' own folders begin likewise.
        own = [name for name in left if name.startswith("cohort-")
               and stat.S_ISREG(os.stat(f"/dev/shm/{name}").st_mode)]
        still = time.monotonic() + program.patiently(2)  # another test's job may be starting just now
        while own and time.monotonic() < still:
            time.sleep(0.1)
            own = [name for name in own if os.path.exists(f"/dev/shm/{name}")]
        self.test.assertEqual(own, [])


class JobTest(ProgramTest):
    has_failpoints = None  # not known yet

    def setUp(self):
        super().setUp()
        self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.wrapper = self.script("wrapper", WRAPPER.replace("PYTHON", sys.executable))
        self.jobs = 0

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def notes(self):
        self.jobs += 1
        folder = self.folder / f"job{self.jobs}"
        folder.mkdir()
        return folder

    def begin(self, launcher, *arguments, size=2, parts=None):
        """Starts `cohort ARGUMENTS` by mpirun, `cohort launch`, or as threads of one process.
        `parts`: arguments of each process, instead."""
        folder = self.notes()
        if launcher == "mpirun":
            if shutil.which("mpirun") is None:
                self.skipTest("there is no mpirun")
            command = ["mpirun", "--oversubscribe", "--bind-to", "none"]
            for index, part in enumerate(parts or [arguments]):
                command += [":"] if index else []
                command += ["-n", 1 if parts else size, self.wrapper, folder, program.COHORT, *part]
        elif launcher == "launch":
            real = shutil.which("mpirun")
            if real is None:
                self.skipTest("there is no mpirun")
            text = MPIRUN
            for word, value in (("PROGRAM", program.COHORT), ("WRAPPER", self.wrapper),
                                ("FOLDER", folder), ("REAL", real)):
                text = text.replace(word, str(value))
            self.script("bin/mpirun", text)
            self.environment["PATH"] = f"{self.folder}/bin:{os.environ['PATH']}"
            command = [program.COHORT, "launch", "-n", size, "--oversubscribe", "--", *arguments]
        else:
            command = [self.wrapper, folder, program.COHORT, *arguments, "--engine", "threads",
                       "--workers", size]
            size = 1
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder, text=True,
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        job = Job(self, process, folder, size)
        self.addCleanup(self.put_away, job)
        return job

    def put_away(self, job):
        if job.process.poll() is None:
            job.process.kill()
        job.process.communicate()
        for rank in range(job.size):
            if job.noted("pid", rank) and not job.noted("status", rank):
                with contextlib.suppress(OSError):
                    os.kill(job.pid(rank), signal.SIGKILL)

    def need_failpoints(self):
        if JobTest.has_failpoints is None:
            asked = self.cohort("train", "--failpoints", "x=crash", "--model", "none", status=2)
            JobTest.has_failpoints = "no failpoints" not in asked.stderr
        if not JobTest.has_failpoints:
            self.skipTest("built without failpoints")

    def train_slowly(self, launcher, name, *arguments, size=2, until=8, failpoints=SLOW):
        """A job that has taken so many steps and saved some of them."""
        self.need_failpoints()
        job = self.begin(launcher, *TRAIN, "--name", name, "--failpoints", failpoints, *arguments,
                         size=size)
        if until:
            self.wait_for_step(job.process, self.folder / "runs" / name, until)
        return job

    def resume(self, launcher, name, *arguments, size=2):
        job = self.begin(launcher, "train", "--resume", self.folder / "runs" / name, *arguments,
                         size=size)
        self.assertEqual(job.finish(60), 0, job.err)
        job.assert_nothing_left()
        return job

    def assert_resumes_exactly(self, launcher, name):
        self.resume(launcher, name)
        self.assert_exact(name, "threads" if launcher == "threads" else "mpi")

    def assert_exact(self, name, engine="mpi"):
        """The run ended with the bits of one that nothing happened to."""
        run = self.folder / "runs" / name
        self.assertEqual(self.latest(run).name, f"step-{STEPS:09}")
        for file, expected in reference(engine).items():
            self.assertEqual((self.latest(run) / file).read_bytes(), expected, file)


references = {}


def reference(engine):
    """The files of the same run that nothing happened to."""
    if engine not in references:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cohort-"))
        command = [program.COHORT, *TRAIN, "--name", "reference"]
        if engine == "mpi":
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", 2, *command]
        else:
            command += ["--engine", "threads", "--workers", 2]
        environment = {**program.clean_environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        try:
            subprocess.run([str(word) for word in command], cwd=folder, check=True, timeout=60,
                           env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            saved = folder / "runs" / "reference" / "checkpoints" / f"step-{STEPS:09}"
            references[engine] = {name: (saved / name).read_bytes()
                                  for name in ("model.safetensors", "state.safetensors")}
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return references[engine]
