#!/usr/bin/env python3
"""clang-tidy on the files of src/, by the commands of a configured build tree.

    lint.py [-j JOBS] BUILD            all of them
    lint.py [-j JOBS] BUILD COMMIT     those that differ from COMMIT, uncommitted changes included;
                                       all where .clang-tidy does

Files that are compiled together (COHORT_UNITY) are checked together, so that headers, which take
most of the time, are read once for all. A header is checked where one .cpp file includes it.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def includes_of(path):
    return re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE)


def units_of(build):
    """{source in src/: the entry of compile_commands.json that compiles it}"""
    units = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        unit = pathlib.Path(entry["file"])
        for source in includes_of(unit) if "Unity" in unit.parts else [unit]:
            name = pathlib.Path(source).relative_to(ROOT).as_posix()
            if name.startswith("src/"):
                units[name] = entry
    return units


def unit_with(file, units, included_by):
    """What compiles the file or, of a header, a source that includes it; None: nothing does."""
    reached = [file]
    for each in reached:
        if each in units:
            return units[each]
        users = [re.sub(r"\.h$", ".cpp", each), *included_by.get(each, [])]
        reached += [user for user in users if user not in reached]
    return None


def check(entry, build, names):
    command = ["clang-tidy", "-p", build, "--quiet", "--extra-arg=-Wno-unknown-warning-option",
               "--line-filter=" + json.dumps([{"name": name} for name in names])]
    if "torch/csrc/api/include" in entry["command"]:  # clang 14 wants IValue complete before ATen/ops
        command += ["--extra-arg=-include", "--extra-arg=ATen/core/ivalue.h"]
    done = subprocess.run([*command, entry["file"]], text=True, capture_output=True)
    return done.returncode, done.stdout.strip() or done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", dest="jobs", type=int, default=1)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("commit", nargs="?")
    options = parser.parse_args()

    wanted = git("ls-files", "src/*.cpp", "src/*.h")
    if options.commit and not git("diff", "--name-only", options.commit, "--", ".clang-tidy"):
        wanted = git("diff", "--name-only", "--diff-filter=d", options.commit, "--",
                     "src/*.cpp", "src/*.h")
    included_by = {}
    for file in git("ls-files", "src/*.cpp", "src/*.h"):
        for header in includes_of(ROOT / file):
            included_by.setdefault("src/" + header, []).append(file)

    units = units_of(options.build)
    entries = {}
    left_out = []
    for file in wanted:
        entry = unit_with(file, units, included_by)
        if entry:
            entries[entry["file"]] = entry
        else:
            left_out.append(file)
    if left_out:
        print("lint: not compiled here, and not checked:", ", ".join(left_out))

    shown = set()
    failed = False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # The uppermost layers take longest.
        for status, text in pool.map(lambda entry: check(entry, options.build, wanted),
                                     reversed(entries.values())):
            failed |= status != 0
            for finding in re.split(r"\n(?=/)", text) if status else []:
                if finding not in shown:
                    print(finding, flush=True)
                shown.add(finding)
    if failed:
        sys.exit(1)
    print(f"lint: {len(wanted) - len(left_out)} files are clean")


if __name__ == "__main__":
    main()
