"""Graphs of workers and their step size: `cohort topology`, `cohort tune`."""

import json
import math
import xml.etree.ElementTree

import program
from program import ProgramTest

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"expander": 7, "margulis-expander": 9, "social": 32}  # where 8 does not exist


class TopologyTest(ProgramTest):
    def graph(self, name, workers, *arguments):
        return json.loads(self.cohort("topology", name, "-n", workers, "--json", *arguments).stdout)

    def names(self):
        listed = json.loads(self.cohort("list", "topologies", "--json").stdout)["topologies"]
        return [entry["name"] for entry in listed]

    def test_every_listed_topology_is_described_in_text_and_json(self):
        (self.folder / "graph.txt").write_text("".join(f"{i} {i + 1}\n" for i in range(7)))
        for name in self.names():
            extra = ["--edges", "graph.txt"] if name == "edges" else []
            size = SIZES.get(name, 8)
            graph = self.graph(name, size, *extra)
            self.assertEqual(graph["workers"], size)
            self.assertEqual(len(graph["steps"]), graph["period"])
            for ranks in graph["steps"]:
                columns = [rank["kept"] for rank in ranks]
                for rank in ranks:
                    heard = sum(each["weight"] for each in rank["neighbours"])
                    self.assertAlmostEqual(rank["kept"] + heard, 1, 12, name)
                    for each in rank["neighbours"]:
                        columns[each["rank"]] += each["weight"]
                        self.assertIn(rank["rank"], ranks[each["rank"]]["receivers"], name)
                for column in columns:
                    self.assertAlmostEqual(column, 1, 12, name)
            text = self.cohort("topology", name, "-n", size, *extra).stdout
            self.assertIn(f"{name} of {size} workers", text)
            self.assertIn(f"{graph['spectral_gap']:.4f}", text)

    def test_numbers_are_those_of_the_literature(self):
        ring = self.graph("ring", 8)
        self.assertAlmostEqual(ring["spectral_gap"], (2 - 2 * math.cos(math.pi / 4)) / 3, 12)
        self.assertEqual(ring["steps_to_a_tenth"], 11)
        social = self.graph("social", 32)
        self.assertEqual((social["edges"], social["degree"]["least"], social["degree"]["most"]),
                         (89, 2, 14))
        self.assertAlmostEqual(social["spectral_gap"], 0.0903, 4)

    def test_long_tables_are_cut_and_say_so(self):
        text = self.cohort("topology", "complete", "-n", 64).stdout
        self.assertIn("56 more; --json has them all", text)
        self.assertLess(len(text.splitlines()), 30)

    def test_seed_and_degree_choose_a_random_graph(self):
        first = self.graph("random-regular", 20, "--degree", 4, "--seed", 1)
        self.assertEqual(first["degree"], {"least": 4, "mean": 4.0, "most": 4})
        self.assertEqual(first, self.graph("random-regular", 20, "--degree", 4, "--seed", 1))
        self.assertNotEqual(first, self.graph("random-regular", 20, "--degree", 4, "--seed", 2))

    def test_the_graph_is_drawn(self):
        for name, nodes in (("ring", 8), ("torus", 12), ("one-peer-exponential", 8), ("star", 5)):
            self.cohort("topology", name, "-n", nodes, "--svg", "graph.svg")
            root = xml.etree.ElementTree.parse(self.folder / "graph.svg").getroot()
            texts = [text.text for text in root.iter(SVG + "text")]
            self.assertEqual(texts[0], f"{name} of {nodes} workers")
            self.assertEqual(texts[-nodes:], [str(node) for node in range(nodes)])
        process = self.start("topology", "ring", "-n", 8, "--png", "graph.png")
        _, errors = process.communicate(timeout=program.patiently(60))
        if process.returncode == 0:
            self.assertEqual((self.folder / "graph.png").read_bytes()[1:4], b"PNG")
        else:
            self.assertIn("without Cairo", errors)

    def test_mistakes_are_answered_with_the_nearest_that_exists(self):
        def refusal(*arguments):
            return self.cohort("topology", *arguments, status=2).stderr

        self.assertIn("7 or 11, not 8", refusal("expander", "-n", 8))
        self.assertIn("25 or 36, not 32", refusal("margulis-expander", "-n", 32))
        self.assertIn("8 or 16, not 12", refusal("hypercube", "-n", 12))
        self.assertIn("32, not 8", refusal("social", "-n", 8))
        self.assertIn("did you mean 'ring'?", refusal("rign", "-n", 8))
        self.assertIn("1 to 65536", refusal("ring", "-n", 0))
        self.assertIn("only random-regular", refusal("ring", "-n", 8, "--degree", 3))
        self.assertIn("needs the file", refusal("edges", "-n", 8))
        self.assertIn("end the name", refusal("ring", "-n", 8, "--svg", "graph.jpg"))
        (self.folder / "graph.txt").write_text("0 1\n2 2\n")
        self.assertIn("graph.txt:2: rank 2 cannot be its own",
                      refusal("edges", "-n", 3, "--edges", "graph.txt"))
        (self.folder / "graph.txt").write_text("0 1\n2 3\n")
        self.assertIn("not connected", refusal("edges", "-n", 4, "--edges", "graph.txt"))
        self.cohort("topology", "edges", "-n", 4, "--edges", "missing.txt", status=1)


class TuneTest(ProgramTest):
    QUICK = ["--dimension", 200, "--iterations", 200]

    def tune(self, *arguments):
        return json.loads(self.cohort("tune", "--json", *self.QUICK, *arguments).stdout)

    def test_the_best_step_size_falls_with_compression(self):
        none = self.tune("-n", 8, "--compressor", "none")
        top = self.tune("-n", 8, "--compressor", "top-k", "--compress-ratio", 0.95)
        self.assertAlmostEqual(none["gamma"], 1)
        self.assertLess(top["gamma"], 0.5)
        self.assertLess(top["theory"], top["gamma"])
        finished = [trial for trial in top["tried"] if trial["finished"]]
        self.assertEqual(min(trial["error"] for trial in finished), top["error"])

    def test_the_original_goal_finds_the_spectral_gap(self):
        found = self.tune("-n", 8, "--compressor", "none", "--original")
        self.assertEqual(found["goal"], "consensus")
        self.assertAlmostEqual(found["rate"], (1 + 2 * math.cos(math.pi / 4)) / 3, delta=0.02)

    def test_a_table_shows_what_was_tried(self):
        text = self.cohort("tune", "--topology", "torus", "-n", 9, "--compressor", "qsgd",
                           "--quantize-bits", 4, *self.QUICK).stdout
        self.assertIn("torus, 9 workers, qsgd with 4 bits", text)
        self.assertEqual(text.count("<- best"), 1)
        self.assertIn("given up", text)
        self.assertRegex(text.splitlines()[-1], r"^best [\d.]+, proved to converge [\d.e-]+, found")

    def test_what_cannot_be_tuned_is_refused(self):
        def refusal(*arguments, status=2):
            return self.cohort("tune", "-n", 8, *self.QUICK, *arguments, status=status).stderr

        self.assertIn("changes at every step",
                      refusal("--topology", "one-peer-exponential", "--compressor", "sign"))
        self.assertIn("did you mean 'top-k'?", refusal("--compressor", "topk"))
        self.assertIn("below 1", refusal("--compressor", "top-k", "--compress-ratio", 1))


if __name__ == "__main__":
    program.main()
