#!/usr/bin/env python3
"""Plants known bugs in a copy of the server's sources.

    plant_bugs.py BUGS FROM TO FILE...    writes TO/FILE for each FROM/FILE, and TO/planted_bugs.h

BUGS says what it looks like. A change whose old lines are not in its file exactly once is an error:
none is lost when the sources change. What is up to date is not written again.
"""
import pathlib
import re
import sys
import typing

HEADER = """// Made by plant_bugs.py.
#pragma once

#include <string_view>

namespace cohort {{

inline constexpr const char* kBugs[] = {{{}}};
inline thread_local std::string_view planted_bug;  // the one that is switched on; empty: none
inline bool planted(std::string_view bug) {{ return bug == planted_bug; }}

}}  // namespace cohort
"""


class Change(typing.NamedTuple):
    line: int  # of the list of bugs
    bug: str
    file: str
    old: list
    new: list


def read(path):
    """The names of the bugs and their changes, in the order of the list."""
    names, changes = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := re.fullmatch(r"bug ([a-z-]+): .+", line):
            names.append(found[1])
        elif names and (found := re.fullmatch(r"in (\S+)", line)):
            changes.append(Change(number, names[-1], found[1], [], []))
        elif changes and changes[-1].bug == names[-1] and line[:1] in {" ", "-", "+"}:
            mark, text = line[0], line[1:]
            if mark != "+":
                changes[-1].old.append(text)
            if mark == "+":
                text = re.sub(r"\bplanted\b", f'planted("{names[-1]}")', text)
            if mark != "-":
                changes[-1].new.append(text)
        elif line and not line.startswith("#"):
            sys.exit(f"{path}:{number}: neither a bug nor a change: {line}")
    return names, changes


def plant(change, lines):
    """Changes `lines`, or returns what is wrong."""
    if not any(f'planted("{change.bug}")' in line for line in change.new):
        return "does not ask whether the bug is `planted`"
    count = len(change.old)
    places = [i for i in range(len(lines)) if count and lines[i:i + count] == change.old]
    if len(places) != 1:
        return "\n".join([f"needs these lines once, not {len(places)} times:", *change.old])
    lines[places[0]:places[0] + count] = change.new
    return None


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(bugs, source, target, *files):
    texts = {file: (pathlib.Path(source) / file).read_text().split("\n") for file in files}
    names, changes = read(pathlib.Path(bugs))
    wrong = []
    for change in changes:
        known = change.file in texts
        problem = plant(change, texts[change.file]) if known else "is none of the server's sources"
        if problem:
            wrong.append(f"{bugs}:{change.line}: bug {change.bug}, {change.file}: {problem}")
    if wrong:
        sys.exit("\n".join(wrong))
    for file in {change.file for change in changes}:
        texts[file].insert(0, '#include "planted_bugs.h"')
    for file, lines in texts.items():
        write(pathlib.Path(target) / file, "\n".join(lines))
    listed = ", ".join(f'"{name}"' for name in names)
    write(pathlib.Path(target) / "planted_bugs.h", HEADER.format(listed))


if __name__ == "__main__":
    main(*sys.argv[1:])
