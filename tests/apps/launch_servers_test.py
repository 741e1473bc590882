"""`cohort launch --servers`: servers and workers from one command, also when some of them die."""

import os
import pathlib
import re
import signal
import time

import program
from program import changed
from workers_test import PLAIN, WorkersTest

ITERATIONS = 1500


class LaunchServers(WorkersTest):
    def begun(self, mode, servers=2):
        """A job that has been started: itself, and the ids of its servers and workers in turn."""
        settings = changed(PLAIN, iterations=ITERATIONS, batch=16)
        job = self.start("launch", "--servers", servers, "-n", 2, "--state-dir",
                         self.folder / "state", "--", "train", *settings, "--method",
                         "parameter-server", "--server-mode", mode, "--quiet", "--name", "job")
        children = []
        while len(children) < servers + 2 and job.poll() is None:
            text = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
            children = list(map(int, text.split()))
        return job, children

    def launched(self, mode, servers=2):
        """The same, with every worker under way."""
        job, children = self.begun(mode, servers)
        self.wait_for_step(job, self.folder / "runs/job", 100)
        self.wait_for_step(job, self.folder / "runs/job-worker1", 10)
        return job, children

    def ended(self, job, children, status=0):
        """What it said, and updates and gradients as each of the servers counted them."""
        out, err = job.communicate(timeout=program.patiently(60))
        self.assertEqual(job.returncode, status, out + err)
        self.assertNotIn("LOST", err)
        self.assertEqual([child for child in children if os.path.exists(f"/proc/{child}")], [])
        counts = re.findall(r"([\d,]+) updates from ([\d,]+) gradients", err)
        return err, [tuple(int(number.replace(",", "")) for number in pair) for pair in counts]

    def test_a_killed_server_is_started_again_and_nothing_is_lost(self):
        for mode, updates in (("async", 2 * ITERATIONS), ("sync", ITERATIONS)):
            with self.subTest(mode):
                job, children = self.launched(mode)
                os.kill(children[0], signal.SIGKILL)
                said, counts = self.ended(job, children)
                self.assertIn("server 0 was ended by signal 9 (Killed); it is started again "
                              "(1 of 3)", said)
                self.assertEqual(counts, 2 * [(updates, 2 * ITERATIONS)])
                for name in ("runs", "state"):
                    (self.folder / name).rename(self.folder / f"{name}-{time.monotonic_ns()}")

    def test_keys_that_a_killed_launcher_left_go_at_the_next_start(self):
        self.environment["TMPDIR"] = str(self.folder)
        left = lambda: [path.name for path in self.folder.glob("cohort-job-*")]
        job, children = self.launched("async", servers=1)
        job.kill()
        job.wait()
        [before] = left()
        deadline = time.monotonic() + program.patiently(20)
        while any(os.path.exists(f"/proc/{child}") for child in children):
            self.assertLess(time.monotonic(), deadline, "its processes go on")
            time.sleep(0.02)
        settings = changed(PLAIN, iterations=20, batch=16)
        self.cohort("launch", "--servers", 1, "-n", 1, "--", "train", *settings, "--method",
                    "parameter-server", "--quiet", "--name", "next")
        self.assertEqual(left(), [])

    def test_a_killed_worker_does_not_stop_the_other(self):
        job, children = self.launched("async", servers=1)
        os.kill(children[2], signal.SIGKILL)
        said, counts = self.ended(job, children, status=1)
        self.assertIn("worker 1 was ended by signal 9 (Killed); the others go on", said)
        [(updates, gradients)] = counts
        self.assertEqual(updates, gradients)
        self.assertGreaterEqual(gradients, ITERATIONS)
        self.assertLess(gradients, 2 * ITERATIONS)

    def test_a_worker_killed_before_the_server_knew_it_is_not_waited_for(self):
        job, children = self.begun("async", servers=1)
        os.kill(children[2], signal.SIGKILL)
        said, counts = self.ended(job, children, status=1)
        self.assertIn("worker 1 was ended by signal 9 (Killed); the others go on", said)
        self.assertEqual(counts, [(ITERATIONS, ITERATIONS)])

    def test_who_leaves_in_good_order_is_not_reported_lost(self):
        job, children = self.launched("async", servers=1)
        said, counts = self.ended(job, children)
        self.assertEqual(counts, [(2 * ITERATIONS, 2 * ITERATIONS)])
        self.assertNotIn("lost worker", said)


if __name__ == "__main__":
    program.main()
