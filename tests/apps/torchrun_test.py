"""Processes that torchrun starts, or a script that sets its variables: which engine they choose."""

import contextlib
import os
import signal
import stat
import subprocess
import time

import program
from program import ProgramTest, changed

# 250 = 7 * 32 + 26: an uneven last batch.
TRAIN = ["--model", "resnet8", "--data", "synthetic", "--synthetic-shape", "3x12x12",
         "--train-size", "250", "--test-size", "32", "--batch", "16", "--threads", "1",
         "--method", "all-reduce", "--iterations", "20", "--record-every", "1", "--lr", "0.02"]
LONG = changed(TRAIN, iterations=100000, checkpoint_every=100000, eval_every=0)
TORCH = "/usr/bin/python3"


def memory_of_jobs():
    """What ranks share; the tests' own folders begin likewise."""
    found = set()
    for folder in ("/dev/shm", "/tmp"):
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                with contextlib.suppress(OSError):
                    if (entry.name.startswith("cohort-") and
                            stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)):
                        found.add(entry.path)
    return found


class TorchrunTest(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_")):
                del self.environment[name]
        self.meeting = self.folder / "meeting"
        self.meeting.mkdir(mode=0o700)
        self.environment["XDG_RUNTIME_DIR"] = str(self.meeting)
        self.before = memory_of_jobs()

    def begin(self, rank, *arguments, size=2, port=29555, **variables):
        """A process of the job, with the variables that torchrun sets."""
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size,
                     "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                     **variables}
        return self.start_with(variables, "train", *arguments)

    def assert_nothing_left(self):
        self.assertEqual(sorted(os.listdir(self.meeting)), [])
        left = memory_of_jobs() - self.before
        still = time.monotonic() + program.patiently(3)  # another test's job may be starting just now
        while left and time.monotonic() < still:
            time.sleep(0.1)
            left &= memory_of_jobs()
        self.assertEqual(left, set())


class TheSame(TorchrunTest):
    def test_as_threads(self):
        threads = self.train("threads", *TRAIN, "--engine", "threads", "--workers", 2)
        self.finish([self.begin(rank, *TRAIN, "--name", "tcp") for rank in (1, 0)])
        self.assert_same_weights(self.folder / "runs/tcp", threads)
        records = self.metrics(self.folder / "runs/tcp", "step")
        self.assertEqual({record["rank"] for record in records}, {0, 1})
        self.assert_nothing_left()

    def test_as_torchrun_starts_it(self):
        probe = subprocess.run([TORCH, "-c", "import torch.distributed.run"], capture_output=True,
                               check=False) if os.path.exists(TORCH) else None
        if probe is None or probe.returncode != 0:
            self.skipTest("there is no torchrun")
        threads = self.train("threads", *TRAIN, "--engine", "threads", "--workers", 2)
        # What is redirected and copied is given, since torch 1.13 reads its own defaults wrongly
        # with Python 3.11 and later.
        process = subprocess.Popen(
            [TORCH, "-m", "torch.distributed.run", "--no_python", "--standalone",
             "--nproc_per_node", "2", "--monitor_interval", "0.2", "-r", "1", "-t", "2",
             "--log_dir", str(self.folder / "logs"), program.COHORT, "train", *TRAIN,
             "--name", "torchrun"],
            cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.finish([process])
        self.assert_same_weights(self.folder / "runs/torchrun", threads)
        self.assert_nothing_left()

    def test_with_threads_in_each_process(self):
        sums = [*TRAIN, "--workers", 4, "--batch", 8]
        for name in ("a", "b"):
            self.finish([self.begin(rank, *sums, "--name", name) for rank in (0, 1)])
        self.assert_same_weights(self.folder / "runs/a", self.folder / "runs/b")
        self.assertEqual({record["rank"] for record in
                          self.metrics(self.folder / "runs/a", "step")}, {0, 1, 2, 3})
        self.assert_nothing_left()

    def test_side_by_side_with_other_ports(self):
        processes = [self.begin(rank, *TRAIN, "--name", f"p{port}", port=port)
                     for rank in (0, 1) for port in (29556, 29557)]
        self.finish(processes)
        self.assert_same_weights(self.folder / "runs/p29556", self.folder / "runs/p29557")
        self.assert_nothing_left()


class Failing(TorchrunTest):
    def test_a_killed_rank_is_named_by_the_other(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                name = f"killed{victim}"
                processes = [self.begin(rank, *LONG, "--name", name) for rank in (0, 1)]
                self.wait_for_step(processes[0], self.folder / "runs" / name, 5)
                killed_at = time.monotonic()
                processes[victim].send_signal(signal.SIGKILL)
                _, err = processes[1 - victim].communicate(timeout=program.patiently(30))
                self.assertLess(time.monotonic() - killed_at, program.patiently(5))
                self.assertEqual(processes[1 - victim].returncode, 1, err)
                self.assertRegex(err, rf"rank {victim} \(process {processes[victim].pid}\) was "
                                      "killed")
                self.assert_nothing_left()

    def test_ctrl_c_saves_and_the_rest_is_exact(self):
        whole = self.train("whole", *TRAIN, "--engine", "threads", "--workers", 2)
        slow = ["--failpoints", "training.compute.rank0=sleep:50"]
        if "no failpoints" in self.cohort("train", "--failpoints", "x=crash", "--model", "none",
                                          status=2).stderr:
            self.skipTest("built without failpoints")
        processes = [self.begin(rank, *TRAIN, "--name", "r", *slow) for rank in (0, 1)]
        run = self.folder / "runs/r"
        self.wait_for_step(processes[0], run, 5)
        for process in processes:  # as the terminal does, and torchrun after it
            process.send_signal(signal.SIGINT)
        self.finish(processes, status=130, within_s=60)
        self.finish([self.begin(rank, "--resume", run) for rank in (0, 1)])
        self.assert_same_weights(run, whole)
        self.assert_nothing_left()


if __name__ == "__main__":
    program.main()
