"""`cohort launch`: many processes from one command."""

import shutil
import unittest

import program
from program import ProgramTest
from two_hosts import two_hosts


def needs_mpirun(test):
    return unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")(test)


class LaunchTest(ProgramTest):
    def hosts(self, content):
        path = self.folder / "hosts"
        path.write_text(content)
        return path

    @needs_mpirun
    def test_a_dry_run_prints_the_command_and_starts_nothing(self):
        self.environment["COHORT_DATA_DIR"] = "/data"
        done = self.cohort("launch", "-n", 1, "--dry-run", "--", "train", "--model", "lenet")
        words = done.stdout.split()
        self.assertTrue(words[0].endswith("/mpirun"), words)
        self.assertIn("-x COHORT_DATA_DIR", done.stdout)
        self.assertTrue(done.stdout.rstrip().endswith(
            f"{program.COHORT} train --model lenet --engine mpi"), done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    @needs_mpirun
    def test_every_process_runs_the_command(self):
        done = self.cohort("launch", "-n", 3, "--oversubscribe", "--", "list", "engines")
        self.assertEqual(done.stdout.count("engines\n"), 3, done.stdout)

    def test_without_a_launcher_it_says_what_to_install(self):
        self.environment["PATH"] = str(self.folder)
        done = self.cohort("launch", "-n", 2, "--", "train", status=2)
        self.assertIn("apt install openmpi-bin", done.stderr)
        self.assertIn("--engine threads --workers 2", done.stderr)

    @needs_mpirun
    def test_more_processes_than_slots_are_refused_before_the_start(self):
        hosts = self.hosts("here slots=2\n")
        done = self.cohort("launch", "-n", 4, "--hosts", hosts, "--", "train", status=2)
        self.assertEqual(done.stderr, "cohort: -n 4 but 2 slots: give --oversubscribe, or more "
                                      "slots in --hosts FILE\n")

    @needs_mpirun
    def test_a_bad_hosts_file_is_named_with_its_line(self):
        done = self.cohort("launch", "-n", 2, "--hosts", self.hosts("a slots=1\nb 1\n"), "--",
                           "train", status=2)
        self.assertIn("hosts:2: cannot read '1'", done.stderr)
        done = self.cohort("launch", "-n", 2, "--hosts", "missing", "--", "train", status=1)
        self.assertIn("missing: No such file", done.stderr)

    @needs_mpirun
    @unittest.skipIf(shutil.which("ssh") is None, "there is no ssh")
    def test_an_unknown_host_is_named(self):
        hosts = self.hosts("no-such-host slots=1\n")
        done = self.cohort("launch", "-n", 1, "--hosts", hosts, "--", "list", status=1)
        self.assertIn("no-such-host", done.stderr)
        self.assertNotIn("ORTE", done.stderr)

    def test_an_unknown_command_lists_the_known(self):
        done = self.cohort("launch", "-n", 2, "--", "trian", status=2)
        self.assertIn("did you mean 'train'", done.stderr)

    @needs_mpirun
    def test_bad_usage_of_the_command_is_bad_usage(self):
        done = self.cohort("launch", "-n", 1, "--", "list", "nonsense", status=2)
        self.assertIn("nonsense", done.stderr)

    @needs_mpirun
    def test_runs_on_two_hosts(self):
        with two_hosts(self.folder) as hosts:
            done = hosts.run([program.COHORT, "launch", "-n", "2", "--hosts", hosts.hosts_file,
                              "--agent", hosts.agent, "--", "list", "engines"], self.environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("engines\n"), 2, done.stdout)


if __name__ == "__main__":
    program.main()
