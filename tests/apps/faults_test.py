"""Jobs of many processes in which something goes wrong: real processes, really killed and stopped.

Whatever happens to one rank, the others end soon, with status 1 and a message that names the rank,
its step and what it was doing; the last checkpoint resumes; nothing is left behind.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import program
from program import ProgramTest, changed, read_safetensors
from two_hosts import two_hosts

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
        deadline = time.monotonic() + within_s
        while not all(self.noted("status", rank) for rank in ranks):
            if time.monotonic() > deadline:
                self.test.fail(f"not all of {ranks} ended within {within_s} s: {self.everything()}")
            time.sleep(0.02)
        return [int(self.noted("status", rank)) for rank in ranks]

    def wait_until_gone(self, ranks, within_s):
        """These ranks' processes must have ended by then, however."""
        deadline = time.monotonic() + within_s
        while any(alive(self.pid(rank)) for rank in ranks):
            if time.monotonic() > deadline:
                self.test.fail(f"not all of {ranks} ended within {within_s} s: {self.everything()}")
            time.sleep(0.02)

    def finish(self, within_s=10):
        """Waits for the launcher; returns its status."""
        try:
            self.out, self.err = self.process.communicate(timeout=within_s)
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
        still = time.monotonic() + 2  # another test's job may be starting just now
        while own and time.monotonic() < still:
            time.sleep(0.1)
            own = [name for name in own if os.path.exists(f"/dev/shm/{name}")]
        self.test.assertEqual(own, [])


class JobTest(ProgramTest):
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

    def train_slowly(self, launcher, name, *arguments, size=2, until=8, failpoints=SLOW):
        """A job that has taken so many steps and saved some of them."""
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
        run = self.folder / "runs" / name
        self.assertEqual(self.latest(run).name, f"step-{STEPS:09}")
        for file, expected in reference("threads" if launcher == "threads" else "mpi").items():
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
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
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


class FaultsOfOneRank(JobTest):
    def assert_names(self, text, what):
        self.assertRegex(text, what + r".*\bat step \d+, \w+")

    def test_a_killed_rank_ends_the_others(self):
        for launcher in ("mpirun", "launch"):
            with self.subTest(launcher):
                job = self.train_slowly(launcher, launcher)
                job.signal(1, signal.SIGKILL)
                self.assertEqual(job.wait_until_ended([0], 5), [1])
                self.assertNotEqual(job.finish(), 0)
                self.assertIn("was killed", job.noted("err", 0))
                self.assert_names(job.err, r"rank 1 \(process \d+\)")
                job.assert_nothing_left()
                self.assert_resumes_exactly(launcher, launcher)

    def test_the_first_rank_may_be_the_one_that_is_killed(self):
        job = self.train_slowly("mpirun", "a", size=3)
        job.signal(0, signal.SIGKILL)
        self.assertEqual(job.wait_until_ended([1, 2], 5), [1, 1])
        self.assertNotEqual(job.finish(), 0)
        for rank in (1, 2):
            self.assert_names(job.noted("err", rank), r"rank 0 \(process \d+\) was killed")
        job.assert_nothing_left()
        self.resume("mpirun", "a", size=3)

    def test_a_stopped_rank_ends_the_others(self):
        launchers = ("mpirun", "launch")
        jobs = [self.train_slowly(launcher, launcher, until=0) for launcher in launchers]
        for job, launcher in zip(jobs, launchers):
            self.wait_for_step(job.process, self.folder / "runs" / launcher, 8)
            job.signal(1, signal.SIGSTOP)
        deadline = time.monotonic() + 10
        for job in jobs:
            self.assertEqual(job.wait_until_ended([0], deadline - time.monotonic()), [1])
        for job, launcher in zip(jobs, launchers):
            self.assertEqual(job.finish(), 1)
            self.assert_names(job.noted("err", 0), r"rank 1 \(process \d+\) has not answered")
            job.assert_nothing_left()
        self.assert_resumes_exactly("mpirun", "mpirun")

    def test_a_rank_that_throws_ends_the_others(self):
        for launcher in ("mpirun", "launch", "threads"):
            with self.subTest(launcher):
                job = self.train_slowly(
                    launcher, launcher, until=0,
                    failpoints="training.compute.rank1=error@8;training.load.rank0=sleep:20")
                self.wait_for_step(job.process, self.folder / "runs" / launcher, 6)
                ranks = list(range(job.size))
                self.assertEqual(job.wait_until_ended(ranks, 5), [1] * job.size)
                self.assertEqual(job.finish(), 1)
                for rank in ranks:
                    self.assertIn("injected", job.noted("err", rank))
                self.assertRegex(job.noted("err", 0),
                                 "rank 1 failed at step 7, computing gradients: .*injected")
                job.assert_nothing_left()
                self.assert_resumes_exactly(launcher, launcher)

    def test_a_rank_that_is_alive_but_does_not_come_is_given_up(self):
        for launcher in ("mpirun", "threads"):
            with self.subTest(launcher):
                job = self.train_slowly(launcher, launcher, "--peer-timeout", 2, until=0,
                                        failpoints="training.load.rank1=sleep:9000@8")
                self.wait_for_step(job.process, self.folder / "runs" / launcher, 6)
                if launcher == "mpirun":
                    self.assertEqual(job.wait_until_ended([0], 5), [1])
                self.assertEqual(job.finish(15), 1)
                self.assertRegex(job.noted("err", 0), r"rank 1.* has not come to .*"
                                                      r"at step 7, loading data")
                job.assert_nothing_left()

    def test_a_run_whose_launcher_is_killed_ends(self):
        job = self.train_slowly("launch", "a")
        job.process.kill()
        self.assertEqual(len(job.wait_until_ended([0, 1], 10)), 2)
        job.process.communicate()
        deadline = time.monotonic() + 5
        while any(alive(job.pid(rank)) for rank in (0, 1)) and time.monotonic() < deadline:
            time.sleep(0.05)
        job.assert_nothing_left()
        self.assert_resumes_exactly("launch", "a")


class Interruptions(JobTest):
    def test_ctrl_c_on_launch_saves_and_ends(self):
        job = self.train_slowly("launch", "a")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(15), 130, job.err)
        self.assertEqual(job.wait_until_ended([0, 1], 1), [130, 130])
        run = self.folder / "runs" / "a"
        self.assertEqual(json.loads((run / "summary.json").read_text())["reason"], "interrupted")
        self.assertLess(self.latest(run).name, f"step-{STEPS:09}")
        self.assertIn("cohort train --resume", job.err)
        job.assert_nothing_left()
        self.assert_resumes_exactly("launch", "a")

    def test_mpirun_that_is_told_to_end_leaves_a_run_that_resumes(self):
        job = self.train_slowly("mpirun", "a")
        job.process.send_signal(signal.SIGTERM)
        job.finish(15)
        self.assertEqual(job.wait_until_ended([0, 1], 5), [130, 130])
        run = self.folder / "runs" / "a"
        self.assertEqual(json.loads((run / "summary.json").read_text())["reason"], "interrupted")
        job.assert_nothing_left()
        self.assert_resumes_exactly("mpirun", "a")


class DifferentStarts(JobTest):
    def refused(self, first, second, *said, statuses=(1, 2)):
        start = time.monotonic()
        job = self.begin("mpirun", parts=[first, second])
        ended = job.wait_until_ended([0, 1], 15)
        job.finish()
        self.assertLess(time.monotonic() - start, 20)
        for status in ended:
            self.assertIn(status, statuses, job.everything())
        for text in said:
            self.assertIn(text, job.err)
        self.assertFalse((self.folder / "runs").exists(), "a run directory was left")
        job.assert_nothing_left()
        return job

    def test_other_settings_are_named(self):
        self.refused([*TRAIN, "--lr", "0.1"], [*TRAIN, "--lr", "0.2"],
                     "process 1 has other settings than process 0: lr is 0.2 instead of 0.1")
        self.refused(TRAIN, ["train", *changed(TRAIN[1:], model="resnet20")],
                     'process 1 has other settings than process 0: model is "resnet20"')
        self.refused(TRAIN, ["train", *changed(TRAIN[1:], train_size=300)],
                     "train-size is 300 instead of 400")

    def test_a_process_that_refuses_its_own_settings_ends_the_other(self):
        for wrong in ({"model": "resnet9"}, {"device": "cuda:9"}, {"method": "local"},
                      {"batch": 0}):
            with self.subTest(wrong):
                # mpirun may end the other before that has joined the job.
                job = self.refused(TRAIN, ["train", *changed(TRAIN[1:], **wrong)],
                                   statuses=(1, 2, -signal.SIGTERM))
                self.assertEqual(job.noted("status", 1), "2", job.everything())
                self.assertIn(str(list(wrong.values())[0]), job.err)

    def test_other_data_are_named(self):
        folders = []
        for index, samples in enumerate((60, 59)):
            folder = self.folder / f"data{index}"
            folder.mkdir()
            for split, count in (("train", samples), ("t10k", 20)):
                (folder / f"{split}-images-idx3-ubyte").write_bytes(
                    struct.pack(">IIII", 2051, count, 28, 28) + bytes(784 * count))
                (folder / f"{split}-labels-idx1-ubyte").write_bytes(
                    struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count)))
            folders.append(folder)
        arguments = ["train", "--model", "lenet", "--data", "mnist", "--method", "all-reduce",
                     "--batch", "8", "--threads", "1", "--epochs", "1"]
        self.refused([*arguments, "--data-dir", folders[0]],
                     [*arguments, "--data-dir", folders[1]],
                     "process 1 has other data than process 0",
                     "number of training samples is 59 instead of 60")

    def test_processes_that_do_not_fit_the_workers_are_refused(self):
        self.refused([*TRAIN, "--workers", 3], [*TRAIN, "--workers", 3],
                     "--workers 3 cannot be shared out evenly to 2 processes")


class WhatToDo(JobTest):
    """Mistakes of the start: refused at once, with advice, and no run directory."""

    def refused(self, *arguments, said, status=2):
        start = time.monotonic()
        done = self.cohort(*map(str, arguments), status=status)
        self.assertLess(time.monotonic() - start, 10)
        for text in said:
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse((self.folder / "runs").exists(), "a run directory was left")

    def test_launch_without_mpirun(self):
        self.environment["PATH"] = str(self.folder)
        self.refused("launch", "-n", 2, "--", *TRAIN,
                     said=["mpirun is not on the PATH", "apt install openmpi-bin",
                           "cohort train --engine threads --workers 2"])

    def test_more_ranks_than_slots(self):
        if shutil.which("mpirun") is None:
            self.skipTest("there is no mpirun")
        self.refused("launch", "-n", 500, "--", *TRAIN, said=["-n 500 but", "--oversubscribe"])

    def test_gpus_that_do_not_exist(self):
        self.refused(*TRAIN, "--device", "cuda:99", said=["--device cuda:99", "--device cpu"])
        self.refused(*TRAIN, "--workers", 2, "--world", "0,77",
                     said=["--world 0,77", "GPU"])

    def test_engine_mpi_without_mpirun(self):
        self.refused(*TRAIN, "--engine", "mpi", "--workers", 4,
                     said=["mpirun -n 4", "cohort launch -n 4 --", "--engine threads"])

    def test_a_host_that_does_not_answer(self):
        if shutil.which("ssh") is None:
            self.skipTest("there is no ssh")
        with two_hosts(self.folder) as hosts:
            hosts.hosts_file.write_text(f"{hosts.addresses[1]} slots=2\n")
            start = time.monotonic()
            environment = {**self.environment, "OMPI_MCA_plm_rsh_agent": "ssh"}
            done = hosts.run([program.COHORT, "launch", "-n", "2", "--hosts", hosts.hosts_file,
                              "--agent", "ssh", "--", *TRAIN], environment)
            self.assertLess(time.monotonic() - start, 15)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"host {hosts.addresses[1]}", done.stderr)
            self.assertIn("cannot be reached", done.stderr)
            self.assertIn(f"check that `ssh {hosts.addresses[1]} true` works", done.stderr)


class TwoHostsTest(JobTest):
    """Two processes on each of two hosts: shared memory inside, MPI between."""

    def begin_on(self, hosts, *arguments):
        folder = self.notes()
        process = hosts.start(["mpirun", *hosts.mpirun_flags(), "-n", "4", self.wrapper, folder,
                               program.COHORT, *arguments], self.environment, cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        job = Job(self, process, folder, 4)
        self.addCleanup(self.put_away, job)
        return job

    def test_the_result_is_that_of_one_host(self):
        # Sums of other orders differ in their last bits, which batch normalisation would blow up.
        train = ["train", *changed(TRAIN[1:], model="mlp-100", lr="0.02", iterations=50)]
        with two_hosts(self.folder, slots=2) as hosts:
            job = self.begin_on(hosts, *train, "--name", "two")
            self.assertEqual(job.finish(60), 0, job.err)
            job.assert_nothing_left()
        job = self.begin("mpirun", *train, "--name", "one", size=4)
        self.assertEqual(job.finish(60), 0, job.err)
        two = read_safetensors(self.latest(self.folder / "runs/two") / "model.safetensors")
        one = read_safetensors(self.latest(self.folder / "runs/one") / "model.safetensors")
        self.assertEqual(two.keys(), one.keys())
        worst = 0.0
        for name, (kind, _, data) in two.items():
            if kind != "F32":
                self.assertEqual(data, one[name][2], name)
                continue
            for a, b in zip(struct.iter_unpack("<f", data), struct.iter_unpack("<f", one[name][2])):
                worst = max(worst, abs(a[0] - b[0]) / max(1.0, abs(b[0])))
        self.assertLess(worst, 1e-5)

    def start_slowly(self, hosts):
        job = self.begin_on(hosts, *TRAIN, "--name", "a", "--failpoints", SLOW)
        self.wait_for_step(job.process, self.folder / "runs" / "a", 8)
        return job

    def test_a_rank_killed_on_the_other_host_ends_all(self):
        # Rank 2 speaks for its host. Without it only rank 3 knows, until mpirun ends the rest.
        for victim, knowing, ended in ((2, [3], [0, 1]), (3, [0, 1, 2], [])):
            with self.subTest(victim), two_hosts(self.folder, slots=2) as hosts:
                shutil.rmtree(self.folder / "runs", ignore_errors=True)
                job = self.start_slowly(hosts)
                job.signal(victim, signal.SIGKILL)
                deadline = time.monotonic() + 5
                statuses = job.wait_until_ended(knowing, 5)
                self.assertEqual(statuses, [1] * len(knowing), job.everything())
                job.wait_until_gone(ended, deadline - time.monotonic())
                self.assertNotEqual(job.finish(), 0)
                self.assertRegex(job.err, rf"rank {victim}\b.*\bat step \d+, \w+")
                job.assert_nothing_left()

    def test_a_link_that_is_cut_ends_all(self):
        with two_hosts(self.folder, slots=2) as hosts:
            job = self.start_slowly(hosts)
            hosts.disconnect()
            job.wait_until_ended([0, 1, 2, 3], 15)
            self.assertEqual([job.noted("status", rank) for rank in (0, 1)], ["1", "1"],
                             job.everything())
            for rank in (0, 1):
                self.assertRegex(job.noted("err", rank),
                                 r"ranks 2 and 3 on \w+ have not answered.*\bat step \d+, \w+")
            # mpirun itself goes on waiting for its other half, for as long as TCP does.
            job.process.kill()
            job.finish()
            job.assert_nothing_left()


class WhoIsLate(JobTest):
    def late(self, failpoint):
        self.train("a", *changed(TRAIN[1:], iterations=20), "--workers", 2, "--failpoints",
                   failpoint)
        run = self.folder / "runs" / "a"
        late = {rank: [0.0, 0.0] for rank in (0, 1)}
        for record in self.metrics(run, "step"):
            late[record["rank"]][0] += record["late_seconds"]
            late[record["rank"]][1] += record["late_data_seconds"]
        return late, json.loads((run / "summary.json").read_text())

    def test_a_rank_that_waits_for_its_data(self):
        late, summary = self.late("training.load.rank1=sleep:50")
        self.assertGreater(late[1][0], 0.5)
        self.assertGreater(late[1][1], 0.7 * late[1][0])
        self.assertLess(late[0][0], 0.3 * late[1][0])
        self.assertRegex(summary["late"]["text"], "rank 1 held the others up .* by its data")

    def test_a_rank_that_computes_slowly(self):
        late, summary = self.late("training.compute.rank1=sleep:50")
        self.assertGreater(late[1][0], 0.5)
        self.assertLess(late[1][1], 0.3 * late[1][0])
        self.assertLess(late[0][0], 0.3 * late[1][0])
        self.assertRegex(summary["late"]["text"], "rank 1 held the others up .* by its computing")


if __name__ == "__main__":
    program.main()
