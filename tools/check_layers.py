#!/usr/bin/env python3
"""Fails when a source file uses what its layer may not use.

    check_layers.py [ROOT]        checks ROOT/src; ROOT defaults to this project
    check_layers.py --self-test   plants one violation of each kind and expects to find it

Checked, each reported as file:line:
  - a file includes only its own layer and the layers ALLOWED to it;
  - a layer's CMakeLists.txt DEPENDS on nothing else, and on every layer its files include;
  - layers without libtorch include none of its headers and do not ask CMake for it;
  - nobody includes torch/torch.h (17 s a file) nor loads or saves with torch or pickle;
  - nothing below apps and launch touches the environment;
  - nobody compares the name of a method, a compressor or a topology, but for their own registry and
    dialects' words: what has to be known of them are traits of their entries;
  - what a layer declares is in namespace cohort::LAYER (of core: cohort itself), but for other
    layers' classes that are only named, in theirs;
  - no using-directive for a namespace of ours, in tests and examples neither;
  - no two headers define types of the same name in one namespace;
  - no class has more than 7 virtual member functions, destructors not counted.
"""
import pathlib
import re
import sys
import tempfile

TORCH_FREE = {
    "core", "config", "metrics", "storage", "network", "transport", "collectives", "topology",
    "compressors", "optimizers", "schedules", "data", "gossip", "membership",
    "server", "serving", "swamp", "report", "launch", "kernels",
}
ALLOWED = {  # layer: what it may include, besides itself
    "core": set(),
    "config": {"core"},
    "metrics": {"core"},
    "storage": {"core"},
    "network": {"core"},
    "membership": {"core", "network", "storage"},
    "transport": {"core", "network"},
    "collectives": {"core", "membership", "transport", "kernels"},
    "topology": {"core", "config"},
    "compressors": {"core", "config"},
    "optimizers": {"core"},
    "schedules": {"core"},
    "data": {"core", "storage"},
    "gossip": {"core", "topology", "compressors"},
    "server": {"core", "network", "storage", "optimizers", "schedules", "membership"},
    "serving": {"core", "network", "storage", "membership", "server"},
    "swamp": {"core", "network", "storage", "membership"},
    "report": {"core", "metrics", "storage"},
    "launch": {"core", "network", "transport", "collectives"},
    "kernels": {"core"},
    "models": {"core", "kernels"},
    "methods": {"core", "config", "network", "transport", "collectives", "topology", "compressors",
                "optimizers", "schedules", "gossip", "membership", "server", "serving", "swamp",
                "kernels", "models"},
    "engine": TORCH_FREE - {"launch", "report"} | {"models", "methods"},
    "runs": TORCH_FREE - {"report", "kernels"} | {"models", "methods", "engine"},
    "dialects": {"core", "config", "metrics", "methods", "engine"},
    "apps": TORCH_FREE - {"kernels"} | {"models", "methods", "engine", "runs", "dialects"},
}
MAY_READ_ENVIRONMENT = {"apps", "launch"}

INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')
TORCH_HEADER = re.compile(r"(torch|ATen|c10)/")
ENVIRONMENT = re.compile(r"\b(secure_getenv|getenv|setenv|unsetenv|putenv|environ)\b")
UNSAFE_LOAD = re.compile(r"\btorch::(load|save)\b|pickle", re.IGNORECASE)
BROKEN_IN_WHEELS = re.compile(r"\bremove_all\b")
NAME_COMPARISON = re.compile(r'(?<!update_)\b(?P<what>method|compressor|topology)\w*(\(\))?\s*[!=]=\s*"')
NAMESPACE = re.compile(r"^namespace (cohort(?:::\w+)*) \{\n", re.MULTILINE)
NAMED_ONLY = re.compile(r"(?:\s*(?:class|struct|enum class) \w+;)*\s*\}")
USING_OURS = re.compile(r"\busing\s+namespace\s+(?:cohort|(?:%s)\s*(?:::|;))" % "|".join(ALLOWED))
TYPE = re.compile(r"^(?:class|struct|enum(?: class)?) (\w+)(?: final)?(?: : [^;{]*)?\s*\{", re.MULTILINE)
CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{")
MOST_VIRTUAL = 7
# Comments and literals, in which any word may stand. Literals first: "//" may be inside them.
NOT_CODE = re.compile(
    r'R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL)
CMAKE_CALL = re.compile(r"cohort_library\s*\(([^)]*)\)")
CMAKE_KEYWORDS = {"TORCH", "PUBLIC_HEADERS", "SOURCES", "DEPENDS", "LINK", "LINK_PRIVATE"}


def blanked(text):
    """`text` without comments and literals, with its line breaks kept. Includes stay whole."""
    lines = text.splitlines()
    masked = [re.sub(r'"([^"]*)"', r"<\1>", line) if INCLUDE.match(line) else line
              for line in lines]
    return NOT_CODE.sub(lambda found: "\n" * found[0].count("\n"), "\n".join(masked))


def check_names(path, layer):
    """Yields (line, message) for parts that are told apart by their names."""
    if path.name == "registry.cpp":
        return
    for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
        found = NAME_COMPARISON.search(line.split("//")[0])
        if found and (layer != "dialects" or found["what"] == "method"):
            yield number, f"compares the name of a {found['what']}; give its registry entry a trait"


def check_interfaces(text):
    """Yields (line, message) for classes whose own body declares too many virtual functions."""
    for found in CLASS.finditer(text):
        depth, count = 1, 0
        for token in re.finditer(r"[{}]|\bvirtual\b(?!\s*~)", text[found.end():]):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if depth == 0:
                break
            count += token[0] == "virtual" and depth == 1
        if count > MOST_VIRTUAL:
            yield (text.count("\n", 0, found.start()) + 1,
                   f"{found[1]} has {count} virtual functions, of {MOST_VIRTUAL} at most; give those "
                   "that not every class needs an interface of their own")


def check_file(path, layer, included):
    """Yields (line, message) and adds the layers the file includes, with a place, to `included`."""
    yield from check_names(path, layer)
    text = blanked(path.read_text(errors="replace"))
    yield from check_interfaces(text)
    yield from check_namespaces(text, layer)
    for number, line in enumerate(text.split("\n"), 1):
        include = INCLUDE.match(line)
        if include:
            header = include[1]
            first = header.split("/")[0]
            if first in ALLOWED and "/" in header and first != layer:
                included.setdefault(first, f"{path}:{number}")
                if first not in ALLOWED[layer]:
                    yield number, f"{layer} may not include {first} ({header})"
            if header == "torch/torch.h":
                yield number, "torch/torch.h takes 17 s a file; include what is needed of ATen"
            if TORCH_HEADER.match(header) and layer in TORCH_FREE:
                yield number, f"{layer} does without libtorch ({header})"
        if layer not in MAY_READ_ENVIRONMENT and ENVIRONMENT.search(line):
            yield number, f"{layer} may not touch the environment; pass the value down from apps"
        if UNSAFE_LOAD.search(line):
            yield number, "files are safetensors; torch's own loader crashes on damaged ones"
        if BROKEN_IN_WHEELS.search(line):
            yield number, "libtorch's wheels export a broken remove_all; use storage's remove_tree"


def check_cmake(path, layer, included):
    """Yields (line, message) for the layer's cohort_library call."""
    text = re.sub(r"#[^\n]*", "", path.read_text())
    for call in CMAKE_CALL.finditer(text):
        number = text.count("\n", 0, call.start()) + 1
        keyword = None
        depends = set()
        for token in call[1].split()[1:]:
            if token in CMAKE_KEYWORDS:
                keyword = token
                if token == "TORCH" and layer in TORCH_FREE:
                    yield number, f"{layer} does without libtorch (TORCH)"
            elif keyword == "DEPENDS":
                depends.add(token)
        for name in sorted(depends - ALLOWED[layer] - {layer}):
            yield number, f"{layer} may not depend on {name} (DEPENDS)"
        for name in sorted(set(included) & ALLOWED[layer] - depends):
            yield number, f"DEPENDS lacks {name}, which {included[name]} includes"


def namespaces(text):
    """(name, place, what follows) of each namespace of ours."""
    found = list(NAMESPACE.finditer(text))
    ends = [space.start() for space in found[1:]] + [len(text)]
    for space, end in zip(found, ends):
        yield space[1], space.end(), text[space.end():end]


def check_types(source):
    """Yields 'file:line: message' for types that another header defines, too."""
    first = {}
    for path in sorted(source.rglob("*.h")):
        text = path.read_text(errors="replace")
        for name, place, body in namespaces(text):
            for found in TYPE.finditer(body):
                line = text.count("\n", 0, place + found.start()) + 1
                other = first.setdefault((name, found[1]), path)
                if other != path:
                    yield f"{path}:{line}: {found[1]} is defined in {other}, too"


def check_directives(root):
    """Yields 'file:line: message' for using-directives that hide from which layer a name comes."""
    for folder in ("src", "tests", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                text = blanked(path.read_text(errors="replace"))
                for found in USING_OURS.finditer(text):
                    yield (f"{path}:{text.count(chr(10), 0, found.start()) + 1}: "
                           "write the layer's name before what is used of it")


def check_namespaces(text, layer):
    """Yields (line, message) for what is declared in another layer's namespace."""
    own = "cohort" if layer == "core" else f"cohort::{layer}"
    for name, place, body in namespaces(text):
        inside = f"{name}::".startswith(f"{own}::")
        if layer == "core" and not ALLOWED.keys().isdisjoint(name.split("::")[1:2]):
            inside = False
        if not inside and not NAMED_ONLY.match(body):
            yield text.count("\n", 0, place), f"{layer} is in namespace {own}, not {name}"


def violations(root):
    """All of ROOT/src, as 'file:line: message'."""
    source = root / "src"
    if not source.is_dir():
        yield f"{source}:0: there is no such folder"
        return
    yield from check_types(source)
    yield from check_directives(root)
    for folder in sorted(path for path in source.iterdir() if path.is_dir()):
        layer = folder.name
        if layer not in ALLOWED:
            yield f"{folder}:0: unknown layer; say in tools/check_layers.py what it may include"
            continue
        included = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                for number, message in check_file(path, layer, included):
                    yield f"{path}:{number}: {message}"
        cmake = folder / "CMakeLists.txt"
        if cmake.exists():
            for number, message in check_cmake(cmake, layer, included):
                yield f"{cmake}:{number}: {message}"


PLANTED = {  # file, content, where the violation must be found, or None
    "src/core/a.h": ('#include "transport/b.h"\n', 1),
    "src/transport/b.h": ('#include "core/a.h"\n\n#include "topology/c.h"\n', 3),
    "src/transport/CMakeLists.txt": (
        "cohort_library(transport\n  SOURCES b.cpp\n  DEPENDS core models)\n", 1),
    "src/metrics/d.cpp": ('// std::getenv\nconst char* s = "getenv";\nauto v = std::getenv("A");\n',
                          3),
    "src/data/e.cpp": ("#include <ATen/core/Tensor.h>\n", 1),
    "src/models/f.h": ("/* torch::load\n*/\n#include <torch/torch.h>\n", 3),
    "src/models/g.cpp": ("#include <ATen/core/Tensor.h>\nvoid f() { torch::load(x, y); }\n", 2),
    "src/engine/h.cpp": ("#include <torch/csrc/jit/serialization/pickle.h>\n", 1),
    "src/storage/n.cpp": ("void f() {\n  std::filesystem::remove_all(p);\n}\n", 2),
    "src/collectives/i.cpp": ('#include "core/a.h"\n#include "transport/b.h"\n', None),
    "src/collectives/CMakeLists.txt": ("# none\ncohort_library(collectives DEPENDS core)\n", 2),
    "src/schedules/CMakeLists.txt": ("cohort_library(schedules TORCH SOURCES j.cpp)\n", 1),
    "src/apps/k.cpp": ('#include "engine/h.h"\nauto v = std::getenv("A");\n', None),
    "src/common/l.h": ("", 0),
    "src/network/r.h": ("namespace cohort::network {\nstruct Same {\n};\n}\n", None),
    "src/network/t.h": (
        "namespace cohort::network {\nstruct T {\n};\nclass Same final : public A {\n};\n}\n", 4),
    "src/transport/r.h": ("namespace cohort::transport {\nstruct Same {\n};\n}\n", None),
    "src/report/u.h": (
        "namespace cohort::storage {\nclass Named;\nstruct Another;  // file.h\n}\n\n"
        "namespace cohort::storage {\nclass Named;\nvoid f();\n}\n"
        "namespace cohort::report::detail {\nvoid g();\n}\n", 6),
    "src/core/v.h": ("namespace cohort::detail {\nvoid f();\n}\n"
                     "namespace cohort::data {\nvoid g();\n}\n", 4),
    "src/data/w.cpp": ("namespace cohort {\nnamespace {\nvoid f() {\n}\n}\n}\n", 1),
    "tests/data/x.cpp": ("// using namespace cohort;\nusing namespace cohort::data;\n", 2),
    "examples/y.cpp": ("using namespace std::chrono_literals;\nusing namespace data;\n", 2),
    "src/engine/o.cpp": ('// method == "swamp"\nbool a = config.method == "swamp";\n', 2),
    "src/engine/p.cpp": ('bool a = options.gossip.compressor != "none";\n', 1),
    "src/dialects/q.cpp": ('bool a = topology == "complete" || update_method == "local";\n', None),
    "src/methods/registry.cpp": ('bool a = method == "swamp";\n', None),
    "src/server/s.h": (
        "class Seven {\n  virtual ~Seven();\n  // virtual\n" + "  virtual void f() {}\n" * 7 +
        "  struct Inner {\n    virtual void g();\n  };\n};\n"
        "template <class T>\nstruct Eight final : public Seven {\n" + "  virtual void f() {}\n" * 8 +
        "};\n", 16),
    "src/config/m.cpp": (
        'auto a = R"(\n#include "models/x.h" getenv)"; // pickle\nchar c = \'"\'; // getenv "\n',
        None),
}


def self_test():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        expected = set()
        for file, (content, line) in PLANTED.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            if line is not None:
                expected.add(f"{path if line else path.parent}:{line}")
        found = {":".join(text.split(":")[:2]) for text in violations(root)}
    for text in sorted(expected - found):
        print(f"not found: {text}")
    for text in sorted(found - expected):
        print(f"found but not planted: {text}")
    print("self-test " + ("failed" if expected != found else "passed"))
    return expected != found


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or any(text.startswith("-") for text in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    found = list(violations(root))
    print("\n".join(found) or "layers hold")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
