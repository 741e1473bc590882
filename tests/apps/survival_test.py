"""Gossip over tcp, of which a process is killed or stopped: the others go on, and it can come back."""

import json
import os
import pathlib
import signal
import subprocess
import time

import program
from program import changed
from two_hosts import two_hosts
from workers_test import PLAIN, WorkersTest

WORKERS = 4
# Steps long enough to be hit between two of them, and all of them in some seconds.
SLOW = ";".join(f"training.compute.rank{rank}=sleep:10" for rank in range(WORKERS))
METHODS = {
    "choco": ["--method", "choco", "--compressor", "sign", "--consensus-stepsize", "0.3"],
    "d-psgd": ["--method", "d-psgd"],
    "ecd": ["--method", "ecd", "--compressor", "qsgd", "--quantize-bits", "16"],
    "deep-squeeze": ["--method", "deep-squeeze", "--compressor", "sign", "--consensus-stepsize",
                     "0.05"],
}


class Survival(WorkersTest):
    def processes(self, job, count):
        """The ids of its processes, by rank."""
        children = {}
        while len(children) < count and job.poll() is None:
            text = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text()
            children = {self.rank_of(child): child for child in text.split()} if text else {}
            children.pop(None, None)
        return [int(children[rank]) for rank in sorted(children)]

    @staticmethod
    def rank_of(process):
        try:
            variables = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            return None
        return next((int(each[5:]) for each in variables if each.startswith(b"RANK=")), None)

    def launched(self, name, method, iterations=400, launch=(), processes=WORKERS,
                 workers=WORKERS):
        """A job under way, and the ids of its processes, by rank."""
        settings = changed(PLAIN, iterations=iterations, batch=12, eval_every=20, lr=0.02,
                           peer_timeout=60)
        job = self.start("launch", "--engine", "tcp", "-n", processes, *launch, "--", "train",
                         "--workers", workers, "--name", name, *settings, *METHODS[method],
                         "--failpoints", SLOW)
        children = self.processes(job, processes)
        self.wait_for_step(job, self.folder / "runs" / name, 20)
        return job, children

    def ended(self, job, status=0):
        out, err = job.communicate(timeout=program.patiently(60))
        self.assertEqual(job.returncode, status, out + err)
        return err

    def check_run(self, name, iterations=400, rank=0):
        """It went to its end, and learned."""
        run = self.folder / "runs" / name
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(summary["steps"], iterations)
        self.assertEqual(summary["last"]["samples"], 61)
        losses = [record["loss"] for record in self.metrics(run, "step") if record["rank"] == rank]
        self.assertLess(losses[-1], 0.5 * losses[0])
        events = [(record["event"], record["detail"]) for record in self.metrics(run, "event")]
        return run, [event for event in events if event[0] in ("leads", "lost", "joined")]

    def test_the_others_go_on_without_a_killed_one(self):
        for method in METHODS:
            with self.subTest(method):
                job, children = self.launched(method, method, launch=["--restarts", 0])
                os.kill(children[2], signal.SIGKILL)
                said = self.ended(job, status=1)
                self.assertIn("process 2 was ended by signal 9 (Killed); the others go on", said)
                for rank in (1, 3):  # a ring
                    self.assertIn(f"rank {rank} goes on without rank 2, whose weight it keeps", said)
                self.assertIn("rank 2 is lost: 3 of 4 workers go on", said)
                run, events = self.check_run(method)
                self.assertEqual(events, [("lost", "rank 2")])
                last = max(record["step"] for record in self.metrics(run, "step"))
                self.assertEqual({record["rank"] for record in self.metrics(run, "step")
                                  if record["step"] == last}, {0, 1, 3})

    def test_a_killed_one_that_is_started_again_comes_back(self):
        for method in METHODS:
            with self.subTest(method):
                job, children = self.launched(method, method, iterations=1000)
                os.kill(children[2], signal.SIGKILL)
                said = self.ended(job)
                self.assertIn("it is started again (1 of 3)", said)
                self.assertIn("rank 2 is back at step", said)
                run, events = self.check_run(method, iterations=1000)
                self.assertEqual(events, [("lost", "rank 2"), ("joined", "rank 2")])
                # They are one group again, not three and one: undisturbed, theirs is 0.003 to 0.4,
                # and 7 for deep-squeeze.
                distance = self.metrics(run, "evaluation")[-1]["consensus_distance"]
                self.assertLess(distance, 11 if method == "deep-squeeze" else 1)

    def test_two_that_are_killed_together_find_each_other_again(self):
        job, children = self.launched("a", "d-psgd", iterations=1500)
        for rank in (1, 2):
            os.kill(children[rank], signal.SIGKILL)
        self.ended(job)
        run, events = self.check_run("a", iterations=1500)
        self.assertCountEqual(events, [(what, f"rank {rank}") for what in ("lost", "joined")
                                       for rank in (1, 2)])
        # Every worker has both its neighbours: each round it sends two models.
        for rank in range(WORKERS):
            late = [record for record in self.metrics(run, "step")
                    if record["step"] > 1200 and record["rank"] == rank]
            sent, steps = (sum(record[key] for record in late) for key in ("bytes_sent", "steps"))
            self.assertGreater(sent, 1.9 * steps * 4 * 15510)

    def test_a_process_of_several_workers_is_gone_on_without(self):
        job, children = self.launched("a", "choco", processes=2)
        os.kill(children[1], signal.SIGKILL)
        said = self.ended(job, status=1)
        self.assertIn("process 1 was ended by signal 9 (Killed); the others go on", said)
        _, events = self.check_run("a")
        self.assertEqual(events, [("lost", "rank 2"), ("lost", "rank 3")])

    def test_one_that_was_stopped_comes_back_when_it_wakes(self):
        job, children = self.launched("a", "choco", iterations=2000)
        os.kill(children[1], signal.SIGSTOP)
        run = self.folder / "runs/a"
        deadline = time.monotonic() + program.patiently(30)
        while time.monotonic() < deadline and not self.events(run, "lost"):
            time.sleep(0.05)
        self.assertTrue(self.events(run, "lost"), "it was not missed")
        os.kill(children[1], signal.SIGCONT)
        said = self.ended(job)
        self.assertIn("trying to come back", said)
        _, events = self.check_run("a", iterations=2000)
        self.assertEqual(events, [("lost", "rank 1"), ("joined", "rank 1")])

    def events(self, run, name):
        return [record for record in self.metrics(run, "event", torn=True)
                if record["event"] == name]

    def test_the_others_go_on_without_the_first(self):
        for method in ("choco", "deep-squeeze"):
            with self.subTest(method):
                job, children = self.launched(method, method, launch=["--restarts", 0])
                os.kill(children[0], signal.SIGKILL)
                said = self.ended(job, status=1)
                self.assertIn("process 0 was ended by signal 9 (Killed); the others go on", said)
                self.assertIn("rank 1 leads the others now, and keeps the run in", said)
                self.assertIn("rank 0 is lost: 3 of 4 workers go on", said)
                run, events = self.check_run(method, rank=1)
                self.assertEqual(events, [("leads", "rank 1"), ("lost", "rank 0")])
                last = max(record["step"] for record in self.metrics(run, "step"))
                self.assertEqual({record["rank"] for record in self.metrics(run, "step")
                                  if record["step"] == last}, {1, 2, 3})
                self.cohort("launch", "--engine", "tcp", "-n", WORKERS, "--", "train", "--resume",
                            f"runs/{method}", "--iterations", 440, "--quiet")
                run, _ = self.check_run(method, iterations=440)

    def test_the_first_comes_back_to_those_who_went_on(self):
        for method in ("choco", "ecd"):
            with self.subTest(method):
                job, children = self.launched(method, method, iterations=1000)
                os.kill(children[0], signal.SIGKILL)
                said = self.ended(job)
                self.assertIn("it is started again (1 of 3)", said)
                self.assertRegex(said, "rank 0 is back at step .* it from rank 1's model")
                run, events = self.check_run(method, iterations=1000)
                self.assertEqual(events, [("leads", "rank 1"), ("lost", "rank 0"),
                                          ("joined", "rank 0")])
                self.assertLess(self.metrics(run, "evaluation")[-1]["consensus_distance"], 1)

    def test_one_after_another_leads_until_the_first_does_again(self):
        job, children = self.launched("a", "d-psgd", iterations=3000)
        run = self.folder / "runs/a"
        for times, leader in enumerate((0, 1, 0, 1)):
            os.kill(self.processes(job, WORKERS)[leader], signal.SIGKILL)
            self.wait_for_event(run, "joined", times + 1)
        self.ended(job)
        _, events = self.check_run("a", iterations=3000)
        self.assertEqual([event for event in events if event[0] == "leads"],
                         [("leads", f"rank {rank}") for rank in (1, 0, 1, 0)])

    def test_of_two_the_second_goes_on_without_the_first(self):
        job, children = self.launched("a", "choco", processes=2, workers=2,
                                      launch=["--restarts", 0])
        os.kill(children[0], signal.SIGKILL)
        said = self.ended(job, status=1)
        self.assertIn("1 of 2 workers go on", said)
        self.check_run("a", rank=1)

    def test_the_first_was_stopped_and_comes_back_when_it_wakes(self):
        job, children = self.launched("a", "choco", iterations=2000)
        os.kill(children[0], signal.SIGSTOP)
        # It holds the run's folder.
        beside = self.folder / "runs/a-rank1"
        self.wait_for_event(beside, "lost", 1)
        os.kill(children[0], signal.SIGCONT)
        said = self.ended(job)
        self.assertIn("rank 0 is cut off from the others", said)
        self.assertIn("trying to come back", said)
        self.assertIn("rank 0 is back at step", said)
        _, events = self.check_run("a-rank1", iterations=2000, rank=1)
        self.assertEqual(events, [("leads", "rank 1"), ("lost", "rank 0"), ("joined", "rank 0")])

    def test_another_run_of_that_name_is_left_alone(self):
        job, children = self.launched("a", "choco", launch=["--restarts", 0])
        run = self.folder / "runs/a"
        document = json.loads((run / "run.json").read_text())
        document["id"] = "of another run"
        del document["sha256"]
        (run / "run.json").write_text(json.dumps(document))
        os.kill(children[0], signal.SIGKILL)
        self.ended(job, status=1)
        self.assertEqual(self.events(run, "leads"), [])
        self.assertFalse((run / "summary.json").exists())
        self.check_run("a-rank1", rank=1)

    def test_two_processes_of_several_workers_do_not_both_go_on(self):
        job, children = self.launched("a", "choco", iterations=3000, processes=2)
        os.kill(children[0], signal.SIGSTOP)
        time.sleep(9)
        os.kill(children[0], signal.SIGCONT)
        said = self.ended(job, status=1)
        self.assertIn("is cut off from the others", said)
        self.assertEqual([path.name for path in (self.folder / "runs").iterdir()], ["a"])

    def wait_for_event(self, run, name, count):
        deadline = time.monotonic() + program.patiently(40)
        while time.monotonic() < deadline:
            if run.exists() and len(self.events(run, name)) >= count:
                return
            time.sleep(0.05)
        self.fail(f"no event '{name}' in {run}")

    def test_the_others_go_on_without_one_that_the_first_does_not_hear(self):
        # Its neighbours in the ring hear it well, and wait for it in every round.
        settings = changed(PLAIN, iterations=100000, batch=12, eval_every=0, lr=0.02,
                           peer_timeout=120)
        command = [program.COHORT, "train", "--engine", "tcp", "--workers", WORKERS, "--name", "a",
                   *settings, *METHODS["choco"], "--failpoints", SLOW]
        with two_hosts(self.folder) as hosts:
            for rank in range(WORKERS):
                host = hosts.names[1 if rank == 2 else 0]
                variables = {"RANK": str(rank), "WORLD_SIZE": str(WORKERS), "MASTER_PORT": "29700",
                             "MASTER_ADDR": hosts.addresses[0],
                             "COHORT_TOKEN": "0123456789abcdef" * 4}
                process = subprocess.Popen(
                    ["ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c",
                     'hostname "$0"; exec "$@"', host, *map(str, command)], cwd=self.folder,
                    env={**self.environment, **variables}, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
            run = self.folder / "runs/a"
            self.wait_for_step(process, run, 100)
            with hosts.deaf(29700):
                began = time.monotonic()
                self.wait_for_event(run, "lost", 1)
                lost_at = self.last_step(run)
                while self.last_step(run) < lost_at + 100:
                    self.assertLess(time.monotonic() - began, program.patiently(12))
                    time.sleep(0.05)
            self.wait_for_event(run, "joined", 1)
        self.assertEqual({event["detail"] for event in self.events(run, "lost")}, {"rank 2"})

    def last_step(self, run):
        return max(record["step"] for record in self.metrics(run, "step", torn=True))

    def test_a_run_saved_without_one_goes_on_with_all(self):
        for method in ("choco", "ecd"):
            with self.subTest(method):
                job, children = self.launched(method, method, launch=["--restarts", 0])
                os.kill(children[2], signal.SIGKILL)
                self.ended(job, status=1)
                self.cohort("launch", "--engine", "tcp", "-n", WORKERS, "--", "train", "--resume",
                            f"runs/{method}", "--iterations", 500, "--quiet")
                run, _ = self.check_run(method, iterations=500)
                self.assertEqual({record["rank"] for record in self.metrics(run, "step")
                                  if record["step"] == 500}, {0, 1, 2, 3})

    def test_other_jobs_cannot_be_rejoined(self):
        said = self.cohort("train", *PLAIN, "--rejoin", status=2).stderr
        self.assertIn("--engine tcp", said)


if __name__ == "__main__":
    program.main()
