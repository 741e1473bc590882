"""`cohort launch --servers`: servers and workers from one command, also when some of them die."""

import os
import re
import signal
import time

import program
from program import changed
from workers_test import PLAIN, WorkersTest


def children(process):
    """Command lines of a process's children by their ids."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{entry}/cmdline", encoding="utf-8") as file:
                command = file.read().replace("\0", " ")
        except OSError:
            continue
        if parent == process.pid:
            found[int(entry)] = command
    return found


class LaunchServers(WorkersTest):
    ITERATIONS = 1500

    def launched(self, mode):
        settings = changed(PLAIN, iterations=self.ITERATIONS)
        job = self.start("launch", "--servers", 1, "-n", 2, "--state-dir", self.folder / "state",
                         "--", "train", *settings, "--batch", 16, "--method", "parameter-server",
                         "--server-mode", mode, "--quiet", "--name", "job")
        run = self.folder / "runs" / "job"
        self.wait_for_step(job, run, 100)
        return job

    def kill_last(self, job, word):
        """The process with this word in its command that was started last."""
        victims = [pid for pid, command in children(job).items() if f" {word} " in command]
        self.assertTrue(victims, children(job))
        os.kill(max(victims), signal.SIGKILL)

    def counted(self, job, status=0):
        """Updates and gradients, as the server said at its end."""
        out, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, status, out + err)
        self.assertNotIn("LOST", err)
        self.assertNotIn("without a goodbye", err.split("is done")[-1])
        found = re.search(r"([\d,]+) updates from ([\d,]+) gradients", err)
        return tuple(int(number.replace(",", "")) for number in found.groups())

    def test_a_killed_server_is_started_again_and_nothing_is_lost(self):
        for mode, updates in (("async", 2 * self.ITERATIONS), ("sync", self.ITERATIONS)):
            with self.subTest(mode):
                job = self.launched(mode)
                self.kill_last(job, "serve-parameters")
                self.assertEqual(self.counted(job), (updates, 2 * self.ITERATIONS))
                self.remove_runs()

    def remove_runs(self):
        for name in ("runs", "state"):
            (self.folder / name).rename(self.folder / f"{name}-{time.monotonic_ns()}")

    def test_a_killed_worker_does_not_stop_the_other(self):
        job = self.launched("async")
        self.kill_last(job, "train")
        updates, gradients = self.counted(job, status=1)
        self.assertEqual(updates, gradients)
        self.assertGreaterEqual(gradients, self.ITERATIONS)
        self.assertLess(gradients, 2 * self.ITERATIONS)


if __name__ == "__main__":
    program.main()
