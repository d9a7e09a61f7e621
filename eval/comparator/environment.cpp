#include "eval/comparator/environment.h"

#include <ATen/Parallel.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "build_info.h"

#ifdef REPLAYEVAL_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace replayeval {
namespace {

// The value behind the first line that begins with `key` in a file of "key<separator>value" lines.
std::string field_of(const char* file, const std::string& key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_last_not_of(" \t\"") - begin + 1);
  }
  return "unknown";
}

std::string kernel_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : "unknown";
}

void add_gpu(nlohmann::json& environment) {
#ifdef REPLAYEVAL_WITH_CUDA
  int device = 0;
  int runtime = 0;
  int driver = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess) return;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  environment["gpu"] = {{"name", properties.name},
                        {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
                        {"memory_bytes", properties.totalGlobalMem},
                        {"multiprocessors", properties.multiProcessorCount}};
  environment["cuda"] = {{"runtime", runtime}, {"driver", driver}};
#else
  static_cast<void>(environment);
#endif
}

}  // namespace

nlohmann::json tool_description() {
  return {{"name", "replayeval"}, {"version", build_version}, {"git", build_git_revision}, {"build", build_kind}};
}

nlohmann::json environment_description(DeviceKind device) {
  nlohmann::json environment = {
      {"cpu", field_of("/proc/cpuinfo", "model name", ':')},
      {"cores", std::thread::hardware_concurrency()},
      {"threads", at::get_num_threads()},
      {"memory_bytes", static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)},
      {"os", field_of("/etc/os-release", "PRETTY_NAME", '=')},
      {"kernel", kernel_name()},
      {"torch", build_torch_version},
      {"device", device == DeviceKind::cuda ? "cuda" : "cpu"},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
  if (device == DeviceKind::cuda) add_gpu(environment);
  return environment;
}

}  // namespace replayeval
