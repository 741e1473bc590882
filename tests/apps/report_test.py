"""Many runs as one document: `cohort report`, and curves by worker: `cohort plot --by`."""

import html.parser
import json
import os
import re
import unittest
import xml.etree.ElementTree

import program
from program import TINY, ProgramTest

SVG = "{http://www.w3.org/2000/svg}"


class Texts(html.parser.HTMLParser):
    """What stands in the elements of an HTML page, by tag."""

    def __init__(self, path):
        super().__init__()
        self.open, self.found = [], {}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.open.pop()

    def handle_data(self, data):
        if self.open and data.strip():
            self.found.setdefault(self.open[-1], []).append(data.strip())


class ReportTest(ProgramTest):
    def run_directory(self, name, accuracy=0.9, dumps=12, shocks=(), last_version=1.0, **config):
        """A run as `cohort train` and `cohort eval` would have left it."""
        folder = self.folder / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({
            "config": {"method": "swamp", "model": "net", "data": "digits", "workers": 2, "seed": 1,
                       **config},
            "command": ["cohort", "train", "--name", name], "steps_per_epoch": dumps,
            "data": {"train_samples": 640, "test_samples": 10000}}))
        (folder / "summary.json").write_text(json.dumps({"reason": "finished", "seconds": dumps}))
        lines = []
        for worker in range(2):
            for i in range(dumps):
                loss = 5 if i in shocks else 2 / (i + 1)
                self.score(folder, f"trainer_{worker}",
                           f"model_params_trainer_{worker}_epoch_0_batch_{i}_sec_{i}", loss,
                           accuracy * i / dumps, i + 0.5)
                lines.append({"type": "step", "rank": worker, "step": i + 1, "epoch": (i + 1) / dumps,
                              "time_seconds": i + 0.5, "loss": loss, "samples": 32, "steps": 1,
                              "compute_seconds": 0.9, "bytes_sent": 10 ** 6})
        for i in range(3):
            self.score(folder, "ps", f"model_params_ps_model_version_{i + 1}_sec_{i}", 1 / (i + 1),
                       accuracy - 0.1 * (2 - i), last_version * (dumps - 1) * (i + 1) / 3)
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    def score(self, folder, series, stem, loss, accuracy, seconds):
        (folder / "dumps" / series).mkdir(parents=True, exist_ok=True)
        (folder / "dumps" / series / f"{stem}.eval").write_text(f"{loss}_{accuracy:.6f}_{seconds}")

    def report(self, *arguments, out="a.html", **options):
        result = self.cohort("report", *arguments, "-o", out, **options)
        return result, Texts(self.folder / out).found if out.endswith("html") else None

    def can_write_pdf(self):
        probe = self.run_directory("probe")
        process = self.start("report", probe, "-o", "probe.pdf")
        return "without Cairo" not in process.communicate(timeout=program.patiently(60))[1]


class Reports(ReportTest):
    def test_the_runs_of_a_folder_in_one_page_with_a_conclusion(self):
        self.run_directory("t2", accuracy=0.95, **{"pull-probability": 0.5})
        self.run_directory("t10", accuracy=0.85, shocks=(6, 9), **{"pull-probability": 1.0})
        self.run_directory("t3", accuracy=0.949, last_version=0.4, **{"pull-probability": 0.0})
        result, texts = self.report("runs")
        self.assertRegex(result.stdout, r"\ARun .*\nt2 .*\nt3 .*\nt10 .*\n\na.html: 3 runs\n\Z")
        self.assertEqual(result.stderr, "")
        rows = [cell for cell in texts["td"] if re.fullmatch(r"t\d+", cell)]
        self.assertEqual(rows, ["t2", "t3", "t10"], "numbers count as numbers")
        conclusion = " ".join(texts["li"])
        for text in ("This rests on 3 runs, which differ in pull-probability",
                     "is 95.00%: t2. It is 0.10 points above the next, t3 (94.90%)",
                     "so it is not significant", "t10: 4 (worker 0: 2, worker 1: 2)",
                     "The server of t3 stopped improving early: version 3"):
            self.assertIn(text, conclusion)

    def test_trained_runs_can_be_reported(self):
        self.train("a", *TINY, "--epochs", "2", "--record-every", "2")
        self.train("b", *TINY, "--epochs", "2", "--record-every", "2", "--method", "all-reduce",
                   "--workers", "2")
        result, texts = self.report("runs/a", "runs/b", "--title", "Mine & yours")
        self.assertEqual(texts["h1"], ["Mine & yours"])
        self.assertIn("all-reduce", texts["td"])
        self.assertIn("This rests on 2 runs", " ".join(texts["li"]))
        self.assertTrue(any("--method all-reduce" in text for text in texts["pre"]))

    def test_labels_are_the_names_of_runs(self):
        runs = [self.run_directory("a"), self.run_directory("b", lr=2)]
        _, texts = self.report(*runs, "--label", "first", "--label", "second")
        self.assertIn("first", texts["td"])
        self.assertIn("second", texts["td"])

    def test_both_formats_at_once(self):
        if not self.can_write_pdf():
            self.skipTest("built without Cairo")
        self.cohort("report", self.run_directory("a"), "-o", "a.pdf", "-o", "a.html")
        self.assertTrue((self.folder / "a.pdf").read_bytes().startswith(b"%PDF-"))
        self.assertTrue((self.folder / "a.html").exists())

    def test_a_run_under_way_with_damaged_scores_is_reported_with_notes(self):
        run = self.run_directory("a")
        (run / "summary.json").unlink()
        with open(run / "metrics.jsonl", "a") as file:
            file.write('{"type":"st')
        (run / "dumps" / "trainer_0" / "model_params_trainer_0_epoch_0_batch_99_sec_9.eval").touch()
        (run / "dumps" / "ps" / "core.1234").touch()
        (run / "dumps" / "ps" / ".tmp-x").touch()
        result, texts = self.report(run)
        for text in ("the last line is incomplete", "skipped 1 damaged score ", "batch_99_sec_9.eval",
                     "skipped 1 foreign file ", "core.1234"):
            self.assertIn(text, result.stderr)
        self.assertNotIn(".tmp-x", result.stderr)
        self.assertIn("Not finished", " ".join(texts["li"]))


class CurvesByWorker(ReportTest):
    def texts(self, path):
        root = xml.etree.ElementTree.parse(self.folder / path).getroot()
        return [text.text for text in root.iter(SVG + "text")]

    def test_one_run_with_scores_is_drawn_by_worker_and_server(self):
        self.cohort("plot", self.run_directory("a"), "-o", "a.svg")
        texts = self.texts("a.svg")
        for text in ("worker 0", "worker 1", "server (lowest loss 0.333, best accuracy 90.0%)",
                     "Test loss", "Test accuracy (%)", "seconds"):
            self.assertIn(text, texts)

    def test_other_measures_and_courses_by_worker(self):
        run = self.run_directory("a")
        self.cohort("plot", run, "--by", "worker", "--y", "train-loss", "--x", "megabytes",
                    "-o", "a.svg")
        texts = self.texts("a.svg")
        self.assertIn("sent by all workers (MB)", texts)
        self.assertIn("worker 1", texts)
        self.assertFalse([text for text in texts if text.startswith("server")])
        self.cohort("plot", run, "--by", "run", "-o", "b.svg")
        self.assertIn("Training loss", self.texts("b.svg"))
        self.assertNotIn("worker 0", self.texts("b.svg"))

    def test_runs_side_by_side_show_their_servers(self):
        runs = [self.run_directory("a"), self.run_directory("b", lr=2)]
        self.cohort("plot", *runs, "--y", "dump-top1", "--x", "epoch", "-o", "a.svg")
        texts = self.texts("a.svg")
        self.assertIn("a", texts)
        self.assertIn("b", texts)
        self.assertIn("90.0", texts, "the server's last accuracy")


class Mistakes(ReportTest):
    def refused(self, *arguments, says, status=2):
        result = self.cohort("report", *arguments, status=status)
        for text in says:
            self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertFalse(list(self.folder.glob("*.html")) + list(self.folder.glob("*.pdf")))

    def test_folders_that_are_no_runs(self):
        self.refused("runs/absent", "-o", "a.html", says=["there is no run directory runs/absent"])
        (self.folder / "other").mkdir()
        self.refused("other", "-o", "a.html", says=["no run.json"])
        self.refused("-o", "a.html", says=["runs"])

    def test_runs_without_any_record(self):
        run = self.folder / "runs" / "fresh"
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
        self.refused(run, "-o", "a.html", says=["no records yet"])

    def test_files_that_cannot_be_written(self):
        run = self.run_directory("a")
        self.refused(run, "-o", "a.txt", says=["a.txt", ".pdf or .html"])
        self.refused(run, "-o", "absent/a.html", status=1,
                     says=["cannot write absent/a.html: there is no folder absent"])
        self.refused(run, "-o", "a.html", "-o", "b.doc", says=["b.doc"])
        if os.geteuid() != 0:
            (self.folder / "closed").mkdir(mode=0o500)
            self.refused(run, "-o", "closed/a.html", status=1, says=["closed/"])

    def test_labels_must_be_as_many_as_runs(self):
        self.refused(self.run_directory("a"), "--label", "a", "--label", "b", "-o", "a.html",
                     says=["1 run", "2 labels"])

    def test_a_build_without_cairo_says_so_before_anything_is_written(self):
        if self.can_write_pdf():
            self.skipTest("built with Cairo")
        self.refused("runs/probe", "-o", "a.html", "-o", "a.pdf", says=["without Cairo", ".html"])

    def test_unknown_ways_to_plot(self):
        run = self.run_directory("a")
        result = self.cohort("plot", run, "--by", "workers", "-o", "a.svg", status=2)
        self.assertIn("did you mean 'worker'", result.stderr)


if __name__ == "__main__":
    program.main()
