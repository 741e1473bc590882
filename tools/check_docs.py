#!/usr/bin/env python3
"""Fails when a document does not say what the program and the sources say.

    check_docs.py [--program build/dev/cohort]
    check_docs.py --write      first writes the table of settings anew, as build/dev/cohort lists them

Checked:
  - the table in docs/configuration.md is that of the program, if it is given;
  - every model, data set, method, compressor and topology is named in its document;
  - every field of metrics.jsonl is named in docs/run_directory.md;
  - every relative link leads somewhere.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r'\{\s*"([\w-]+)",\s*"[^"]* [^"]*",')  # a name and words about it
RECORD_FIELD = re.compile(r'visit\("(\w+)"')
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
MARKS = ("<!-- settings: tools/check_docs.py --write -->\n", "<!-- end of settings -->\n")


def number_text(value):
    if value == int(value) and abs(value) < 1e8:
        return str(int(value))
    return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")


def permitted(setting):
    if "choices" in setting:
        return ", ".join(f"`{choice}`" for choice in setting["choices"]) or "a name or path"
    low, high = setting["lowest"], setting["highest"]
    return ("each " if setting["several"] else "") + (
        f"from {number_text(low)}" if high >= 1e15 else f"{number_text(low)} to {number_text(high)}")


def settings_table(program):
    """The settings by group, as Markdown."""
    listed = subprocess.run([program, "list", "settings", "--json"], check=True,
                            stdout=subprocess.PIPE)
    lines, group = [], None
    for setting in json.loads(listed.stdout)["settings"]:
        if setting["group"] != group:
            group = setting["group"]
            lines += ["", f"### {group}", "", "| setting | default | permitted | meaning |",
                      "|---|---|---|---|"]
        default = setting["default"].replace("e-0", "e-")
        default = f"`{default}`" if default else "empty"
        lines.append(f"| `{setting['name']}` | {default} | {permitted(setting)} "
                     f"| {setting['description']} |")
    return "\n".join(lines[1:]) + "\n"


def with_table(text, table):
    before, rest = text.split(MARKS[0])
    return before + MARKS[0] + table + MARKS[1] + rest.split(MARKS[1])[1]


def unnamed(root, document, source, pattern):
    text = (root / "docs" / document).read_text()
    for name in pattern.findall((root / source).read_text()):
        if f"`{name}`" not in text and f"## {name}\n" not in text:
            yield f"docs/{document}: does not name `{name}` of {source}"


def problems(root, program):
    settings = root / "docs/configuration.md"
    if program and with_table(settings.read_text(), settings_table(program)) != settings.read_text():
        yield "docs/configuration.md: not as the program says; run tools/check_docs.py --write"
    yield from unnamed(root, "models.md", "src/models/registry.cpp", ENTRY)
    yield from unnamed(root, "data.md", "src/data/registry.cpp", ENTRY)
    yield from unnamed(root, "methods.md", "src/methods/registry.cpp", ENTRY)
    yield from unnamed(root, "compressors.md", "src/compressors/registry.cpp", ENTRY)
    yield from unnamed(root, "topologies.md", "src/topology/registry.cpp", ENTRY)
    yield from unnamed(root, "run_directory.md", "src/metrics/record_fields.h", RECORD_FIELD)
    for document in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for target in LINK.findall(document.read_text()):
            if not (document.parent / target).exists():
                yield f"{document.relative_to(root)}: the link to {target} leads nowhere"


def main():
    root = pathlib.Path(__file__).parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="first write the table of settings anew")
    parser.add_argument("--program", help="cohort, which is asked for its settings")
    arguments = parser.parse_args()
    if arguments.write:
        settings = root / "docs/configuration.md"
        table = settings_table(arguments.program or root / "build/dev/cohort")
        settings.write_text(with_table(settings.read_text(), table))
    found = list(problems(root, arguments.program))
    print("\n".join(found) or "documents agree with the sources")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
