"""Prints a safetensors file with nothing but the standard library: the tests' second opinion."""

import json
import struct
import sys

CODES = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b",
         "U8": "B", "BOOL": "?"}

with open(sys.argv[1], "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    data = file.read()

print("metadata", header.pop("__metadata__", {}))
for name, entry in header.items():
    begin, end = entry["data_offsets"]
    code = CODES[entry["dtype"]]
    count = (end - begin) // struct.calcsize(code)
    print(name, entry["dtype"], entry["shape"], struct.unpack(f"<{count}{code}", data[begin:end]))
