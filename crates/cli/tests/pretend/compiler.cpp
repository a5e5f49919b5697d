// A run-time compiler of kernels that only pretends: what it compiles runs on the host, thread by thread.
// PRETEND_FOLDER is where it keeps what it makes; with PRETEND_COMPILE it complains of everything.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>

typedef void* Handle;

namespace {

struct Program {
  std::string source, code, log;
};

// How the driver starts the kernel whose name takes the place of NAME.
const char* const ENTRY = R"(
static void** pretend_given;
template <class... A, size_t... AT>
void pretend_call(void (*kernel)(A...), std::index_sequence<AT...>) { kernel((A)*(void**)pretend_given[AT]...); }
template <class... A>
void pretend_thread(void (*kernel)(A...)) { pretend_call(kernel, std::index_sequence_for<A...>{}); }
template <class... A>
constexpr int pretend_count(void (*)(A...)) { return sizeof...(A); }
extern "C" {
int pretend_arguments = pretend_count(NAME);
void pretend_launch(int blocks, int threads, size_t shared, void** arguments) {
  pretend_given = arguments;
  wf_launch(blocks, threads, shared, [] { pretend_thread(NAME); });
}
}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// The text of a kernel for the host: what the prelude has for the device alone gives way to what tests have for the host.
std::string for_host(const std::string& source) {
  const size_t common = source.find("// Library functions; the dialect defines");
  const size_t device_only = source.find("// Tensor cores: mma with f32 accumulation");
  const size_t kernel = source.find("extern \"C\" WF_KERNEL(");
  const size_t name = source.find(" void ", kernel) + 6, end = source.find('(', name);
  return "#include <utility>\n#include \"" PRETEND_HOST "\"\n" + source.substr(common, device_only - common) +
         source.substr(kernel) + replaced(ENTRY, "NAME", source.substr(name, end - name));
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int give(const std::string& text, char* to) { return memcpy(to, text.c_str(), text.size() + 1), 0; }

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 12, *minor = 8, 0; }
int nvrtcCreateProgram(Handle* to, const char* source, const char*, int, const char**, const char**) {
  *to = new Program{source, "", ""};
  return 0;
}
int nvrtcCompileProgram(Handle handle, int, const char**) {
  static std::atomic<int> count;
  Program* program = (Program*)handle;
  if (getenv("PRETEND_COMPILE")) return program->log = "k.cu(1): error: pretended\n1 error", 6;
  const char* folder = getenv("PRETEND_FOLDER");
  const char* compiler = getenv("CXX");
  const std::string base =
      std::string(folder ? folder : ".") + "/kernel_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  std::ofstream(base + ".cpp") << for_host(program->source);
  const std::string command = std::string(compiler ? compiler : "c++") +
                              " -std=c++17 -O1 -fPIC -shared -fno-strict-aliasing -ffp-contract=off -w -o '" + base + ".so' '" +
                              base + ".cpp' 2> '" + base + ".log'";
  if (system(command.c_str()) != 0) return program->log = read(base + ".log"), 6;
  program->code = base + ".so";
  return 0;
}
int nvrtcGetCUBINSize(Handle program, size_t* to) { return *to = ((Program*)program)->code.size() + 1, 0; }
int nvrtcGetCUBIN(Handle program, char* to) { return give(((Program*)program)->code, to); }
int nvrtcGetProgramLogSize(Handle program, size_t* to) { return *to = ((Program*)program)->log.size() + 1, 0; }
int nvrtcGetProgramLog(Handle program, char* to) { return give(((Program*)program)->log, to); }
int nvrtcDestroyProgram(Handle* program) { return delete (Program*)*program, 0; }
}
