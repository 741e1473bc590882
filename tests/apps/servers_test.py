"""Parameter servers, as a user starts them: with the workers and by hand."""

import json
import os
import socket
import subprocess
import threading
import time

import program
from ports import free_port
from program import SLOWER, changed, patiently
from two_hosts import two_hosts
from workers_test import PLAIN, WorkersTest

SMALL = changed(PLAIN, iterations=50, train_size=240)


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
        """A model of several pieces: between hosts, and on one, where it has no speculation."""
        token = self.cohort("token").stdout.strip()
        large = changed(SMALL, model="mlp-4096", iterations=4, batch=8, momentum="0.9")
        with two_hosts(self.folder) as hosts:
            hosts.slow_down("1gbit")  # or there is little left to do when the last gradient is there
            server = self.serve_on(hosts, COHORT_TOKEN=token)
            self.finish([self.worker_on(hosts, server, "--name", "far", "--quiet", settings=large,
                                        COHORT_TOKEN=token)])
            self.assertEqual(server.wait(patiently(20)), 0)
            self.assertEqual(json.loads(server.stdout.read())["speculative"], 4)
        server = self.serve()
        self.finish([self.worker(0, [server], *large, "--quiet", workers=1, name="near")])
        self.assertEqual(self.ended(server)["speculative"], 0)
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
