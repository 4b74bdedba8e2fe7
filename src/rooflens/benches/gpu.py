"""A CUDA device in, what its driver says of it out. NVML is asked where `nvidia-ml-py` is installed, else torch, else
the driver's own file; what none of them tells is None."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflens.hardware.identity import ROOT, text

MHZ = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """`clock_hz` and `memory_clock_hz` are the highest that the driver allows; clocks of the moment are in `Clocks`."""

    name: str
    index: int
    capability: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int | None
    clock_hz: float | None
    memory_clock_hz: float | None
    power_limit_w: float | None
    driver: str | None
    cuda: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """What the device runs at now; None without NVML."""

    sm_hz: float | None = None
    memory_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None


def cuda_present() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def device_facts(index: int = 0, root: Path = ROOT) -> DeviceFacts:
    import torch

    told: Any = torch.cuda.get_device_properties(index)
    nvml, handle = _nvml(told)
    return DeviceFacts(
        name=told.name,
        index=index,
        capability=f"{told.major}.{told.minor}",
        multiprocessors=told.multi_processor_count,
        memory_bytes=told.total_memory,
        l2_bytes=getattr(told, "L2_cache_size", None) or None,
        clock_hz=_asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM) * MHZ, nvml),
        memory_clock_hz=_asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM) * MHZ, nvml),
        power_limit_w=_asked(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000, nvml),
        driver=_asked(lambda: str(nvml.nvmlSystemGetDriverVersion()), nvml) or driver_version(root),
        cuda=torch.version.cuda,
    )


def clocks_now(index: int = 0) -> Clocks:
    import torch

    nvml, handle = _nvml(torch.cuda.get_device_properties(index))
    return Clocks(
        sm_hz=_asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * MHZ, nvml),
        memory_hz=_asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM) * MHZ, nvml),
        power_w=_asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000, nvml),
        temperature_c=_asked(lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)), nvml),
    )


def driver_version(root: Path = ROOT) -> str | None:
    """The kernel module's own words, for when NVML is not installed."""
    found = re.search(r"Kernel Module\D*?\s(\d+(?:\.\d+)+)", text(root / "proc/driver/nvidia/version") or "")
    return found.group(1) if found else None


def _nvml(told: Any) -> tuple[Any, Any]:
    """By its id, because CUDA_VISIBLE_DEVICES changes torch's numbers and not NVML's."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{told.uuid}")
    except Exception:  # not installed, no driver, or an older torch that tells no id: NVML is a courtesy
        return None, None


def _asked(question: Any, nvml: Any) -> Any:
    """Virtual and older devices answer some questions with 'not supported'."""
    if nvml is None:
        return None
    try:
        return question()
    except nvml.NVMLError:
        return None
