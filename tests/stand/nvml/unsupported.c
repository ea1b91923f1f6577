/* Functions other NVML clients ask for (nvitop, gpustat) that a GB10 does not answer.
 *
 * Their arguments are not looked at, so they need no prototype; NVIDIA's header is left out for that.
 */
#define NOT_SUPPORTED 3

#define X(name) \
    int name(void); \
    int name(void) { return NOT_SUPPORTED; }

X(nvmlDeviceGetAddressingMode)
X(nvmlDeviceGetBAR1MemoryInfo)
X(nvmlDeviceGetComputeInstanceId)
X(nvmlDeviceGetComputeMode)
X(nvmlDeviceGetConfComputeMemSizeInfo)
X(nvmlDeviceGetDecoderUtilization)
X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)
X(nvmlDeviceGetDisplayActive)
X(nvmlDeviceGetDisplayMode)
X(nvmlDeviceGetDriverModel_v2)
X(nvmlDeviceGetEncoderUtilization)
X(nvmlDeviceGetFanSpeed)
X(nvmlDeviceGetFanSpeed_v2)
X(nvmlDeviceGetGpuInstanceId)
X(nvmlDeviceGetMaxMigDeviceCount)
X(nvmlDeviceGetMigDeviceHandleByIndex)
X(nvmlDeviceGetPcieThroughput)
X(nvmlDeviceGetPersistenceMode)
X(nvmlDeviceGetPowerManagementLimit)
X(nvmlDeviceGetProcessUtilization)
X(nvmlDeviceGetRunningProcessDetailList)
X(nvmlDeviceGetSerial)
X(nvmlDeviceGetTotalEccErrors)
X(nvmlDeviceIsMigDeviceHandle)
