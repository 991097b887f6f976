"""The reference of `cargo xtask bench gguf`: llama.cpp's converter as people start it, and its quantizer out of its library.

Usage: llama_cpp.py start CONVERTER | convert CONVERTER BASE OUT TYPE | quantize LIBRARY IN OUT FTYPE | versions CONVERTER LIBRARY
CONVERTER is the folder with convert_hf_to_gguf.py and gguf-py, LIBRARY the file of libllama. Prints one line of JSON; what is timed is
a process of its own, from start to end.
"""

import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import time


class QuantizeParameters(ctypes.Structure):
    # What follows has grown from version to version, and stays as the library fills it.
    _fields_ = [("threads", ctypes.c_int32), ("ftype", ctypes.c_int32), ("rest", ctypes.c_char * 256)]


def quantize(library, source, out, ftype):
    llama = ctypes.CDLL(library)
    llama.llama_model_quantize_default_params.restype = QuantizeParameters
    llama.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(QuantizeParameters)]
    llama.llama_model_quantize.restype = ctypes.c_uint32
    llama.llama_backend_init()
    parameters = llama.llama_model_quantize_default_params()
    parameters.ftype = int(ftype)
    sys.exit(llama.llama_model_quantize(source.encode(), out.encode(), ctypes.byref(parameters)))


def convert(converter, *arguments):
    script = os.path.join(converter, "convert_hf_to_gguf.py")
    paths = [os.path.join(converter, "gguf-py"), os.environ.get("PYTHONPATH")]
    return [sys.executable, script, *arguments], {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def command(work, rest):
    if work == "start":
        return convert(rest[0], "--help")
    if work == "convert":
        converter, base, out, kind = rest
        return convert(converter, base, "--outfile", out, "--outtype", kind)
    return [sys.executable, __file__, "quantize-here", *rest], dict(os.environ)


def main():
    work, *rest = sys.argv[1:]
    if work == "quantize-here":
        quantize(*rest)
    if work == "versions":
        import torch
        import transformers
        names = " ".join(os.listdir(os.path.dirname(os.path.abspath(rest[1]))))
        library = re.search(r"libllama\.v?([0-9.]+)\.so", names)
        print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                          "libllama": library.group(1) if library else "unknown"}))
        return
    arguments, environment = command(work, rest)
    start = time.time()
    subprocess.run(arguments, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    seconds = time.time() - start
    # In units of a kilobyte on Linux, of a byte on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit}))


main()
