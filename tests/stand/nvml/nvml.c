/* A stand-in libnvidia-ml.so.1: NVIDIA's own header, and the answers from a scripted box (stand.h).
 *
 * The prototypes come from NVIDIA's nvml.h (PyPI package nvidia-nvml-dev), so a wrong signature does
 * not compile. The box is the file named by NVML_STAND_FILE, looked up anew at every initialisation;
 * without one the library says that no driver is loaded, as it does on a machine without a GPU.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nvml.h>

#include "stand.h"

#define DEVICE_BASE 0x1000 /* a handle is the GPU's index above this */
#define STALL_SLICE_NANOSECONDS 2000000

static struct stand_box *box;
static dev_t box_device;
static ino_t box_inode;
static uint64_t session_generation;
static unsigned int session_count;

unsigned int nvml_stand_size(void);

/* What Python compares its own layout with. */
unsigned int nvml_stand_size(void)
{
    return sizeof(struct stand_box);
}

/* Maps the scripted box, or keeps the map when it is still the same file. Another file ends the
 * session of the old one, whose map is never taken away: a call stalled in it would fault. */
static nvmlReturn_t map_box(void)
{
    const char *path = getenv("NVML_STAND_FILE");
    struct stat status;
    struct stand_box *mapped;
    int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (descriptor < 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (fstat(descriptor, &status) != 0 || status.st_size != (off_t)sizeof(*box)) {
        close(descriptor);
        return NVML_ERROR_UNKNOWN;
    }
    if (box && status.st_dev == box_device && status.st_ino == box_inode) {
        close(descriptor);
        return NVML_SUCCESS;
    }
    mapped = mmap(NULL, sizeof(*box), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped == MAP_FAILED || mapped->magic != STAND_MAGIC)
        return NVML_ERROR_UNKNOWN;
    box = mapped;
    box_device = status.st_dev;
    box_inode = status.st_ino;
    session_count = 0;
    return NVML_SUCCESS;
}

static void stall(enum stand_call call)
{
    const struct timespec slice = {0, STALL_SLICE_NANOSECONDS};
    struct timespec begun, now;
    volatile uint32_t *limit = &box->stall_milliseconds[call];

    if (*limit == 0)
        return;
    __atomic_add_fetch(&box->stalled, 1, __ATOMIC_SEQ_CST);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        nanosleep(&slice, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000
             < (int64_t)*limit);
    __atomic_sub_fetch(&box->stalled, 1, __ATOMIC_SEQ_CST);
}

/* Counts the call, waits as scripted, and gives the scripted error that every GPU shares. */
static nvmlReturn_t enter_any(enum stand_call call)
{
    __atomic_add_fetch(&box->calls[call], 1, __ATOMIC_RELAXED);
    stall(call);
    return (nvmlReturn_t)box->errors[call];
}

static nvmlReturn_t enter(enum stand_call call)
{
    if (session_count == 0 || session_generation != box->driver_generation)
        return NVML_ERROR_UNINITIALIZED;
    return enter_any(call);
}

static nvmlReturn_t enter_device(enum stand_call call, nvmlDevice_t device, struct stand_gpu **gpu)
{
    nvmlReturn_t result = enter(call);
    uintptr_t index = (uintptr_t)device - DEVICE_BASE;

    if (result != NVML_SUCCESS)
        return result;
    if (index >= box->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = &box->gpus[index];
    return (nvmlReturn_t)(*gpu)->errors[call];
}

#define ENTER(call) \
    do { \
        nvmlReturn_t entered = enter(CALL_##call); \
        if (entered != NVML_SUCCESS) \
            return entered; \
    } while (0)

#define ENTER_DEVICE(call) \
    struct stand_gpu *gpu; \
    do { \
        nvmlReturn_t entered = enter_device(CALL_##call, device, &gpu); \
        if (entered != NVML_SUCCESS) \
            return entered; \
    } while (0)

static nvmlReturn_t copy_text(const char *text, char *out, unsigned int length)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

/* --- session ------------------------------------------------------------------------------- */

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    nvmlReturn_t result = map_box();

    (void)flags;
    if (result == NVML_SUCCESS)
        result = enter_any(CALL_nvmlInitWithFlags);
    if (result == NVML_SUCCESS) {
        session_count = session_generation == box->driver_generation ? session_count + 1 : 1;
        session_generation = box->driver_generation;
    }
    return result;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    if (session_count == 0)
        return NVML_ERROR_UNINITIALIZED;
    session_count--;
    return enter_any(CALL_nvmlShutdown);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    (void)result;
    return "scripted by the stand";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    ENTER(nvmlSystemGetDriverVersion);
    return copy_text(box->driver_version, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    char text[96];

    ENTER(nvmlSystemGetNVMLVersion);
    snprintf(text, sizeof(text), "13.%s", box->driver_version);
    return copy_text(text, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    ENTER(nvmlSystemGetCudaDriverVersion);
    *version = 13000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

/* --- devices ------------------------------------------------------------------------------- */

static nvmlReturn_t give_handle(enum stand_call call, unsigned int index, nvmlDevice_t *device)
{
    struct stand_gpu *gpu;
    nvmlDevice_t handle = (nvmlDevice_t)(uintptr_t)(DEVICE_BASE + index);
    nvmlReturn_t result = enter_device(call, handle, &gpu);

    if (result == NVML_SUCCESS)
        *device = handle;
    return result;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    ENTER(nvmlDeviceGetCount);
    *count = box->gpu_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return give_handle(CALL_nvmlDeviceGetHandleByIndex, index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    unsigned int index = 0;

    while (box && index < box->gpu_count && strcmp(box->gpus[index].uuid, uuid) != 0)
        index++;
    return give_handle(CALL_nvmlDeviceGetHandleByUUID, index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    unsigned int index = 0;

    while (box && index < box->gpu_count && strcmp(box->gpus[index].bus_id, bus_id) != 0)
        index++;
    return give_handle(CALL_nvmlDeviceGetHandleByPciBusId, index, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    ENTER_DEVICE(nvmlDeviceGetIndex);
    *index = (unsigned int)(gpu - box->gpus);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    ENTER_DEVICE(nvmlDeviceGetMinorNumber);
    *minor = (unsigned int)(gpu - box->gpus);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    ENTER_DEVICE(nvmlDeviceGetName);
    return copy_text(gpu->name, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    ENTER_DEVICE(nvmlDeviceGetUUID);
    return copy_text(gpu->uuid, uuid, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    ENTER_DEVICE(nvmlDeviceGetPciInfo);
    memset(pci, 0, sizeof(*pci));
    sscanf(gpu->bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0x1f);
    return copy_text(gpu->bus_id, pci->busId, sizeof(pci->busId));
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    ENTER_DEVICE(nvmlDeviceGetCudaComputeCapability);
    *major = (int)gpu->capability_major;
    *minor = (int)gpu->capability_minor;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    ENTER_DEVICE(nvmlDeviceGetMigMode);
    if (gpu->mig_mode < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = (unsigned int)gpu->mig_mode;
    return NVML_SUCCESS;
}

/* --- readings ------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    ENTER_DEVICE(nvmlDeviceGetMemoryInfo);
    if (gpu->memory_total_bytes == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    memory->total = gpu->memory_total_bytes;
    memory->used = gpu->memory_used_bytes + gpu->memory_reserved_bytes;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    ENTER_DEVICE(nvmlDeviceGetMemoryInfo_v2);
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (gpu->memory_total_bytes == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    memory->total = gpu->memory_total_bytes;
    memory->reserved = gpu->memory_reserved_bytes;
    memory->used = gpu->memory_used_bytes;
    memory->free = memory->total - memory->used - memory->reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int *temperature)
{
    ENTER_DEVICE(nvmlDeviceGetTemperature);
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *temperature = (unsigned int)gpu->temperature_celsius;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    ENTER_DEVICE(nvmlDeviceGetTemperatureV);
    if (temperature->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    temperature->temperature = gpu->temperature_celsius;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    ENTER_DEVICE(nvmlDeviceGetPowerUsage);
    *milliwatts = gpu->power_milliwatts;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
    ENTER_DEVICE(nvmlDeviceGetEnforcedPowerLimit);
    if (gpu->power_limit_milliwatts == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *milliwatts = gpu->power_limit_milliwatts;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long *millijoules)
{
    ENTER_DEVICE(nvmlDeviceGetTotalEnergyConsumption);
    *millijoules = gpu->energy_millijoules;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
    ENTER_DEVICE(nvmlDeviceGetClockInfo);
    *clock = type == NVML_CLOCK_MEM ? gpu->memory_megahertz : gpu->sm_megahertz;
    return *clock == 0 && type == NVML_CLOCK_MEM ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                       unsigned int *clock)
{
    ENTER_DEVICE(nvmlDeviceGetMaxClockInfo);
    *clock = type == NVML_CLOCK_MEM ? gpu->memory_megahertz : gpu->max_sm_megahertz;
    return *clock == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons)
{
    ENTER_DEVICE(nvmlDeviceGetCurrentClocksEventReasons);
    *reasons = gpu->event_reasons;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    ENTER_DEVICE(nvmlDeviceGetUtilizationRates);
    utilization->gpu = gpu->utilization_percent;
    utilization->memory = gpu->memory_utilization_percent;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    ENTER_DEVICE(nvmlDeviceGetPerformanceState);
    *state = (nvmlPstates_t)gpu->performance_state;
    return NVML_SUCCESS;
}

/* Succeeds as a whole while single fields fail, as the real one does. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    ENTER_DEVICE(nvmlDeviceGetFieldValues);
    for (int i = 0; i < count; i++) {
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        for (int slot = 0; slot < STAND_FIELDS; slot++) {
            const struct stand_field *field = &gpu->fields[slot];

            if (field->id == 0 || field->id != values[i].fieldId
                || field->scope != values[i].scopeId)
                continue;
            values[i].nvmlReturn = (nvmlReturn_t)field->error;
            values[i].valueType = (nvmlValueType_t)field->type;
            values[i].value.ullVal = field->value;
        }
    }
    return NVML_SUCCESS;
}

/* Too small an array is answered with the number wanted, as the real one does. */
static nvmlReturn_t list(const struct stand_processes *processes, unsigned int *count,
                         nvmlProcessInfo_t *infos)
{
    unsigned int room = *count;

    *count = processes->count;
    if (processes->count == 0)
        return NVML_SUCCESS;
    if (room < processes->count || !infos)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++) {
        infos[i].pid = processes->entries[i].pid;
        infos[i].usedGpuMemory = processes->entries[i].used_bytes;
        infos[i].gpuInstanceId = processes->entries[i].gpu_instance;
        infos[i].computeInstanceId = processes->entries[i].compute_instance;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    ENTER_DEVICE(nvmlDeviceGetComputeRunningProcesses);
    return list(&gpu->processes[LIST_COMPUTE], count, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_t *infos)
{
    ENTER_DEVICE(nvmlDeviceGetGraphicsRunningProcesses);
    return list(&gpu->processes[LIST_GRAPHICS], count, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                        nvmlProcessInfo_t *infos)
{
    ENTER_DEVICE(nvmlDeviceGetMPSComputeRunningProcesses);
    return list(&gpu->processes[LIST_MPS], count, infos);
}
