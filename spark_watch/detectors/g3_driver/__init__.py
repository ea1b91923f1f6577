"""G3, the driver's side: what NVML and the kernel log say while the pool runs out."""
