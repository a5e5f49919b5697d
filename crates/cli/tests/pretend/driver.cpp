// A CUDA driver that only pretends: memory is the host's, and kernels are what the compiler beside it made for the host.
// The variables PRETEND_INIT, _VERSION, _DEVICES, _MEMORY, _LAUNCH and _WAIT say what it answers otherwise.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <vector>

typedef void* Handle;
typedef uint64_t Address;

namespace {

long variable(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}

std::mutex lock;
std::map<Address, size_t> sizes;
size_t used;

size_t memory() { return variable("PRETEND_MEMORY", 1l << 32); }

struct Kernel {
  void (*launch)(int blocks, int threads, size_t shared, void** arguments);
  int arguments;
};

struct Launch {
  Kernel* kernel;
  int blocks, threads;
  size_t shared;
  std::vector<uint64_t> arguments;

  void run() {
    std::vector<void*> pointers;
    for (auto& argument : arguments) pointers.push_back(&argument);
    kernel->launch(blocks, threads, shared, pointers.data());
  }
};

typedef std::vector<Launch> Graph;
thread_local Graph* recording;

}  // namespace

extern "C" {

int cuInit(unsigned) { return variable("PRETEND_INIT", 0); }
int cuDriverGetVersion(int* to) { return *to = variable("PRETEND_VERSION", 12080), 0; }
int cuDeviceGetCount(int* to) { return *to = variable("PRETEND_DEVICES", 1), 0; }
int cuDeviceGet(int* to, int number) { return *to = number, 0; }
int cuDeviceGetName(char* to, int bytes, int) { return strncpy(to, "pretended", bytes), 0; }
int cuDeviceGetUuid(void* to, int) { return memset(to, 7, 16), 0; }
int cuDeviceGetAttribute(int* to, int attribute, int) {
  *to = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : 4;
  return 0;
}
int cuDevicePrimaryCtxRetain(Handle* to, int) { return *to = &sizes, 0; }
int cuCtxSetCurrent(Handle) { return 0; }

int cuMemGetInfo_v2(size_t* available, size_t* total) {
  std::lock_guard<std::mutex> held(lock);
  *total = memory();
  *available = *total - used;
  return 0;
}
int cuMemAlloc_v2(Address* to, size_t bytes) {
  std::lock_guard<std::mutex> held(lock);
  if (bytes > memory() || used + bytes > memory()) return 2;
  *to = (Address)aligned_alloc(256, (bytes + 255) / 256 * 256);
  // What is read before it is written is no zero by chance.
  memset((void*)*to, 0xfb, bytes);
  sizes[*to] = bytes;
  used += bytes;
  return 0;
}
int cuMemFree_v2(Address address) {
  std::lock_guard<std::mutex> held(lock);
  used -= sizes[address];
  sizes.erase(address);
  free((void*)address);
  return 0;
}
int cuMemAllocHost_v2(Handle* to, size_t bytes) { return *to = malloc(bytes), 0; }
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Handle) { return memcpy((void*)to, from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Handle) { return memcpy(to, (void*)from, bytes), 0; }
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Handle) { return memmove((void*)to, (void*)from, bytes), 0; }
int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Handle) { return memset((void*)to, value, bytes), 0; }

int cuStreamCreate(Handle* to, unsigned) { return *to = malloc(1), 0; }
int cuStreamDestroy_v2(Handle stream) { return free(stream), 0; }
int cuStreamWaitEvent(Handle, Handle, unsigned) { return 0; }
int cuStreamSynchronize(Handle) { return variable("PRETEND_WAIT", 0); }
int cuEventCreate(Handle* to, unsigned) { return *to = malloc(1), 0; }
int cuEventDestroy_v2(Handle event) { return free(event), 0; }
int cuEventRecord(Handle, Handle) { return 0; }
int cuEventSynchronize(Handle) { return 0; }
int cuEventElapsedTime(float* to, Handle, Handle) { return *to = 1, 0; }

int cuModuleLoadData(Handle* to, const void* code) { return (*to = dlopen((const char*)code, RTLD_NOW | RTLD_LOCAL)) ? 0 : 200; }
int cuModuleUnload(Handle) { return 0; }
int cuModuleGetFunction(Handle* to, Handle module, const char*) {
  Kernel* kernel = new Kernel;
  *(void**)&kernel->launch = dlsym(module, "pretend_launch");
  const int* count = (const int*)dlsym(module, "pretend_arguments");
  if (!kernel->launch || !count) return 500;
  kernel->arguments = *count;
  *to = kernel;
  return 0;
}
int cuFuncSetAttribute(Handle, int, int) { return 0; }
int cuLaunchKernel(Handle function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned shared,
                   Handle, void** arguments, void**) {
  if (const long code = variable("PRETEND_LAUNCH", 0)) return code;
  Kernel* kernel = (Kernel*)function;
  Launch launch{kernel, (int)blocks, (int)threads, shared, {}};
  for (int at = 0; at < kernel->arguments; ++at) launch.arguments.push_back(*(uint64_t*)arguments[at]);
  if (recording) {
    recording->push_back(launch);
  } else {
    launch.run();
  }
  return 0;
}

int cuStreamBeginCapture_v2(Handle, int) { return recording = new Graph, 0; }
int cuStreamEndCapture(Handle, Handle* to) { return *to = recording, recording = nullptr, 0; }
int cuGraphInstantiateWithFlags(Handle* to, Handle graph, uint64_t) { return *to = new Graph(*(Graph*)graph), 0; }
int cuGraphLaunch(Handle graph, Handle) {
  for (auto& launch : *(Graph*)graph) launch.run();
  return 0;
}
int cuGraphDestroy(Handle graph) { return delete (Graph*)graph, 0; }
int cuGraphExecDestroy(Handle graph) { return delete (Graph*)graph, 0; }
int cuGetErrorString(int, const char** to) { return *to = "as pretended", 0; }
}
