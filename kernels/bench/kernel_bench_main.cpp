// replayeval_kernel_bench: `replayeval bench kernels` as a program of its own, without LibTorch.
#include "kernels/bench/kernel_bench.h"

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  CLI::App app("Time of one decode step of a layer, exact against replay, over whole ring cycles");
  replayeval::bench::add_kernel_bench(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 3;
  } catch (const std::exception& error) {
    std::cerr << "replayeval_kernel_bench: " << error.what() << '\n';
    return 3;
  }
  return 0;
}
