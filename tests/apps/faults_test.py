"""Jobs of many processes in which something goes wrong: real processes, really killed and stopped.

Whatever happens to one rank, the others end soon, with status 1 and a message that names the rank,
its step and what it was doing; the last checkpoint resumes; nothing is left behind.
"""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest

import program
from job import SLOW, STEPS, TRAIN, Job, JobTest
from program import changed, patiently, read_safetensors
from two_hosts import two_hosts


class FaultsOfOneRank(JobTest):
    def assert_names(self, text, what):
        self.assertRegex(text, what + r".*\bat step \d+, \w+")

    def test_a_killed_rank_ends_the_others(self):
        self.need_failpoints()
        for launcher in ("mpirun", "launch"):
            with self.subTest(launcher):
                job = self.train_slowly(launcher, launcher)
                job.signal(1, signal.SIGKILL)
                self.assertEqual(job.wait_until_ended([0], 5), [1])
                self.assertNotEqual(job.finish(), 0)
                self.assertIn("was killed", job.noted("err", 0))
                self.assert_names(job.err, r"rank 1 \(process \d+\)")
                job.assert_nothing_left()
        self.assert_resumes_exactly("mpirun", "mpirun")

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
        for job in jobs:
            self.assertEqual(job.wait_until_ended([0], 10), [1])
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
                if launcher != "launch":
                    self.assert_resumes_exactly(launcher, launcher)

    def test_a_rank_that_is_alive_but_does_not_come_is_given_up(self):
        for launcher in ("mpirun", "threads"):
            with self.subTest(launcher):
                job = self.train_slowly(launcher, launcher, "--peer-timeout", 2, until=0,
                                        failpoints="training.load.rank1=sleep:5000@8")
                self.wait_for_step(job.process, self.folder / "runs" / launcher, 6)
                if launcher == "mpirun":
                    self.assertEqual(job.wait_until_ended([0], 5), [1])
                self.assertEqual(job.finish(15), 1)
                self.assertRegex(job.noted("err", 0), r"rank 1.* has not come to .*"
                                                      r"at step 7, loading data")
                job.assert_nothing_left()

    def test_a_worker_that_hangs_in_its_own_code_does_not_keep_the_process(self):
        self.need_failpoints()
        start = time.monotonic()
        result = self.cohort(*TRAIN, "--name", "a", "--workers", 2, "--peer-timeout", 1,
                             "--failpoints", "training.compute.rank1=sleep:60000@5", status=1)
        self.assertLess(time.monotonic() - start, patiently(5))
        self.assertRegex(result.stderr, "rank 1 has not come .*; rank 1 hangs at step 4")

    def test_a_lost_gpu_ends_the_run_with_what_was_saved(self):
        self.need_failpoints()
        for workers, step, saved in ((1, 8, True), (2, 8, True), (1, 2, False)):
            name = f"{workers}-{step}"
            result = self.cohort(*TRAIN, "--name", name, "--workers", workers, "--failpoints",
                                 f"training.compute.rank{workers - 1}=lost-gpu@{step}", status=1)
            self.assertIn("CUDA error: unspecified launch failure; this process can compute nothing "
                          "more on that GPU", result.stderr)
            if not saved:
                self.assertIn("nothing had been saved yet", result.stderr)
                continue
            self.assertRegex(result.stderr, "the last checkpoint is that of step 6. Go on with: "
                                            rf"cohort train --resume \S*runs/{name}\n")
            self.cohort("train", "--resume", self.folder / "runs" / name, "--iterations", 9)

    def test_a_run_whose_launcher_is_killed_ends(self):
        job = self.train_slowly("launch", "a")
        job.process.kill()
        job.wait_until_gone([0, 1], 10)
        job.process.communicate()
        job.assert_nothing_left()
        self.assert_resumes_exactly("launch", "a")


class Restarts(JobTest):
    def launched(self, name, engine, *arguments, failpoints, restarts=1):
        return self.start("launch", "--engine", engine, "-n", 2, "--oversubscribe", "--restarts",
                          restarts, "--", *TRAIN, *arguments, "--name", name, "--failpoints",
                          failpoints)

    @staticmethod
    def process_with(job, variable):
        """The id of a process that `job` has started, itself or through others."""
        groups = [job.pid]
        for parent in groups:
            children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            for child in children:
                environment = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
                if variable.encode() in environment:
                    return int(child)
                groups.append(int(child))
        return None

    def assert_ends_as_if_nothing_had_happened(self, job, name):
        out, err = job.communicate(timeout=patiently(60))
        self.assertEqual(job.returncode, 0, out + err)
        self.assert_exact(name)
        return err

    def test_a_job_that_lost_a_process_is_started_again_from_its_checkpoint(self):
        self.need_failpoints()
        for engine, place in (("mpi", "OMPI_COMM_WORLD_RANK=1"), ("tcp", "RANK=1")):
            with self.subTest(engine):
                job = self.launched(engine, engine, failpoints=SLOW)
                self.wait_for_step(job, self.folder / "runs" / engine, 8)
                os.kill(self.process_with(job, place), signal.SIGKILL)
                killed = time.monotonic()
                err = self.assert_ends_as_if_nothing_had_happened(job, engine)
                self.assertLess(time.monotonic() - killed, patiently(10))
                self.assertIn(f"cohort: the job failed; it is started again and goes on with "
                              f"runs/{engine} (1 of 1)\n", err)
                self.assertRegex(err, f"resuming from runs/{engine}/checkpoints/step-")

    def test_a_job_without_a_checkpoint_begins_again(self):
        self.need_failpoints()
        job = self.launched("a", "tcp", failpoints="training.compute.rank1=error@1")
        err = self.assert_ends_as_if_nothing_had_happened(job, "a")
        self.assertEqual(err.count("it is started again"), 1, err)

    def test_bad_usage_is_not_tried_again(self):
        for engine in ("mpi", "tcp"):
            done = self.cohort("launch", "--engine", engine, "-n", 2, "--oversubscribe", "--restarts",
                               3, "--", "train", "--model", "nonsense", status=2)
            self.assertNotIn("started again", done.stderr)

    def test_only_training_can_go_on(self):
        done = self.cohort("launch", "-n", 2, "--restarts", 1, "--", "list", "engines", status=2)
        self.assertIn("--restarts is for train", done.stderr)


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
        # mpirun kills the rest as soon as one has ended; all is saved by then.
        self.assertIn("130", [job.noted("status", rank) for rank in (0, 1)], job.everything())
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
        self.assertLess(time.monotonic() - start, patiently(20))
        for status in ended:
            self.assertIn(status, statuses, job.everything())
        for text in said:
            self.assertIn(text, job.err)
        self.assertFalse((self.folder / "runs").exists(), "a run directory was left")
        job.assert_nothing_left()
        return job

    def test_other_settings_are_named(self):
        self.refused([*TRAIN, "--lr", "0.1"], [*TRAIN, "--lr", "0.2"],
                     "process 1 has other settings than process 0: --lr is 0.2 instead of 0.1")
        self.refused(TRAIN, ["train", *changed(TRAIN[1:], model="resnet20")],
                     'process 1 has other settings than process 0: --model is "resnet20"')
        self.refused(TRAIN, ["train", *changed(TRAIN[1:], method="local")],
                     'process 1 has other settings than process 0: --method is "local"')

    def test_engines_of_one_process_refuse_several(self):
        self.refused([*TRAIN, "--engine", "threads"], [*TRAIN, "--engine", "threads"],
                     "--engine threads lives in one process, but a launcher started 2")

    def test_a_process_that_refuses_its_own_settings_ends_the_other(self):
        for wrong in ({"model": "resnet9"}, {"device": "cuda:99"}):
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
        self.assertLess(time.monotonic() - start, patiently(10))
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
            self.assertLess(time.monotonic() - start, patiently(15))
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
        self.need_failpoints()
        job = self.begin_on(hosts, *TRAIN, "--name", "a", "--failpoints", SLOW)
        self.wait_for_step(job.process, self.folder / "runs" / "a", 8)
        return job

    def test_a_rank_killed_on_the_other_host_ends_all(self):
        # The other rank of its host always knows. Those of the first host hear of it, or mpirun,
        # which kills the rest after a second, is quicker; of rank 2, which speaks for its host, they
        # cannot hear.
        for victim, knowing in ((2, 3), (3, 2)):
            with self.subTest(victim), two_hosts(self.folder, slots=2) as hosts:
                shutil.rmtree(self.folder / "runs", ignore_errors=True)
                job = self.start_slowly(hosts)
                job.signal(victim, signal.SIGKILL)
                self.assertEqual(job.wait_until_ended([knowing], 5), [1], job.everything())
                job.wait_until_gone([0, 1], 5)
                for rank in (0, 1):
                    if job.noted("status", rank) == "1":
                        self.assertIn(f"rank {victim} (process", job.noted("err", rank))
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
        self.need_failpoints()
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
