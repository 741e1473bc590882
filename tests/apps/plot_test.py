"""Curves of runs as files: `cohort plot`."""

import json
import os
import re
import unittest
import xml.etree.ElementTree

import program
from program import TINY, ProgramTest

SVG = "{http://www.w3.org/2000/svg}"


class PlotTest(ProgramTest):
    def run_directory(self, name, losses=(2, 1), evaluations=True, **config):
        """A run as `cohort train` would have written it."""
        folder = self.folder / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"config": {"method": "local", **config}}))
        records = []
        for i, loss in enumerate(losses, 1):
            records.append({"type": "step", "step": 10 * i, "epoch": i, "time_seconds": i,
                            "loss": loss, "top1": 0.5, "samples": 64})
            if evaluations:
                records.append({"type": "evaluation", "step": 10 * i, "epoch": i, "split": "test",
                                "time_seconds": i, "loss": loss, "top1": 0.1 * i})
        (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
        return folder

    def texts(self, path):
        root = xml.etree.ElementTree.parse(self.folder / path).getroot()
        return [text.text for text in root.iter(SVG + "text")]

    def curves(self, path):
        root = xml.etree.ElementTree.parse(self.folder / path).getroot()
        return [line for line in root.iter(SVG + "polyline") if line.get("stroke-width") == "2"]

    def plot(self, *arguments, out=("a.svg",), **options):
        flags = [part for path in out for part in ("--out", path)]
        return self.cohort("plot", *arguments, *flags, **options)

    def can_draw_png(self):
        probe = self.run_directory("probe")
        process = self.start("plot", probe, "--out", "probe.png")
        return "without Cairo" not in process.communicate(timeout=program.patiently(60))[1]


class Pictures(PlotTest):
    def test_trained_runs_are_drawn_with_their_methods_as_names(self):
        common = [*TINY, "--epochs", "2", "--record-every", "2"]
        self.train("a", *common)
        self.train("b", *common, "--method", "all-reduce", "--workers", "2")
        result = self.plot("runs/a", "runs/b")
        self.assertIn("a.svg", result.stdout)
        self.assertEqual(result.stderr, "")
        texts = self.texts("a.svg")
        for text in ("local", "all-reduce", "Training loss", "Test accuracy (%)",
                     "mlp-100 on synthetic"):
            self.assertIn(text, texts)
        self.assertEqual(len(self.curves("a.svg")), 2 + 2 * 2, "the legend and two panels")

    def test_one_panel_for_each_measure(self):
        run = self.run_directory("a")
        self.plot(run, "--y", "train-top1,test-loss", "--y", "lr", "--x", "step",
                  "--title", "Mine & yours", "--label", "first", "--width", "900", "--height", "350")
        texts = self.texts("a.svg")
        for text in ("Training accuracy (%)", "Test loss", "Learning rate", "step", "Mine & yours",
                     "first"):
            self.assertIn(text, texts)
        root = xml.etree.ElementTree.parse(self.folder / "a.svg").getroot()
        self.assertEqual((root.get("width"), root.get("height")), ("900", "350"))

    def test_flags_take_one_value_each_so_that_runs_may_follow(self):
        self.run_directory("a")
        self.run_directory("b")
        self.cohort("plot", "--out", "x.svg", "--y", "train-loss", "runs/a", "runs/b")
        self.assertIn("b", self.texts("x.svg"))

    def test_several_files_at_once(self):
        if not self.can_draw_png():
            self.skipTest("built without Cairo")
        self.plot(self.run_directory("a"), "--width", "400", "--height", "300", "--scale", "1.5",
                  out=("a.svg", "b.PNG"))
        content = (self.folder / "b.PNG").read_bytes()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(content[16:24], (600).to_bytes(4, "big") + (450).to_bytes(4, "big"))
        self.assertTrue(self.texts("a.svg"))

    def test_a_killed_run_is_drawn_and_the_torn_line_noted(self):
        run = self.run_directory("a", losses=(3, 2, 1))
        with open(run / "metrics.jsonl", "a") as file:
            file.write('{"type":"step","time_sec')
        result = self.plot(run, "--y", "train-loss")
        self.assertRegex(result.stderr, r"note: .*metrics\.jsonl: the last line is incomplete")
        self.assertEqual(len(self.curves("a.svg")[-1].get("points").split()), 3)

    def test_a_run_without_evaluations_yet_is_noted(self):
        self.run_directory("a", evaluations=False)
        self.run_directory("b")
        result = self.plot("runs/a", "runs/b")
        self.assertIn("runs/a has no test-top1 yet", result.stderr)
        self.plot("runs/a")
        self.assertIn("Training loss", self.texts("a.svg"))
        self.assertNotIn("Test accuracy (%)", self.texts("a.svg"))

    def test_a_run_under_way_can_be_drawn(self):
        process = self.start("train", *program.SLOWER, "--record-every", "1", "--epochs", "100",
                             "--name", "live")
        self.wait_for_step(process, self.folder / "runs" / "live", 3)
        self.plot("runs/live", "--y", "train-loss")
        self.assertIsNone(process.poll())
        self.assertTrue(self.curves("a.svg"))


class Mistakes(PlotTest):
    def refused(self, *arguments, says=(), status=2, **options):
        result = self.plot(*arguments, status=status, **options)
        for text in says:
            self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertFalse(list(self.folder.glob("*.svg")))

    def test_folders_that_are_no_runs(self):
        self.refused("runs/absent", says=["there is no run directory runs/absent"])
        self.run_directory("a")
        self.refused("runs", says=["not a run directory", "runs/a"])
        self.refused("runs/a/run.json", says=["a file"])
        (self.folder / "other").mkdir()
        self.refused("other", says=["no run.json"])
        self.refused(says=["runs"])

    def test_a_run_without_records(self):
        self.refused(self.run_directory("a", losses=()), says=["no records yet"])

    def test_names_that_nobody_knows_list_the_known(self):
        run = self.run_directory("a")
        self.refused(run, "--y", "test-accuracy", says=["test-accuracy", "test-top1", "train-loss"])
        self.refused(run, "--x", "days", says=["days", "epoch, step, seconds"])
        self.refused(run, "--y", "staleness", says=["no value of staleness"])

    def test_numbers_of_labels_and_sizes(self):
        run = self.run_directory("a")
        self.refused(run, "--label", "a", "--label", "b", says=["--label", "1 run", "2 labels"])
        self.refused(run, "--width", "10", says=["--width"])
        self.refused(run, "--smooth", "0", says=["--smooth"])

    def test_files_that_cannot_be_written(self):
        run = self.run_directory("a")
        self.refused(run, out=("a.pdf",), says=["a.pdf", ".svg or .png"])
        self.refused(run, out=("absent/a.svg",), status=1,
                     says=["cannot write absent/a.svg: there is no folder absent"])
        (self.folder / "folder.svg").mkdir()
        result = self.plot(run, out=("folder.svg",), status=1)
        self.assertIn("folder.svg: it is a folder", result.stderr)
        (self.folder / "folder.svg").rmdir()
        if os.geteuid() != 0:
            (self.folder / "closed").mkdir(mode=0o500)
            self.refused(run, out=("closed/a.svg",), status=1, says=["closed/"])

    def test_a_build_without_cairo_says_so_before_anything_is_written(self):
        if self.can_draw_png():
            self.skipTest("built with Cairo")
        self.refused("runs/probe", out=("a.svg", "a.png"), says=["without Cairo", ".svg"])

    def test_help_lists_what_can_be_drawn(self):
        text = re.sub(r"\s+", " ", self.cohort("plot", "--help").stdout)
        for name in ("train-loss", "test-top1", "consensus-distance", "epoch, step, seconds"):
            self.assertIn(name, text)


if __name__ == "__main__":
    program.main()
