"""Parameter servers, as a user starts them: with the workers, by hand, and when things go wrong."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

import program
from program import SLOWER, changed, patiently
from two_hosts import two_hosts
from workers_test import NORMALISED, PLAIN, WorkersTest

SMALL = changed(PLAIN, iterations=50, train_size=240)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ServersTest(WorkersTest):
    def serve(self, index=0, port=None, *arguments):
        """A server process that listens already; its lines come into .lines."""
        port = port or free_port()
        process = self.start("serve-parameters", "--listen", f"127.0.0.1:{port}", "--index", index,
                             "--json", *arguments)
        process.lines = []
        ready = threading.Event()

        def read():
            for line in process.stderr:
                process.lines.append(line)
                if line.startswith("listening"):
                    ready.set()
            ready.set()

        process.reader = threading.Thread(target=read, daemon=True)
        process.reader.start()
        self.assertTrue(ready.wait(patiently(20)), "the server does not listen")
        process.address = f"127.0.0.1:{port}"
        process.port = port
        return process

    def says(self, server, words, timeout_s=10):
        """Waits until the server's log has these words."""
        deadline = time.monotonic() + patiently(timeout_s)
        while not any(words in line for line in server.lines):
            self.assertLess(time.monotonic(), deadline, "".join(server.lines))
            time.sleep(0.02)

    def ended(self, server, timeout=20, status=0):
        """Its summary, after it has ended by itself."""
        try:
            self.assertEqual(server.wait(patiently(timeout)), status, "".join(server.lines))
        except Exception:
            self.fail("the server did not end:\n" + "".join(server.lines))
        server.reader.join(5)
        return json.loads(server.stdout.read())

    def worker(self, rank, servers, *arguments, workers=2, name="job"):
        where = ",".join(server.address for server in servers)
        return self.start("train", "--method", "parameter-server", "--servers", where, "--workers",
                          workers, "--rank", rank, "--name", name, *arguments)


class EqualToAllReduce(ServersTest):
    def test_rounds_are_steps_of_all_reduce(self):
        for workers in (1, 2, 4):
            batch = 48 // workers
            expected = self.train(f"a{workers}", *SMALL, "--method", "all-reduce", "--workers",
                                  workers, "--batch", batch, "--quiet")
            for servers in (1, 2, 4):
                for sharding in ("whole", "sliced"):
                    with self.subTest(workers=workers, servers=servers, sharding=sharding):
                        run = self.train(f"p{workers}{servers}{sharding}", *SMALL, "--method",
                                         "parameter-server", "--workers", workers, "--servers",
                                         servers, "--sharding", sharding, "--batch", batch,
                                         "--quiet")
                        self.assert_near(run, expected, tolerance=1e-6)

    def test_processes(self):
        expected = self.train("one", *SMALL, "--batch", 48, "--quiet")
        servers = [self.serve(0), self.serve(1)]
        settings = [*SMALL, "--batch", 24, "--quiet"]
        self.finish([self.worker(rank, servers, *settings) for rank in (1, 0)])
        self.assert_near(self.folder / "runs" / "job", expected, tolerance=1e-6)
        for server in servers:
            summary = self.ended(server)
            self.assertEqual(summary["updates"], 50)
            self.assertEqual(summary["pushes"], 100)
            self.assertEqual(summary["staleness"], {"0": 100})

    def test_workers_started_by_hand_share_the_cores_of_their_host(self):
        cores = len(os.sched_getaffinity(0))
        if cores < 2:
            self.skipTest("one core")
        server = self.serve()
        settings = [*changed(SLOWER, batch=300, train_size=600, threads=0, iterations=1), "--quiet"]
        self.finish([self.worker(rank, [server], *settings) for rank in (0, 1)])
        for run in ("job", "job-worker1"):
            config = json.loads((self.folder / "runs" / run / "run.json").read_text())["config"]
            self.assertEqual(config["threads"], cores // 2, run)

    def test_workers_of_other_hosts_servers_are_told_to_share_the_cores(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
                host = probe.getsockname()[0]
            except OSError:
                self.skipTest("no network but loopback")
        self.cohort("token", "--file", "token")
        server = self.start("serve-parameters", "--listen", f"{host}:{free_port()}", "--index", 0,
                            "--token-file", "token")
        server.address = server.stderr.readline().split()[1]
        settings = [*changed(SMALL, threads=0, iterations=5), "--token-file", "token"]
        first = self.worker(0, [server], *settings)
        lines = [first.stderr.readline() for _ in range(4)]  # model, data, method, run
        self.assertNotIn("--threads", "".join(lines))
        second = self.worker(1, [server], *settings)
        says = self.finish([second, first, server])[0]
        self.assertIn("2 workers of this job are on this host", says)
        self.assertIn("each with --threads", says)

    def test_resume_is_exact(self):
        settings = [*changed(SMALL, iterations=40, batch=24, momentum="0.9", workers=2, servers=2,
                             method="parameter-server")]
        whole = self.train("whole", *settings, "--quiet")
        self.train("half", *changed(settings, iterations=20), "--quiet")
        self.cohort("train", "--resume", "runs/half", "--iterations", 40, "--quiet")
        self.assert_same_weights(whole, self.folder / "runs" / "half")


class RunsOfAJob(ServersTest):
    """Each worker that is a process of its own has a folder."""
    SYNC = [*changed(SMALL, iterations=20, batch=24), "--quiet"]

    def pair(self, server, *arguments):
        where = ["--method", "parameter-server", "--servers", server.address, "--workers", 2]
        self.finish([self.start("train", *where, "--rank", rank, *self.SYNC, *arguments)
                     for rank in (1, 0)])
        self.ended(server)

    def names(self):
        return sorted(run.name for run in (self.folder / "runs").iterdir())

    def test_folders_say_which_worker_and_are_one_run(self):
        self.train("mlp-100-synthetic-001", *changed(self.SYNC[:-1], iterations=1), "--quiet")
        self.pair(self.serve())
        self.assertEqual(self.names(), ["mlp-100-synthetic-001", "mlp-100-synthetic-002",
                                        "mlp-100-synthetic-002-worker1"])
        out = self.cohort("report", "runs", "-o", "r.html").stdout
        self.assertIn("r.html: 2 runs", out)
        self.assertNotIn("worker1", out)
        out = self.cohort("plot", *sorted(map(str, (self.folder / "runs").glob("*-002*"))), "-o",
                          "p.svg").stdout
        self.assertIn("mlp-100-synthetic-002", out)
        lines = self.cohort("eval", "runs/mlp-100-synthetic-002", "--json").stdout.splitlines()
        models = [json.loads(line)["model"] for line in lines]
        self.assertTrue(any("002-worker1/" in model for model in models), models)
        self.assertTrue(any("002/" in model for model in models), models)
        self.assertEqual({json.loads(line)["worker"] for line in lines}, {0, 1})
        done = self.cohort("eval", "runs/mlp-100-synthetic-002")
        for line in done.stdout.splitlines():
            self.assertIn("(worker 1" if "-worker1/" in line else "(worker 0", line)
        self.assertRegex(done.stdout, r"\(worker 1; (best, )?latest\)")
        self.assertIn("job      runs/mlp-100-synthetic-002: 2 processes", done.stderr)
        self.assertEqual(done.stderr.count("data  "), 1, "the same for both")
        alone = self.cohort("eval", "runs/mlp-100-synthetic-002-worker1").stdout
        self.assertNotIn("(worker", alone)

    def test_any_worker_can_be_resumed(self):
        server = self.serve()
        port = server.port
        self.pair(server, "--name", "job")
        first, second = self.folder / "runs/job", self.folder / "runs/job-worker1"
        for folder in (second, first):  # whichever is named
            server = self.serve(0, port)
            steps = 20 + json.loads((first / "summary.json").read_text())["steps"]
            go_on = ["train", "--iterations", steps, "--quiet", "--resume"]
            self.finish([self.start(*go_on, second) if folder == second else
                         self.start(*go_on, folder, "--rank", 1), self.start(*go_on, first)])
            self.ended(server)
            for run in (first, second):
                self.assertEqual(json.loads((run / "summary.json").read_text())["steps"], steps)
        self.assertEqual(self.names(), ["job", "job-worker1"])


class WithoutRounds(ServersTest):
    def test_every_gradient_is_an_update(self):
        run = self.train("async", *SMALL, "--method", "parameter-server", "--server-mode", "async",
                         "--workers", 3, "--servers", 2, "--batch", 16, "--quiet")
        last = self.metrics(run, "step")[-1]
        self.assertIn("staleness", last)
        self.assertGreater(last["updates"], 50)

    def test_the_momentum_that_nobody_set_allows_for_that_of_asynchrony(self):
        """Unset by flag or file it is lowered, which is said and kept; set it is left alone."""
        few = [*changed(SMALL, iterations=4), "--method", "parameter-server", "--batch", 8]
        (self.folder / "set.json").write_text('{"momentum": 0.9}')

        def momentum(name, *arguments, says):
            run = self.train(name, *few, *arguments)
            said = [line for line in self.last.stderr.splitlines() if line.startswith("momentum ")]
            self.assertEqual(len(said), says, self.last.stderr)
            return json.loads((run / "run.json").read_text())["config"]["momentum"]

        two = ["--workers", 2, "--server-mode"]
        self.assertEqual(momentum("async", *two, "async", says=1), 0.4)
        self.assertEqual(momentum("ssp", *two, "ssp", says=1), 0.4)
        self.assertEqual(momentum("flag", *two, "async", "--momentum", 0.9, says=0), 0.9)
        self.assertEqual(momentum("file", *two, "async", "--config", "set.json", says=0), 0.9)
        self.assertEqual(momentum("sync", *two, "sync", says=0), 0.9)
        self.assertEqual(momentum("alone", "--server-mode", "async", says=0), 0.9)
        resumed = self.cohort("train", "--resume", "runs/async", "--iterations", 8)
        self.assertNotIn("instead of", resumed.stderr)
        self.assertEqual(json.loads((self.folder / "runs/async/run.json").read_text())
                         ["config"]["momentum"], 0.4)
        self.cohort("launch", "--servers", 1, "-n", 2, "--", "train", "--name", "launched", *few,
                    "--server-mode", "async")
        self.assertEqual(json.loads((self.folder / "runs/launched/run.json").read_text())
                         ["config"]["momentum"], 0.4)

    def test_one_worker_is_local_training(self):
        local = self.train("local", *SMALL, "--batch", 48, "--quiet")
        for mode in ("async", "ssp"):
            run = self.train(mode, *SMALL, "--method", "parameter-server", "--server-mode", mode,
                             "--batch", 48, "--quiet")
            self.assert_near(run, local, tolerance=1e-6)

    def test_a_slow_worker_holds_up_nobody(self):
        """Asynchronous: the quick worker's steps do not wait for the slow one's."""
        server = self.serve()
        settings = [*changed(SMALL, iterations=60), "--batch", 24, "--server-mode", "async",
                    "--quiet"]
        slow = self.worker(1, [server], *settings, "--failpoints",
                           "training.compute.rank1=sleep:150")
        quick = self.worker(0, [server], *settings, "--record-every", 1)
        run = self.folder / "runs" / "job"
        self.wait_for_step(quick, run, 60)
        self.assertIsNone(slow.poll(), "the slow one should need 9 s")
        self.finish([quick, slow])
        self.assertEqual(self.ended(server)["pushes"], 120)

    def test_bounded_staleness_holds_the_quick_one_back(self):
        server = self.serve()
        settings = [*changed(SMALL, iterations=30), "--batch", 24, "--server-mode", "ssp",
                    "--staleness", 2, "--quiet"]
        slow = self.worker(1, [server], *settings, "--failpoints",
                           "training.compute.rank1=sleep:50")
        quick = self.worker(0, [server], *settings)
        self.finish([quick, slow])
        summary = self.ended(server)
        self.assertEqual(summary["pushes"], 60)
        # A gradient's staleness counts the other's updates since it was read: at most 2 s + 1.
        self.assertLessEqual(max(map(int, summary["staleness"])), 5)


class Faults(ServersTest):
    LONG = changed(SMALL, iterations=400, batch=24, record_every=1)
    SLOWLY = ["--quiet", "--failpoints",
              "training.compute.rank0=sleep:5;training.compute.rank1=sleep:5"]

    def test_a_killed_worker_does_not_stop_the_others(self):
        for mode in ("async", "ssp", "sync"):
            with self.subTest(mode=mode):
                server = self.serve(0, None, "--idle-exit", 3)
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


class Network(ServersTest):
    """Server and worker on two hosts (network namespaces)."""

    SETTINGS = [*changed(SMALL, iterations=10), "--batch", 24, "--quiet"]

    def start_on(self, hosts, number, *arguments, **variables):
        process = subprocess.Popen(
            ["ip", "netns", "exec", hosts.names[number], program.COHORT, *map(str, arguments)],
            cwd=self.folder, text=True, env={**self.environment, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def serve_on(self, hosts, *arguments, **variables):
        server = self.start_on(hosts, 0, "serve-parameters", "--listen", f"{hosts.addresses[0]}:0",
                               "--workers", 1, "--json", *arguments, **variables)
        line = server.stderr.readline()
        self.assertIn("listening", line)
        server.address = line.split()[1]
        return server

    def worker_on(self, hosts, server, *arguments, settings=None, **variables):
        return self.start_on(hosts, 1, "train", "--method", "parameter-server", "--servers",
                             server.address, "--workers", 1, "--rank", 0,
                             *(settings or self.SETTINGS), *arguments, **variables)

    def assert_refused(self, process, words):
        _, err = process.communicate(timeout=program.patiently(60))
        self.assertIn(process.returncode, (1, 2), err)
        for word in words:
            self.assertIn(word, err)

    def test_a_token_lets_its_holders_in_and_nobody_else(self):
        token = self.cohort("token").stdout.strip()
        advice = ("COHORT_TOKEN", "cohort token", "--tls-dir", "--insecure")
        with two_hosts(self.folder) as hosts:
            self.assert_refused(self.start_on(hosts, 0, "serve-parameters", "--listen",
                                              f"{hosts.addresses[0]}:0"), advice)
            server = self.serve_on(hosts, COHORT_TOKEN=token)
            self.assert_refused(self.worker_on(hosts, server), advice)
            self.assert_refused(self.worker_on(hosts, server, COHORT_TOKEN="0" * 64), ["token"])
            self.finish([self.worker_on(hosts, server, COHORT_TOKEN=token)])
            self.assertEqual(server.wait(patiently(20)), 0)
            self.assertEqual(json.loads(server.stdout.read())["pushes"], 10)

    def test_values_that_come_back_early_are_the_same(self):
        """A model of several pieces: between hosts, and on one, where it has no drafts."""
        token = self.cohort("token").stdout.strip()
        large = changed(SMALL, model="mlp-4096", iterations=4, batch=8, momentum="0.9")
        with two_hosts(self.folder) as hosts:
            hosts.slow_down("1gbit")  # or there is little left to do when the last gradient is there
            server = self.serve_on(hosts, COHORT_TOKEN=token)
            self.finish([self.worker_on(hosts, server, "--name", "far", "--quiet", settings=large,
                                        COHORT_TOKEN=token)])
            self.assertEqual(server.wait(patiently(20)), 0)
            self.assertEqual(json.loads(server.stdout.read())["drafted"], 4)
        server = self.serve()
        self.finish([self.worker(0, [server], *large, "--quiet", workers=1, name="near")])
        self.assertEqual(self.ended(server)["drafted"], 0)
        self.assert_same_weights(self.folder / "runs" / "far", self.folder / "runs" / "near")

    def test_certificates_let_each_in_as_itself(self):
        self.cohort("token", "--tls-dir", "tls", "--job", "a", "--servers", 1, "--workers", 1)
        named = ("--job", "a", "--tls-dir")
        with two_hosts(self.folder) as hosts:
            server = self.serve_on(hosts, *named, self.folder / "tls/server-0")
            self.assert_refused(self.worker_on(hosts, server, *named, self.folder / "tls/server-0"),
                                ["certificate"])
            self.finish([self.worker_on(hosts, server, *named,
                                        self.folder / "tls/worker-0")])
            self.assertEqual(server.wait(patiently(20)), 0)


if __name__ == "__main__":
    program.main()
