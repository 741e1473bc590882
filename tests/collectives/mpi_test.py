#!/usr/bin/env python3
"""Runs mpi_program under mpirun: sums and failures of real processes.

    mpi_test.py MPI_PROGRAM [unittest arguments]

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
# (processes, workers, processes a host); 0 workers: one a process; 0 a host: all are on this one
LAYOUTS = [(1, 0, 0), (1, 3, 0), (2, 0, 0), (4, 0, 0), (2, 4, 0), (4, 0, 2), (3, 0, 1), (3, 6, 2)]


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


def run_well(processes, ranks, *arguments):
    """As run(), for what is to end well. Once in a long while mpirun misses the farewell of a process
    that has called MPI_Finalize ("exiting improperly", after all ranks are through): again then."""
    status, lines, output = run(processes, *arguments)
    through = [text for _, text in lines.values()] == ["ok"] * ranks
    if status != 0 and through and "exiting improperly" in output:
        print("mpirun missed a farewell; once more", file=sys.stderr)
        return run(processes, *arguments)
    return status, lines, output


class Sums(unittest.TestCase):
    def test_all_operations_are_right_for_every_layout(self):
        for processes, workers, per_host in LAYOUTS:
            with self.subTest(processes=processes, workers=workers, per_host=per_host):
                ranks = workers or processes
                status, lines, output = run_well(processes, ranks, "job", "sums", workers,
                                                 per_host)
                self.assertEqual(status, 0, output)
                self.assertEqual({rank: text for rank, (_, text) in lines.items()},
                                 {rank: "ok" for rank in range(ranks)}, output)

    def test_mpi_alone_is_right(self):
        for processes in (2, 3, 4):
            status, lines, output = run_well(processes, processes, "link", "sums")
            self.assertEqual(status, 0, output)
            self.assertEqual([lines[rank][1] for rank in range(processes)], ["ok"] * processes)


class Failures(unittest.TestCase):
    def expect(self, lines, output, ranks, pattern, within):
        """What each of `ranks` says, and how soon."""
        for rank in ranks:
            self.assertIn(rank, lines, output)
            seconds, text = lines[rank]
            self.assertRegex(text, pattern, output)
            self.assertLess(seconds, within, output)

    def expect_of_some(self, lines, output, ranks, pattern, within):
        """mpirun ends all others a second after it notices that one was killed: on a busy machine some
        are not through with what they say."""
        said = ranks & lines.keys()
        self.assertTrue(said, output)
        self.expect(lines, output, said, pattern, within)

    def test_a_killed_rank_is_named_with_what_it_was_doing(self):
        for processes, workers, per_host in [(3, 0, 0), (4, 0, 2)]:
            _, lines, output = run(processes, "job", "kill", workers, per_host)
            self.expect_of_some(
                lines, output, {0, 2, processes - 1},
                r"^rank 1 \(process \d+\) was killed at step 17, computing gradients$", 6)

    def test_all_ranks_of_a_killed_process_are_named(self):
        _, lines, output = run(2, "job", "kill", 4, 0)
        self.expect_of_some(
            lines, output, {2, 3},
            r"^ranks 0 and 1 \(process \d+\) were killed: rank 0 at step 17, computing "
            r"gradients, rank 1 at step 17, ", 6)

    def test_a_stopped_rank_is_given_up(self):
        for processes, per_host in [(3, 0), (4, 2)]:
            _, lines, output = run(processes, "job", "stop", 0, per_host)
            self.expect(lines, output, {0, 2, processes - 1},
                        r"^rank 1 \(process \d+\) has not answered for 2\.\d s; it was at step 17, "
                        r"computing gradients \(stopped or swapped out\?\)$", 10)

    def test_the_reason_of_a_rank_that_leaves_reaches_all(self):
        for processes, workers, per_host in [(3, 0, 0), (2, 4, 0), (4, 0, 2), (3, 0, 1)]:
            _, lines, output = run(processes, "job", "leave", workers, per_host)
            others = set(range(workers or processes)) - {1}
            self.expect(lines, output, others, r"^rank 1 .*left: its disk is full$", 6)

    def test_a_host_that_is_silent_is_given_up(self):
        _, lines, output = run(3, "link", "stop")
        self.expect(lines, output, {0, 2},
                    r"^rank 1 on host1 has not answered for 2\.\d s; last heard at step 17, ", 10)

    def test_different_sizes_are_refused(self):
        for arguments in [("link", "mismatch"), ("job", "mismatch", 0, 0)]:
            _, lines, output = run(3, *arguments)
            self.expect(lines, output, {0, 1, 2}, r"different sizes|brought 40[48] bytes", 6)

    def test_an_operation_ends_at_its_deadline(self):
        for arguments in [("link", "late"), ("job", "late", 0, 0)]:
            _, lines, output = run(3, *arguments)
            self.expect(lines, output, {0, 2},
                        r"^rank 1 .* has not come to barrier in \d\.\d s; .* at step 17, computing "
                        r"gradients$", 6)

    def test_workers_that_cannot_be_shared_out_are_refused(self):
        status, _, output = run(2, "job", "sums", 3, 0)
        self.assertNotEqual(status, 0)
        self.assertIn("--workers 3 cannot be shared out evenly to 2 processes", output)


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun; install openmpi-bin")
        sys.exit(77)
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
