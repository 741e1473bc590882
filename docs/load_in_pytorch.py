"""Reads what `cohort export` writes, with nothing but torch: python3 load_in_pytorch.py FILE"""
import json, struct, sys, torch

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16,
          "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32, "I16": torch.int16,
          "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}

def load_safetensors(path):
    """name -> tensor; what load_state_dict() takes."""
    content = bytearray(open(path, "rb").read())
    start = 8 + struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    def tensor(entry):
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(content[start + begin:start + end], dtype=DTYPES[entry["dtype"]])
        return flat.reshape(entry["shape"])
    return {name: tensor(entry) for name, entry in header.items()}

if __name__ == "__main__":
    for name, value in load_safetensors(sys.argv[1]).items():
        print(name, list(value.shape))
