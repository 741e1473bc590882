#!/usr/bin/env python3
"""Fails when a document does not say what the sources say.

    check_docs.py [ROOT]           checks ROOT/docs and ROOT/*.md; ROOT defaults to this project
    check_docs.py --write [ROOT]   first writes the table of settings anew

Checked:
  - the table in docs/configuration.md is the one of src/config/fields*.cpp, defaults included;
  - every model is named in docs/models.md, every data set in docs/data.md;
  - every field of metrics.jsonl is named in docs/run_directory.md;
  - every relative link leads somewhere.
"""
import pathlib
import re
import sys

FIELD = re.compile(
    r'\{"(?P<name>[\w-]+)",\s*(?P<group>k\w+),\s*&C::(?P<member>\w+),\s*"(?P<help>[^"]*)",\s*'
    r'(?P<low>[^,]+),\s*(?P<high>[^,]+),\s*\{(?P<choices>[^}]*)\}\}')
MEMBER = re.compile(r"^  (?P<type>[\w:<>]+) (?P<name>\w+)(?: = (?P<value>[^;]+))?;", re.MULTILINE)
GROUP = re.compile(r'(?:constexpr const char\*|const char\* const) (k\w+) = "([^"]+)";')
CONSTANT = re.compile(r"constexpr double (k\w+) = ([\w.]+);")
ENTRY = re.compile(r'\{\s*"([\w-]+)",\s*"[^"]* [^"]*",')  # a name and words about it
RECORD_FIELD = re.compile(r'visit\("(\w+)"')
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
MARKS = ("<!-- settings: tools/check_docs.py --write -->\n", "<!-- end of settings -->\n")


def number_text(text, constants):
    value = eval(constants.get(text, text), {"__builtins__": {}})  # 1 << 24, 1e-6, kMaxCount
    if value == int(value) and abs(value) < 1e8:
        return str(int(value))
    return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")


def permitted(field, kind, constants):
    if field["choices"].strip():
        return ", ".join(f"`{choice}`" for choice in re.findall(r'"([^"]+)"', field["choices"]))
    if kind == "bool":
        return "`true`, `false`"
    if kind == "std::string":
        return "a name or path"
    low, high = (number_text(field[end].strip(), constants) for end in ("low", "high"))
    plural = "each " if kind.startswith("std::vector") else ""
    return plural + (f"from {low}" if float(high) >= 1e15 else f"{low} to {high}")


def settings_table(root):
    """The settings by group, as Markdown."""
    files = [root / "src/config" / name
             for name in ("fields_of_methods.h", "fields.cpp", "fields_of_methods.cpp")]
    source = "".join(file.read_text() for file in files if file.exists())
    members = {found["name"]: found for found in
               MEMBER.finditer((root / "src/config/run_config.h").read_text())}
    groups, constants = dict(GROUP.findall(source)), dict(CONSTANT.findall(source))
    fields = list(FIELD.finditer(source))
    listed = source.count("&C::")
    if len(fields) != listed:
        raise ValueError(f"src/config lists {listed} settings, {len(fields)} were understood")
    lines, group = [], None
    for field in fields:
        if field["group"] != group:
            group = field["group"]
            lines += ["", f"### {groups[group]}", "", "| setting | default | permitted | meaning |",
                      "|---|---|---|---|"]
        member = members[field["member"]]
        default = (member["value"] or "").strip('"{}').replace(", ", ",")
        lines.append(f"| `{field['name']}` | {f'`{default}`' if default else 'empty'} "
                     f"| {permitted(field, member['type'], constants)} | {field['help']} |")
    return "\n".join(lines[1:]) + "\n"


def with_table(text, table):
    before, rest = text.split(MARKS[0])
    return before + MARKS[0] + table + MARKS[1] + rest.split(MARKS[1])[1]


def unnamed(root, document, source, pattern):
    text = (root / "docs" / document).read_text()
    for name in pattern.findall((root / source).read_text()):
        if f"`{name}`" not in text:
            yield f"docs/{document}: does not name `{name}` of {source}"


def problems(root):
    settings = root / "docs/configuration.md"
    if with_table(settings.read_text(), settings_table(root)) != settings.read_text():
        yield "docs/configuration.md: not as src/config/ says; run tools/check_docs.py --write"
    yield from unnamed(root, "models.md", "src/models/registry.cpp", ENTRY)
    yield from unnamed(root, "data.md", "src/data/registry.cpp", ENTRY)
    yield from unnamed(root, "run_directory.md", "src/metrics/record_fields.h", RECORD_FIELD)
    for document in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        for target in LINK.findall(document.read_text()):
            if not (document.parent / target).exists():
                yield f"{document.relative_to(root)}: the link to {target} leads nowhere"


def main(arguments):
    write = arguments[:1] == ["--write"]
    arguments = arguments[1:] if write else arguments
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    if write:
        settings = root / "docs/configuration.md"
        settings.write_text(with_table(settings.read_text(), settings_table(root)))
    found = list(problems(root))
    print("\n".join(found) or "documents agree with the sources")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
