#!/usr/bin/env python3
"""Runs mpi_messages_program under mpirun: messages between the ranks of real processes.

    mpi_messages_test.py MPI_MESSAGES_PROGRAM [unittest arguments]

Exit status 77, which CTest shows as skipped, where there is no mpirun.
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

PROGRAM = ""
LINE = re.compile(r"^rank (\d+) after ([\d.]+) s: (.*)$", re.MULTILINE)
LAYOUTS = [(1, 4), (2, 4), (4, 4), (4, 8)]  # (processes, workers)


def run(processes, *arguments):
    """Returns (exit status, {rank: (seconds, message)}, all output)."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_MCA_hwloc_base_binding_policy="none")
    done = subprocess.run(["mpirun", "-n", str(processes), PROGRAM, *map(str, arguments)],
                          env=environment, capture_output=True, text=True, timeout=120)
    lines = {int(rank): (float(seconds), text)
             for rank, seconds, text in LINE.findall(done.stdout)}
    return done.returncode, lines, done.stdout + done.stderr


class Messages(unittest.TestCase):
    def expect_well(self, processes, ranks, *arguments):
        for again in (True, False):
            status, lines, output = run(processes, *arguments)
            self.assertEqual({rank: text for rank, (_, text) in lines.items()},
                             {rank: "ok" for rank in range(ranks)}, output)
            # Once in a long while mpirun misses the farewell of a process that has ended MPI.
            if status == 0 or not again or "exiting improperly" not in output:
                break
        self.assertEqual(status, 0, output)

    def test_they_arrive_whole_and_in_order_for_every_layout(self):
        for processes, workers in LAYOUTS:
            with self.subTest(processes=processes, workers=workers):
                self.expect_well(processes, workers, "exchange", workers)

    def test_the_others_go_on_when_one_rank_closes(self):
        for processes, workers in LAYOUTS:
            with self.subTest(processes=processes, workers=workers):
                self.expect_well(processes, workers, "close", workers)

    def test_long_ones_are_cut_and_put_together(self):
        self.expect_well(3, 3, "cut")

    def test_a_wait_ends_at_its_deadline(self):
        status, lines, output = run(3, "late")
        self.assertEqual(status, 0, output)
        for rank in range(3):
            self.assertRegex(lines[rank][1], rf"^rank {rank}: no message with tag 4 from rank "
                             rf"{(rank + 1) % 3} within 0\.1", output)

    def test_an_idle_job_does_not_use_up_a_core(self):
        status, lines, output = run(2, "idle")
        self.assertEqual(status, 0, output)
        for rank in range(2):
            self.assertLess(float(lines[rank][1].removesuffix(" of a core")), 0.3, output)

    def test_a_stopped_rank_is_named_and_the_others_go_on(self):
        _, lines, output = run(3, "stop", 3)
        for rank in (0, 2):
            seconds, text = lines[rank]
            self.assertRegex(text, rf"^rank {rank}: rank 1 is lost: it has not answered for 2\.\d "
                             r"s; no message with tag 1 can come$", output)
            self.assertLess(seconds, 8, output)


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun; install openmpi-bin")
        sys.exit(77)
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
