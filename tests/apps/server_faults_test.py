"""Servers and workers that are killed, stopped, cut off or given nonsense, as real processes."""

import json
import signal
import time

import program
from ports import free_port
from program import changed, patiently
from servers_test import SMALL, ServersTest
from workers_test import NORMALISED


class Faults(ServersTest):
    LONG = changed(SMALL, iterations=400, batch=24, record_every=1)
    SLOWLY = ["--quiet", "--failpoints",
              "training.compute.rank0=sleep:5;training.compute.rank1=sleep:5"]

    def test_a_killed_worker_does_not_stop_the_others(self):
        for mode in ("async", "ssp", "sync"):
            with self.subTest(mode=mode):
                server = self.serve(0, None, "--idle-exit", 60)
                settings = [*changed(self.LONG, iterations=1000), "--server-mode", mode,
                            *self.SLOWLY]
                name = f"job-{mode}"
                first = self.worker(0, [server], *settings, name=name)
                second = self.worker(1, [server], *settings, name=name)
                run = self.folder / "runs" / f"job-{mode}"
                self.says(server, "worker 1 has joined")  # only a member can be evicted
                self.wait_for_step(first, run, 20)
                second.kill()
                killed = time.monotonic()
                step = self.metrics(run, "step", torn=True)[-1]["step"]
                self.wait_for_step(first, run, step + 20)
                self.assertLess(time.monotonic() - killed, patiently(4 if mode == "sync" else 2))
                [said] = self.finish([first], status=0 if mode == "sync" else 1)
                summary = self.ended(server, 40, status=1)
                self.assertEqual(summary["evictions"], 1)
                self.assertIn("worker 0: done; worker 1: given up", summary["reason"])
                if mode != "sync":
                    self.assertIn("the model has not the 2,000 updates asked for but "
                                  f"{summary['updates']:,} (gradients: 1,000 of worker 0", said)

    def test_a_killed_server_goes_on_where_it_was(self):
        for mode in ("async", "sync"):
            with self.subTest(mode=mode):
                state = ["--state-dir", f"state-{mode}"]
                server = self.serve(0, None, *state)
                settings = [*self.LONG, "--server-mode", mode, *self.SLOWLY]
                workers = [self.worker(rank, [server], *settings, name=f"job-{mode}")
                           for rank in (0, 1)]
                run = self.folder / "runs" / f"job-{mode}"
                for step in (30, 90):
                    self.wait_for_step(workers[0], run, step)
                    server.kill()
                    server.wait()
                    killed = time.monotonic()
                    before = self.metrics(run, "step", torn=True)[-1]["step"]
                    server = self.serve(0, server.port, *state)
                    self.wait_for_step(workers[0], run, before + 5)
                    self.assertLess(time.monotonic() - killed, patiently(5))
                self.finish(workers)
                summary = self.ended(server)
                self.assertEqual(summary["pushes"], 800)
                self.assertEqual(summary["lost"], 0)

    def test_a_worker_that_was_stopped_comes_back_as_another(self):
        server = self.serve()
        settings = [*changed(self.LONG, iterations=1200), "--server-mode", "async", *self.SLOWLY]
        first = self.worker(0, [server], *settings)
        second = self.worker(1, [server], *settings)
        run = self.folder / "runs" / "job"
        self.says(server, "worker 1 has joined")
        self.wait_for_step(first, run, 20)
        second.send_signal(signal.SIGSTOP)
        self.says(server, "evicted", 3.5)
        time.sleep(1)
        second.send_signal(signal.SIGCONT)
        _, err = self.finish([first, second])
        self.assertIn("joined again", err)
        summary = self.ended(server)
        self.assertEqual(summary["evictions"], 1)
        # What was on its way when it was given up was pushed again.
        self.assertEqual(summary["pushes"], 2400)

    def test_the_result_does_not_hang_on_worker_0(self):
        """Stopped while the other ends, it gives the result when it wakes; killed, the other does."""
        for end in (signal.SIGSTOP, signal.SIGKILL):
            with self.subTest(end.name):
                name = f"job-{end.name}"
                server = self.serve(0, None, "--idle-exit", 60 if end == signal.SIGSTOP else 3)
                settings = [*changed(self.LONG, iterations=800), "--server-mode", "async",
                            *self.SLOWLY]
                first = self.worker(0, [server], *settings, name=name)
                second = self.worker(1, [server], *settings, name=name)
                run = self.folder / "runs" / name
                other = self.folder / "runs" / f"{name}-worker1"
                self.says(server, "worker 1 has joined")
                self.wait_for_step(first, run, 20)
                first.send_signal(end)
                [said] = self.finish([second], status=1)
                self.assertIn("worker 1 waits for the others and gives the job's result", said)
                result = json.loads((other / "summary.json").read_text())
                self.assertEqual(result["steps"], 800)
                self.assertIn("top1", json.dumps(result))
                self.assertRegex(said, r"not the 1,600 updates asked for but [\d,]+ \(gradients: ")
                if end == signal.SIGKILL:
                    self.assertIn("worker 0: given up; worker 1: done",
                                  self.ended(server, status=1)["reason"])
                    continue
                first.send_signal(signal.SIGCONT)
                self.finish([first])
                self.assertEqual(json.loads((run / "summary.json").read_text())["steps"], 800)
                summary = self.ended(server)
                self.assertEqual(summary["pushes"], 1600)
                self.assertEqual(summary["reason"], "all workers are done")

    def snapshots(self, folder):
        return sorted(path for path in (folder / "checkpoints").glob("step-*")) or \
            sorted(folder.glob("step-*"))

    def test_a_damaged_newest_snapshot_ends_the_job_with_what_to_do(self):
        state = self.folder / "state"
        server = self.serve(0, None, "--state-dir", state)
        settings = [*changed(self.LONG, iterations=3000, checkpoint_every=100), "--server-mode",
                    "sync", *self.SLOWLY]
        workers = [self.worker(rank, [server], *settings) for rank in (0, 1)]
        run = self.folder / "runs" / "job"
        self.wait_for_step(workers[0], run, 150)
        deadline = time.monotonic() + patiently(30)
        newest = lambda: max(state.rglob("step-*"), default=None)
        begun = newest()
        while len(self.snapshots(state)) < 2 or newest() == begun:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        server.kill()
        server.wait()
        weights = next(newest().glob("*.safetensors"))
        content = bytearray(weights.read_bytes())
        content[-5] ^= 1
        weights.write_bytes(content)
        server = self.serve(0, server.port, "--state-dir", state)
        for worker in workers:
            _, err = worker.communicate(timeout=patiently(30))
            self.assertIn(worker.returncode, (1, 2), err)
            self.assertIn("went back to an older snapshot because its newest one is damaged", err)
            self.assertIn("--resume", err)
            self.assertLess(err.count("\n"), 100, err)
        self.assertLess(len(server.lines), 200)
        resumed = [self.start("train", "--servers", server.address, "--workers", 2, "--rank", rank,
                              "--method", "parameter-server", "--resume", run, "--iterations", 1500,
                              "--quiet")
                   for rank in (0, 1)]
        self.finish(resumed)
        self.assertEqual(self.ended(server)["updates"], 1500)

    def test_somebody_at_the_servers_address_is_waited_out(self):
        token, other = (self.cohort("token").stdout.strip() for _ in range(2))
        self.environment["COHORT_TOKEN"] = token
        state = ["--state-dir", "state"]
        server = self.serve(0, None, *state)
        worker = self.worker(0, [server], *changed(self.LONG, iterations=600), "--quiet",
                             "--failpoints", "training.compute.rank0=sleep:5", workers=1)
        self.wait_for_step(worker, self.folder / "runs" / "job", 30)
        server.kill()
        server.wait()
        # Another user's: not to be reached but by TCP.
        (self.folder / "other").mkdir(mode=0o700)
        own = {**self.environment}
        self.environment.update(COHORT_TOKEN=other, XDG_RUNTIME_DIR=str(self.folder / "other"))
        stranger = self.serve(0, server.port)
        time.sleep(2)
        if worker.poll() is not None:
            self.fail(f"it has given up: {worker.communicate()[1]}")
        stranger.kill()
        stranger.wait()
        self.environment = own
        server = self.serve(0, server.port, *state)
        self.finish([worker])
        self.assertEqual(self.ended(server)["updates"], 600)

    def test_mistakes_are_explained(self):
        server = self.serve()
        taken = self.cohort("serve-parameters", "--listen", server.address, status=2)
        self.assertIn("another process listens there", taken.stderr)
        first = self.worker(0, [server], *self.LONG, "--quiet")
        self.says(server, "has joined")
        second = self.worker(1, [server], *changed(self.LONG, lr="0.3"))
        _, err = second.communicate(timeout=program.patiently(60))
        self.assertEqual(second.returncode, 2, err)
        self.assertIn("lr", err)
        other = self.worker(1, [server], *changed(self.LONG, model="mlp-50"))
        _, err = other.communicate(timeout=program.patiently(60))
        self.assertEqual(other.returncode, 2, err)
        first.kill()
        missing = f"127.0.0.1:{free_port()}"
        result = self.cohort("train", "--method", "parameter-server", "--servers", missing,
                             "--workers", 1, *changed(self.LONG, peer_timeout="1"), status=1)
        self.assertIn(missing, result.stderr)
        refused = self.cohort("serve-parameters", "--listen", "0.0.0.0:0", status=2)
        for advice in ("COHORT_TOKEN", "cohort token", "--tls-dir", "--insecure"):
            self.assertIn(advice, refused.stderr)

    def test_gradients_that_are_not_finite_are_refused_named_and_counted(self):
        server = self.serve()
        worker = self.worker(0, [server], *changed(NORMALISED, lr=1e6), "--server-mode", "async",
                             "--quiet", workers=1)
        [said] = self.finish([worker], status=1)
        self.assertIn("refused the last 3 gradients of worker 0: the gradient holds numbers that "
                      "are not finite; try a lower --lr", said)
        counted = self.ended(server, status=1)
        self.assertIn("worker 0: failed", counted["reason"])
        self.assertRegex("".join(server.lines), r"push \d+ of worker 0 is rejected")
        self.assertGreaterEqual(counted["rejected"], 3)
        self.assertEqual(counted["pushes"], counted["updates"])

    def test_a_server_without_workers_ends(self):
        server = self.serve(0, None, "--idle-exit", "0.3")
        self.assertIn("no worker", self.ended(server, status=1)["reason"])


if __name__ == "__main__":
    program.main()
