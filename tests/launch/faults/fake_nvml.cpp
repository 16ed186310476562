// Stands in for the driver's libnvidia-ml.so.1: reports GPUs that are not there, and starts a
// thread that takes every signal, as libraries do. FAKE_NVML_GPUS: their number (2);
// FAKE_NVML_BUS_IDS: their PCI bus ids, with commas.
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void* wait_for_signals(void*) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  for (;;) pause();
}

// Loading is enough.
[[gnu::constructor]] void start_thread() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait_for_signals, nullptr) == 0) pthread_detach(thread);
}

unsigned gpus() {
  const char* text = std::getenv("FAKE_NVML_GPUS");
  return text ? unsigned(std::atoi(text)) : 2;
}

std::string bus_id(std::size_t index) {
  const char* text = std::getenv("FAKE_NVML_BUS_IDS");
  std::string list = text ? text : "";
  for (; index > 0; --index) {
    const std::size_t comma = list.find(',');
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
  }
  return list.substr(0, list.find(','));
}

std::size_t index_of(const void* device) { return reinterpret_cast<std::size_t>(device) - 1; }

struct Memory {
  unsigned long long total, free, used;
};
struct Pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int) { return "no error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "999.0");
  return 0;
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpus()) return 2;
  *device = reinterpret_cast<void*>(std::size_t{index} + 1);
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "fake GPU");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%zu", index_of(device));
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  std::memset(pci, 0, sizeof *pci);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%s", bus_id(index_of(device)).c_str());
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {1ull << 30, 1ull << 30, 0};
  return 0;
}
}
