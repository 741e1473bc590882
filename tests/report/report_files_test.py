"""Reads written reports with parsers that are not ours.

    python3 report_files_test.py DRAW_REPORT [unittest arguments]
"""

import html.parser
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DRAW = ""
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(html.parser.HTMLParser):
    """Checks that tags nest, and collects what a reader sees."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts = [], [], [], {}
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cohort-report-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_directory(self, name, final=0.05, dumps=20, **config):
        folder = self.folder / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({
            "config": {"method": "swamp", "model": "net", "data": "digits", "workers": 2, **config},
            "command": ["cohort", "train", "--name", name], "steps_per_epoch": dumps,
            "data": {"train_samples": 640, "test_samples": 10000}}))
        lines = []
        for worker in range(2):
            series = folder / "dumps" / f"trainer_{worker}"
            series.mkdir(parents=True)
            for i in range(dumps):
                loss = final + 2 * math.exp(-i / 4)
                (series / f"model_params_trainer_{worker}_epoch_0_batch_{i}_sec_{i}.eval").write_text(
                    f"{loss:.6f}_{1 - loss / 3:.6f}_{i + 0.5}")
                lines.append({"type": "step", "rank": worker, "step": i + 1, "epoch": (i + 1) / dumps,
                              "time_seconds": i + 0.5, "loss": loss, "samples": 32, "steps": 1,
                              "compute_seconds": 0.9, "bytes_sent": 1000})
        server = folder / "dumps" / "ps"
        server.mkdir()
        for i in range(4):
            (server / f"model_params_ps_model_version_{i + 1}_sec_{5 * i}.eval").write_text(
                f"{final + 2 * math.exp(-i)}_{1 - final:.4f}_{5 * i + 0.25}")
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    def write(self, out, *runs):
        result = subprocess.run([DRAW, self.folder / out, *runs], capture_output=True, text=True,
                                timeout=60)
        if result.returncode == 3:
            self.skipTest("built without Cairo")
        self.assertEqual(result.returncode, 0, result.stderr)
        return (self.folder / out).read_bytes()

    def several(self, count=5):
        return [self.run_directory(f"run-{i}", final=0.02 + 0.01 * i, **{"pull-probability": i / 4})
                for i in range(count)]

    def tool(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f"no {command[0]} here")
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    def test_html_is_whole_and_needs_nothing_from_outside(self):
        text = self.write("a.html", *self.several()).decode("utf-8")
        page = Page(text)
        self.assertNotIn("script", page.tags)
        for name, value in page.attributes:
            self.assertFalse(name in ("src", "href", "srcset") or name.startswith("on"), name)
            if name != "xmlns":
                self.assertNotIn("//", value or "")
        self.assertNotIn("url(", text)
        self.assertNotIn("@import", text)
        self.assertEqual(page.texts["title"][0], "net on digits: 5 runs")

    def test_html_has_a_row_and_a_figure_for_each_run(self):
        page = Page(self.write("a.html", *self.several()).decode("utf-8"))
        self.assertEqual(page.tags.count("tr"), 1 + 5)
        self.assertEqual(page.tags.count("td") % 5, 0)
        self.assertEqual(page.tags.count("td") // 5, page.tags.count("th"))
        cells = page.texts["td"]
        for i in range(5):
            self.assertIn(f"run-{i}", cells)
            self.assertIn("%.2f" % (98 - i), cells, "the server's accuracy")
        self.assertGreaterEqual(page.tags.count("svg"), 5 + 2)
        self.assertIn("98.00%", " ".join(page.texts["li"]))

    def test_a_pdf_has_numbered_a4_pages_with_text_and_a_title(self):
        self.write("a.pdf", *self.several())
        path = str(self.folder / "a.pdf")
        facts = dict(re.findall(r"^(\S[^:]*):\s+(.*)$", self.tool("pdfinfo", path), re.MULTILINE))
        self.assertEqual(facts["Title"], "net on digits: 5 runs")
        self.assertIn("A4", facts["Page size"])
        pages = self.tool("pdftotext", "-layout", path, "-").split("\f")[:-1]
        self.assertEqual(len(pages), int(facts["Pages"]))
        for number, page in enumerate(pages, 1):
            self.assertRegex(page, rf"{number} ?/ ?{len(pages)}")
        words = " ".join(pages)
        for text in ("What was run", "Results", "Conclusion", "cohort train --name run-3", "97.00"):
            self.assertIn(text, words)
        self.assertLess(words.index("Conclusion"), words.index("Results"))

    def test_a_pdf_is_drawn_in_lines_with_its_fonts_inside(self):
        self.write("a.pdf", *self.several(2))
        path = str(self.folder / "a.pdf")
        fonts = self.tool("pdffonts", path).splitlines()[2:]
        self.assertTrue(fonts)
        for font in fonts:
            self.assertRegex(font, r"\byes\s+yes\s+yes\b", "embedded, a subset, with its characters")
        self.assertEqual(len(self.tool("pdfimages", "-list", path).splitlines()), 2, "no pictures")

    def test_any_pdf_begins_and_ends_as_one(self):
        content = self.write("a.pdf", *self.several(1))
        self.assertTrue(content.startswith(b"%PDF-1."))
        self.assertTrue(content.rstrip().endswith(b"%%EOF"))

    def test_figures_alone_stand_two_a_row_without_margins(self):
        content = self.write("figures.pdf", *self.several(3))
        self.assertTrue(content.startswith(b"%PDF-1."))
        text = self.tool("pdftotext", "-layout", str(self.folder / "figures.pdf"), "-")
        rows = [line for line in text.splitlines() if "run-" in line]
        self.assertEqual([re.findall(r"run-\d", row) for row in rows], [["run-0", "run-1"], ["run-2"]])

    def test_a_folder_stands_for_its_runs(self):
        self.several(3)
        page = Page(self.write("a.html", self.folder / "runs").decode("utf-8"))
        self.assertEqual(page.tags.count("tr"), 1 + 3)

    def test_hostile_names_are_only_text(self):
        names = ["<script>alert(1)<", "]]>&lt;'\"", "--><svg onload=x>", "ü汉"]
        runs = [self.run_directory(name, lr=i) for i, name in enumerate(names)]
        page = Page(self.write("a.html", *runs).decode("utf-8"))
        for name in names:
            self.assertIn(name, page.texts["td"])
        self.assertNotIn("script", page.tags)


if __name__ == "__main__":
    DRAW = sys.argv[1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
