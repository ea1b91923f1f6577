"""The scripts that run in a foreign interpreter: standard library, any Python from 3.8 on.

Each is a list of steps. A step that raises has answered too: with its error.
"""

from __future__ import annotations

from typing import Final

_COMMON: Final = """
import json, os, sys
out = int(sys.argv[-1])
os.set_inheritable(out, False)
def write(**values):
    os.write(out, (json.dumps(values, default=str) + "\\n").encode())
def step(name, question):
    write(begin=name)
    try:
        answer = question()
    except BaseException as error:
        answer = {"error": type(error).__name__ + ": " + str(error)[:300]}
    write(end=name, **answer)
    return "error" not in answer
def may_use_the_gpu():
    return sys.stdin.readline().strip() == "go"
def cudart():
    import ctypes
    ctypes.CDLL("libcudart.so.13")
    return {"loaded": True}
"""

TORCH: Final = (
    _COMMON
    + """
def bring():
    import torch
    arches = ""
    try:
        arches = torch._C._cuda_getArchFlags() or ""
    except Exception:
        arches = " ".join(torch.cuda.get_arch_list())
    return {"version": torch.__version__, "cuda": torch.version.cuda, "arches": arches.split()}
def kernel():
    import torch
    found = (torch.ones(8, device="cuda") + 1).sum().item()
    torch.cuda.synchronize()
    return {"ran": found == 16.0, "capability": list(torch.cuda.get_device_capability())}
imported = step("import", bring)
step("cudart", cudart)
if imported and may_use_the_gpu():
    step("kernel", kernel)
"""
)
"""``import``: version, CUDA version, architectures; ``cudart``; ``kernel`` on an idle GPU."""

FLASH_ATTENTION: Final = (
    _COMMON
    + """
def bring():
    import flash_attn
    from flash_attn import flash_attn_func
    return {"version": getattr(flash_attn, "__version__", "of no stated version")}
def kernel():
    import torch
    from flash_attn import flash_attn_func
    q = torch.ones(1, 16, 2, 64, device="cuda", dtype=torch.float16)
    found = flash_attn_func(q, q, q).float().mean().item()
    torch.cuda.synchronize()
    return {"ran": abs(found - 1.0) < 0.01}
if step("import", bring) and may_use_the_gpu():
    step("kernel", kernel)
"""
)
"""``import``: version; ``kernel`` (attention over ones is one) where the GPU is idle."""

CUDART: Final = (
    _COMMON
    + """
step("cudart", cudart)
"""
)
"""``cudart``: whether the loader finds and loads the CUDA 13 run-time library."""
