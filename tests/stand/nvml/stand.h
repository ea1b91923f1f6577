/* The box that the stand-in NVML library shows, as it lies in a file mapped by both sides.
 *
 * Python writes it (tests/stand/nvml_stand.py holds the same layout and checks its size), the library
 * reads it at every call and counts its calls in it. Nothing is parsed and nothing is cached, so what
 * a test writes is what the next call returns, in the same process or in another one.
 */
#ifndef SPARK_WATCH_NVML_STAND_H
#define SPARK_WATCH_NVML_STAND_H

#include <stdint.h>

#define STAND_MAGIC 0x314c4d564e575053ull /* "SPWNVML1" */
#define STAND_GPUS 8
#define STAND_FIELDS 16
#define STAND_PROCESSES 950 /* the most the driver lists, NVIDIA/open-gpu-kernel-modules */

/* Every function the library answers for. Python reads the names from here: one X(...) a line. */
#define STAND_CALLS(X) \
    X(nvmlInitWithFlags) \
    X(nvmlShutdown) \
    X(nvmlSystemGetDriverVersion) \
    X(nvmlSystemGetNVMLVersion) \
    X(nvmlSystemGetCudaDriverVersion) \
    X(nvmlDeviceGetCount) \
    X(nvmlDeviceGetHandleByIndex) \
    X(nvmlDeviceGetHandleByUUID) \
    X(nvmlDeviceGetHandleByPciBusId) \
    X(nvmlDeviceGetIndex) \
    X(nvmlDeviceGetMinorNumber) \
    X(nvmlDeviceGetName) \
    X(nvmlDeviceGetUUID) \
    X(nvmlDeviceGetPciInfo) \
    X(nvmlDeviceGetCudaComputeCapability) \
    X(nvmlDeviceGetMigMode) \
    X(nvmlDeviceGetMemoryInfo) \
    X(nvmlDeviceGetMemoryInfo_v2) \
    X(nvmlDeviceGetTemperature) \
    X(nvmlDeviceGetTemperatureV) \
    X(nvmlDeviceGetPowerUsage) \
    X(nvmlDeviceGetEnforcedPowerLimit) \
    X(nvmlDeviceGetTotalEnergyConsumption) \
    X(nvmlDeviceGetClockInfo) \
    X(nvmlDeviceGetMaxClockInfo) \
    X(nvmlDeviceGetCurrentClocksEventReasons) \
    X(nvmlDeviceGetUtilizationRates) \
    X(nvmlDeviceGetPerformanceState) \
    X(nvmlDeviceGetFieldValues) \
    X(nvmlDeviceGetComputeRunningProcesses) \
    X(nvmlDeviceGetGraphicsRunningProcesses) \
    X(nvmlDeviceGetMPSComputeRunningProcesses)

enum stand_call {
#define X(name) CALL_##name,
    STAND_CALLS(X)
#undef X
    CALL_COUNT
};

enum stand_list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS, LIST_COUNT };

struct stand_process {
    uint64_t used_bytes; /* all ones: not available */
    uint32_t pid;
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t padding;
};

struct stand_processes {
    uint32_t count;
    uint32_t padding;
    struct stand_process entries[STAND_PROCESSES];
};

struct stand_field {
    uint32_t id; /* 0: this slot is free; a field in no slot is "not supported" */
    uint32_t scope;
    int32_t error;
    uint32_t type; /* an nvmlValueType_t */
    uint64_t value;
};

struct stand_gpu {
    char name[96];
    char uuid[96];
    char bus_id[32];
    int32_t errors[CALL_COUNT]; /* an nvmlReturn_t; 0: answer */
    int32_t mig_mode;           /* -1: not supported */
    int32_t temperature_celsius;
    int32_t performance_state;
    uint32_t capability_major;
    uint32_t capability_minor;
    uint32_t power_milliwatts;
    uint32_t power_limit_milliwatts; /* 0: not supported */
    uint32_t sm_megahertz;
    uint32_t max_sm_megahertz;
    uint32_t memory_megahertz; /* 0: not supported */
    uint32_t utilization_percent;
    uint32_t memory_utilization_percent;
    uint64_t event_reasons;
    uint64_t energy_millijoules;
    uint64_t memory_total_bytes; /* 0: not supported */
    uint64_t memory_reserved_bytes;
    uint64_t memory_used_bytes;
    struct stand_field fields[STAND_FIELDS];
    struct stand_processes processes[LIST_COUNT];
};

struct stand_box {
    uint64_t magic;
    uint64_t driver_generation; /* a session begun under another one is no longer initialised */
    char driver_version[80];
    uint32_t gpu_count;
    int32_t errors[CALL_COUNT];          /* for every GPU; goes before the GPU's own */
    uint32_t stall_milliseconds[CALL_COUNT]; /* cut short as soon as it is written smaller */
    uint32_t stalled;                    /* calls that are waiting now; written by the library */
    uint64_t calls[CALL_COUNT];          /* calls begun; written by the library */
    struct stand_gpu gpus[STAND_GPUS];
};

#endif
