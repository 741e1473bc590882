"""Reads drawn files with parsers that are not ours.

    python3 pictures_test.py DRAW_PICTURES [unittest arguments]
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

DRAW = ""
SVG = "{http://www.w3.org/2000/svg}"
BLUE, VERMILION = (0, 114, 178), (213, 94, 0)


def read_png(content):
    """Width, height and rows of (red, green, blue), written from the format's description."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        body = content[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", content[at + 8 + length:][:4])[0]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
            assert (depth, colours, body[12]) == (8, 2, 0), "8-bit RGB without interlacing"
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    data, rows = zlib.decompress(data), []
    stride, before = 3 * width, bytearray(3 * width)
    for y in range(height):
        method, line = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:][:stride])
        for i in range(stride):
            left = line[i - 3] if i >= 3 else 0
            up, corner = before[i], before[i - 3] if i >= 3 else 0
            if method == 4:
                guess = left + up - corner
                near = min((left, up, corner), key=lambda value: abs(guess - value))
            else:
                near = (0, left, up, (left + up) // 2)[method]
            line[i] = (line[i] + near) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, stride, 3)])
        before = line
    return width, height, rows


class PictureTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cohort-pictures-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_directory(self, name, losses, **config):
        folder = self.folder / name
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({"config": config}))
        lines = [json.dumps({"type": "step", "step": 10 * i, "epoch": i, "time_seconds": i,
                             "loss": loss, "samples": 64}) for i, loss in enumerate(losses, 1)]
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        return folder

    def draw(self, out, x, y, *runs):
        result = subprocess.run([DRAW, self.folder / out, x, y, *runs], capture_output=True,
                                text=True, timeout=60)
        if result.returncode == 3:
            self.skipTest("built without Cairo")
        self.assertEqual(result.returncode, 0, result.stderr)
        return (self.folder / out).read_bytes()

    def svg(self, *arguments):
        return xml.etree.ElementTree.fromstring(self.draw("a.svg", *arguments))

    def test_the_curve_passes_where_the_numbers_along_the_axes_say(self):
        losses = [2.5, 1.25, 0.75, 0.5, 0.375]
        root = self.svg("step", "train-loss", self.run_directory("a", losses))
        at_x, at_y = {}, {}
        for text in root.iter(SVG + "text"):
            try:
                value = float(text.text)
            except ValueError:
                continue
            if text.get("text-anchor") == "middle":
                at_x[value] = float(text.get("x"))
            elif text.get("text-anchor") == "end":
                # The middle of the digits is at the value.
                at_y[value] = float(text.get("y")) - 0.36 * float(text.get("font-size"))

        def place(value, ticks):
            low, high = min(ticks), max(ticks)
            return ticks[low] + (value - low) / (high - low) * (ticks[high] - ticks[low])

        curve = [line for line in root.iter(SVG + "polyline")
                 if line.get("stroke") == "#0072b2"][-1]
        points = [tuple(map(float, pair.split(","))) for pair in curve.get("points").split()]
        self.assertEqual(len(points), len(losses))
        for i, (x, y) in enumerate(points):
            self.assertAlmostEqual(x, place(10 * (i + 1), at_x), delta=0.05)
            self.assertAlmostEqual(y, place(losses[i], at_y), delta=0.05)

    def test_hostile_names_are_only_text(self):
        names = ["<script>alert(1)<", "]]>&lt;'\"", "--><svg onload=x>", "a\x01\x1b[31m", "ü汉"]
        runs = [self.run_directory(name, [1, 2], lr=i) for i, name in enumerate(names)]
        broken = self.folder / "b"
        self.run_directory("b", [1, 2], lr=99)
        invalid = bytes(self.folder) + b"/\xff\xfe"
        shutil.move(bytes(broken), invalid)
        root = self.svg("epoch", "train-loss", *runs, invalid)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        self.assertEqual(tags, {"svg", "title", "rect", "polyline", "polygon", "text"})
        for element in root.iter():
            for name in element.attrib:
                self.assertFalse(name.lower().startswith("on") or "href" in name, name)
        shown = [text.text for text in root.iter(SVG + "text")]
        for name in names[:3] + ["a\ufffd\ufffd[31m", "ü汉", "\ufffd\ufffd"]:
            self.assertIn(name, shown)

    def test_a_model_name_becomes_an_escaped_title(self):
        root = self.svg("epoch", "train-loss",
                        self.run_directory("a", [1, 2], model="<m>", data="&d"))
        self.assertEqual(root.find(SVG + "title").text, "<m> on &d")

    def test_a_png_shows_both_curves_in_their_colours(self):
        runs = [self.run_directory("low", [1] * 20, lr=1),
                self.run_directory("high", [2] * 20, lr=2)]
        content = self.draw("a.png", "epoch", "train-loss", *runs)
        width, height, rows = read_png(content)
        root = xml.etree.ElementTree.fromstring(
            self.draw("a.svg", "epoch", "train-loss", *runs))
        self.assertEqual((width, height), (int(root.get("width")), int(root.get("height"))))
        self.assertEqual(rows[0][0], (255, 255, 255))
        for colour in (BLUE, VERMILION):
            stroke = "#%02x%02x%02x" % colour
            line = [each for each in root.iter(SVG + "polyline")
                    if each.get("stroke") == stroke][-1]
            (left, y), *_, (right, _) = [tuple(map(float, pair.split(",")))
                                         for pair in line.get("points").split()]
            across = [rows[round(y) - dy][x] for x in range(round(left), round(right))
                      for dy in (0, 1)]
            near = sum(all(abs(a - b) < 40 for a, b in zip(pixel, colour)) for pixel in across)
            self.assertGreater(near, 0.3 * (right - left), stroke)

    def test_equal_runs_give_equal_files(self):
        run = self.run_directory("a", [3, 2, 1])
        for out in ("a.svg", "a.png"):
            self.assertEqual(self.draw(out, "epoch", "train-loss", run),
                             self.draw(out, "epoch", "train-loss", run))


if __name__ == "__main__":
    DRAW = sys.argv[1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
