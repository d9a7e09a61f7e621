// Names of the arrays below a result folder's tokens/.
#pragma once

#include <string>

namespace replayeval {

inline std::string token_index_file(const std::string& workload) { return workload + ".index.npy"; }

inline std::string documents_file(const std::string& workload) { return workload + ".documents.json"; }

inline std::string log_prob_file(const std::string& workload, const std::string& arm) {
  return workload + "." + arm + ".npy";
}

inline std::string kl_file(const std::string& workload, const std::string& arm) {
  return workload + "." + arm + ".kl.npy";
}

inline std::string generated_file(const std::string& workload, const std::string& arm) {
  return workload + "." + arm + ".generated.npy";
}

}  // namespace replayeval
