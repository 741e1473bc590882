"""What a run says of its speed and its bytes: the same everywhere, of all workers, and true."""

import html
import itertools
import json
import os
import pty
import re
import subprocess
import unittest

import program
from program import ProgramTest

# Long enough that the line on a terminal is drawn again after a record, on quick machines too.
SETTINGS = ["--model", "lenet", "--data", "synthetic", "--synthetic-shape", "1x28x28",
            "--train-size", "2400", "--test-size", "64", "--batch", "60", "--lr", "0.01",
            "--iterations", "160", "--record-every", "10", "--threads", "1", "--eval-every", "0"]
SECONDS = ("data_seconds", "compute_seconds", "exchange_seconds", "update_seconds")
BYTES = ("bytes_sent", "bytes_received", "wire_bytes_sent", "wire_bytes_received")


def seconds(records):
    return sum(record[name] for record in records for name in SECONDS)


def by_rank(records):
    ranks = {}
    for record in records:
        ranks.setdefault(record["rank"], []).append(record)
    return ranks


def rate(records):
    """Samples of all workers in the mean time of one, written anew from docs/run_directory.md."""
    samples = sum(record["samples"] for record in records)
    return samples * len(by_rank(records)) / seconds(records)


def sums(records):
    return {name: sum(record[name] for record in records) for name in BYTES
            if any(name in record for record in records)}


class Agreement(ProgramTest):
    def on_a_terminal(self, name, *arguments):
        """Trains with the error stream on a terminal; returns the folder and what was shown."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([program.COHORT, "train", "--name", name, *map(str, arguments)],
                                   cwd=self.folder, env={**self.environment, "TERM": "xterm"},
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # the terminal has nobody left
                break
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0, shown.decode())
        return self.folder / "runs" / name, shown.decode()

    def methods(self):
        listed = self.cohort("list", "methods").stdout
        return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]

    def table(self, report):
        """The first table of a report in HTML: label -> column -> text."""
        text = report.read_text()
        rows = re.findall(r"<tr>(.*?)</tr>", text[:text.index("</table>")], re.S)
        cells = [[html.unescape(cell).replace(",", "")  # 12,345
                  for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows]
        return {row[0]: dict(zip(cells[0], row)) for row in cells[1:]}

    def check_line(self, shown, steps):
        """Every rate on the terminal is that of the newest record of each worker."""
        rates = [int(text) for text in re.findall(r"(\d+) samples/s(?! while| by)", shown)]
        self.assertTrue(rates, shown)
        workers = by_rank(steps)
        whole = {round(rate(choice)) for choice in itertools.product(*workers.values())}
        first = {round(rate([record])) for records in workers.values() for record in records}
        self.assertTrue(set(rates) & whole, f"{rates} are of no pair in {whole}")
        self.assertLessEqual(set(rates), whole | first)
        if len({record["step"] for record in steps}) * len(workers) == len(steps):
            self.assertLessEqual(set(rates[-1:]), whole)

    def test_every_method(self):
        methods = self.methods()
        self.assertIn("parameter-server", methods)
        runs = {}
        for method in methods:
            workers = 1 if method == "local" else 2
            with self.subTest(method=method):
                runs[method], shown = self.on_a_terminal(
                    method, *SETTINGS, "--method", method, "--workers", workers,
                    *{"dgc": ["--compressor", "top-k"],
                      "diloco": ["--average-every", "50"]}.get(method, []))
                steps = self.metrics(runs[method], "step")
                self.assertEqual(set(by_rank(steps)), set(range(workers)))
                self.check_line(shown, steps)
                summary = json.loads((runs[method] / "summary.json").read_text())["this_sitting"]
                self.assertEqual(summary["workers"], workers)
                self.assertEqual(summary["samples"], sum(record["samples"] for record in steps))
                self.assertAlmostEqual(summary["samples_per_second"], rate(steps), places=5)
                self.assertEqual({name: summary[name] for name in BYTES if name in summary},
                                 sums(steps))
                outside = self.metrics(runs[method], "traffic")
                for purpose, found in summary["outside_steps"].items():
                    own = [record for record in outside if record["purpose"] == purpose]
                    self.assertEqual(found, sums(own))
                if workers == 1:
                    self.assertEqual(sums(steps + outside)["bytes_sent"], 0)
                    continue
                self.assertGreater(summary["bytes_sent"], 0)
                self.assertIn("start", summary["outside_steps"])
                self.assertIn(f"{rate(steps):.0f} samples/s while training", shown)
                self.assertIn(f"sent {summary['bytes_sent'] / 1e6:.1f} MB", shown)
                self.check_totals(summary)
        self.cohort("report", *runs.values(), "-o", "report.html")
        table = self.table(self.folder / "report.html")
        for method, run in runs.items():
            with self.subTest(method=method):
                steps = self.metrics(run, "step")
                self.assertEqual(table[method]["Samples/s"], f"{rate(steps):.0f}")
                self.assertAlmostEqual(float(table[method]["Sent (MB)"]),
                                       sums(steps)["bytes_sent"] / 1e6,
                                       delta=0.01 * sums(steps)["bytes_sent"] / 1e6)
                sent, speed = self.ends_of_curves(run, "megabytes-sent", "samples-per-second")
                self.assertAlmostEqual(sent, sums(steps)["bytes_sent"] / 1e6, delta=0.01 * sent)
                newest = [records[-1] for records in by_rank(steps).values()]
                self.assertAlmostEqual(speed, rate(newest), delta=0.01 * speed)

    def ends_of_curves(self, run, *measures):
        """The number beside the end of the curve in each panel of a chart."""
        self.cohort("plot", run, "--y", ",".join(measures), "--smooth", 1, "-o", "chart.svg")
        texts = re.findall(r"<text([^>]*)>([^<]*)</text>", (self.folder / "chart.svg").read_text())
        return [float(text.replace(",", "")) for style, text in texts
                if 'font-weight="bold"' in style and re.fullmatch(r"[\d.,]+", text)]

    def test_evaluations_are_no_time_of_training(self):
        """Also where the other worker waits for them in its exchange."""
        settings = dict(zip(SETTINGS[::2], SETTINGS[1::2]))
        settings.update({"--eval-every": "1", "--test-size": "4000"})
        flags = [part for pair in settings.items() for part in pair]
        for mode in ("sync", "ssp"):
            with self.subTest(mode):
                run = self.folder / "runs" / mode
                self.cohort("train", "--name", mode, *flags, "--method", "parameter-server",
                            "--server-mode", mode, "--workers", 2, "--quiet")
                workers = by_rank(self.metrics(run, "step"))
                evaluating = sum(record["seconds"] for record in self.metrics(run, "evaluation"))
                first, second = (seconds(workers[rank]) for rank in (0, 1))
                self.assertGreater(evaluating, 0.3 * first, "too little to be seen")
                self.assertLess(second - first, 0.3 * evaluating)

    def check_totals(self, summary):
        """Whatever the method: with headers it is more, and outside of steps a part."""
        if "wire_bytes_sent" in summary:
            self.assertGreater(summary["wire_bytes_sent"], summary["bytes_sent"])
            self.assertLess(summary["wire_bytes_sent"], 1.05 * summary["bytes_sent"] + 10000)
        else:  # no servers: what one worker sends another receives
            self.assertEqual(summary["bytes_sent"], summary["bytes_received"])


def may_make_networks():
    command = ["unshare", "-n", "ip", "link", "set", "lo", "up"]
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# Runs all commands of a job in a network of their own; then says what its only interface sent.
JOB = """
import json, os, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
jobs = [subprocess.Popen(command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL)
        for variables, command in json.loads(sys.argv[1])]
status = max(job.wait() for job in jobs)
print(int(open("/sys/class/net/lo/statistics/tx_bytes").read()) if status == 0 else -1)
"""


@unittest.skipUnless(may_make_networks(), "network namespaces are not permitted")
class OnTheWire(ProgramTest):
    """Against the counters of the interface, for processes that share no memory."""

    def interface_bytes(self, *commands):
        job = []
        for index, (variables, arguments) in enumerate(commands):
            runtime = self.folder / f"runtime{index}"  # so that none finds another's sockets
            runtime.mkdir(mode=0o700, exist_ok=True)
            job.append(({**{name: str(value) for name, value in variables.items()},
                         "XDG_RUNTIME_DIR": str(runtime)},
                        [program.COHORT, *map(str, arguments)]))
        done = subprocess.run(["unshare", "-n", "-m", "sh", "-c",
                               'mount -t sysfs sysfs /sys && exec "$@"', "sh", "python3", "-c", JOB,
                               json.dumps(job)],
                              cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(int(done.stdout), 0, done.stderr)
        return int(done.stdout)

    def wire(self, *runs):
        records = [record for run in runs for kind in ("step", "traffic")
                   for record in self.metrics(self.folder / "runs" / run, kind)]
        return sums(records)

    def test_workers_by_tcp(self):
        for method in ("all-reduce", "d-psgd", "power-sgd"):
            def worker(rank):
                return ({"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1",
                         "MASTER_PORT": 29700, "COHORT_HOST": f"host{rank}"},
                        ["train", "--engine", "tcp", "--name", method, "--quiet", *SETTINGS,
                         "--method", method])
            with self.subTest(method):
                counted = self.interface_bytes(worker(0), worker(1))
                found = self.wire(method)
                self.assertGreater(found["wire_bytes_sent"], 10 ** 6)
                self.assertAlmostEqual(found["wire_bytes_sent"], counted, delta=0.02 * counted)
                self.assertAlmostEqual(found["wire_bytes_received"], counted, delta=0.02 * counted)

    def test_swamp(self):
        job = ["--method", "swamp", "--validation-size", 100, "--workers", 2, *SETTINGS]

        def worker(rank):
            return ({}, ["train", "--servers", "127.0.0.1:29702", "--rank", rank, "--name", "best",
                         "--quiet", *job])
        counted = self.interface_bytes(
            ({}, ["serve-best", "--listen", "127.0.0.1:29702", *job]), worker(0), worker(1))
        found = self.wire(*(run.name for run in (self.folder / "runs").glob("best*")))
        self.assertGreater(found["wire_bytes_sent"], 10 ** 6)
        self.assertAlmostEqual(found["wire_bytes_sent"] + found["wire_bytes_received"], counted,
                               delta=0.02 * counted)

    def test_parameter_server(self):
        def worker(rank):
            return ({}, ["train", "--method", "parameter-server", "--servers", "127.0.0.1:29701",
                         "--workers", 2, "--rank", rank, "--name", "ps", "--quiet", *SETTINGS])
        counted = self.interface_bytes(
            ({}, ["serve-parameters", "--listen", "127.0.0.1:29701", "--index", 0]),
            worker(0), worker(1))
        found = self.wire(*(run.name for run in (self.folder / "runs").glob("ps*")))
        self.assertGreater(found["wire_bytes_sent"], 10 ** 7)
        self.assertAlmostEqual(found["wire_bytes_sent"] + found["wire_bytes_received"], counted,
                               delta=0.02 * counted)


if __name__ == "__main__":
    program.main()
