#include "reports/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace replayeval::reports {
namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  std::string read_all() {
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    while ((count = ::read(ends[0], buffer.data(), buffer.size())) > 0 || (count < 0 && errno == EINTR)) {
      if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
};

// gnuplot's complaint stands in the last line that is not empty; the lines before show the place.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

// Starts gnuplot in the script's folder with stderr in `complaints`; an errno, 0 on success.
int start(const std::filesystem::path& script, const Pipe& complaints, pid_t* child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, complaints.ends[1], STDERR_FILENO);
  const std::string folder = script.has_parent_path() ? script.parent_path().string() : ".";
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::string program = "gnuplot";
  std::string file = script.filename().string();
  std::array<char*, 3> arguments = {program.data(), file.data(), nullptr};
  const int failure = ::posix_spawnp(child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

}  // namespace

std::string run_gnuplot(const std::filesystem::path& script) {
  Pipe complaints;
  if (complaints.ends[0] < 0) return std::string("no pipe for gnuplot: ") + std::strerror(errno);
  pid_t child = 0;
  const int failure = start(script, complaints, &child);
  if (failure == ENOENT) return "gnuplot is not installed (Debian package gnuplot-nox)";
  if (failure != 0) return std::string("gnuplot cannot be started: ") + std::strerror(failure);
  complaints.close_end(1);
  const std::string said = complaints.read_all();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return fmt::format("gnuplot failed on {}: {}", script.filename().string(), last_line(said));
}

}  // namespace replayeval::reports
