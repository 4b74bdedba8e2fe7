"""Two kernels of our own, compiled on the spot by the NVRTC that torch brings: what no torch op can show.

`chain` is multiply-adds in registers and nothing else: the peak of the vector units. `read` passes over an array many
times in one launch, past the L1 caches: the bandwidth of the L2. Torch has no public door to NVRTC, so that whatever
goes wrong on the way becomes the reason why there is no value.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CHAINS, UNROLLED, ROUNDS = 8, 16, 256
BLOCK = 256
CHAIN_BLOCKS, READ_BLOCKS = 8, 4  # a multiprocessor: all at once on it, or a last wave would run nearly alone
LOADS = 4

# dtype -> PTX instruction, letter of its registers, C type of those, multiply-adds an instruction, a starting value
FMA = {
    "fp32": ("fma.rn.f32", "f", "float", 1, "1.0f"),
    "fp64": ("fma.rn.f64", "d", "double", 1, "1.0"),
    "fp16": ("fma.rn.f16x2", "r", "unsigned", 2, "0x3c003c00u"),
    "bf16": ("fma.rn.bf16x2", "r", "unsigned", 2, "0x3f803f80u"),
}


class NoKernel(Exception):
    """Why a kernel of our own cannot run here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """`launch` puts it on the current stream; `work` is what one launch does (operations, or bytes read)."""

    launch: Callable[[], None]
    work: int


def fma_chain(dtype: str, multiprocessors: int) -> Kernel:
    import torch

    _, _, _, lanes, _ = FMA[dtype]
    blocks = CHAIN_BLOCKS * multiprocessors
    out = torch.zeros(blocks * BLOCK, dtype=torch.float64, device="cuda")
    compiled = _compiled(_chain_source(dtype), "chain")
    work = blocks * BLOCK * ROUNDS * UNROLLED * CHAINS * lanes * 2
    return Kernel(launch=lambda: compiled(grid=(blocks, 1, 1), block=(BLOCK, 1, 1), args=[out, ROUNDS]), work=work)


def reads(array: Any, passes: int, multiprocessors: int) -> Kernel:
    """`array` is contiguous; each pass reads all of it, whichever block is where."""
    import torch

    chunks = array.numel() * array.element_size() // 16
    blocks = READ_BLOCKS * multiprocessors
    out = torch.zeros(blocks * BLOCK, device="cuda")
    compiled = _compiled(_READ, "read")
    args = [array, out, chunks, passes]
    return Kernel(
        launch=lambda: compiled(grid=(blocks, 1, 1), block=(BLOCK, 1, 1), args=args), work=chunks * 16 * passes
    )


def _chain_source(dtype: str) -> str:
    """Chains that do not wait for each other; the result is stored, or the compiler would leave all of it out."""
    instruction, letter, kind, _, one = FMA[dtype]
    names = [f"x{i}" for i in range(CHAINS)]
    declared = ", ".join(f"{n} = start" for n in names)
    step = " ".join(
        f'asm volatile("{instruction} %0, %0, %1, %2;" : "+{letter}"({n}) : "{letter}"(y), "{letter}"(z));'
        for n in names
    )
    body = "\n".join([step] * UNROLLED)
    return f"""
extern "C" __global__ void __launch_bounds__({BLOCK}, {CHAIN_BLOCKS}) chain({kind} *out, int rounds) {{
  int place = blockIdx.x * blockDim.x + threadIdx.x;
  {kind} start = {one}, y = start, z = start;
  {kind} {declared};
  for (int r = 0; r < rounds; r++) {{
{body}
  }}
  out[place] = {" + ".join(names)};
}}
"""


_LOADS = "\n".join(
    f"""      asm volatile("ld.global.cg.v4.f32 {{%0, %1, %2, %3}}, [%4];"
        : "=f"(v{i}.x), "=f"(v{i}.y), "=f"(v{i}.z), "=f"(v{i}.w) : "l"(array + at + {i} * step));"""
    for i in range(LOADS)
)
_SUM = " + ".join(f"v{i}.x + v{i}.y + v{i}.z + v{i}.w" for i in range(LOADS))
_READ = f"""
extern "C" __global__ void __launch_bounds__({BLOCK}, {READ_BLOCKS})
read(const float4 *array, float *out, int chunks, int passes) {{
  int place = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  float sum = 0.0f;
  for (int p = 0; p < passes; p++) {{
    int at = place;
    for (; at + {LOADS - 1} * step < chunks; at += {LOADS} * step) {{
      float4 {", ".join(f"v{i}" for i in range(LOADS))};
{_LOADS}
      sum += {_SUM};
    }}
    for (; at < chunks; at += step) {{
      float4 v;
      asm volatile("ld.global.cg.v4.f32 {{%0, %1, %2, %3}}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(array + at));
      sum += v.x + v.y + v.z + v.w;
    }}
  }}
  out[place] = sum;
}}
"""


def _compiled(source: str, name: str) -> Any:
    import torch

    try:
        from torch.cuda import _utils

        major, minor = torch.cuda.get_device_capability()
        ptx = _ptx(_utils._get_nvrtc_library(), source, f"--gpu-architecture=compute_{major}{minor}")
        loaded: Any = _utils._cuda_load_module(ptx, [name])  # a module, or its functions where they are named
        return loaded[name]
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise NoKernel(f"no kernel could be compiled here: {first}") from None


def _ptx(nvrtc: Any, source: str, option: str) -> bytes:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    _checked(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None), "create")
    options = (ctypes.c_char_p * 1)(option.encode())
    try:
        _checked(nvrtc.nvrtcCompileProgram(program, 1, options), "compile")
        _checked(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "read")
        text = ctypes.create_string_buffer(size.value)
        _checked(nvrtc.nvrtcGetPTX(program, text), "read")
        return text.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _checked(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"NVRTC cannot {what} it (status {status})")
