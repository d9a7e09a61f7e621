# REPLAYEVAL_SANITIZE=ON builds everything of ours with the address and undefined-behaviour sanitizers.
# REPLAYEVAL_FUZZ=ON, with clang: the libFuzzer programs of tests/fuzz, so sanitized, and nothing else.
option(REPLAYEVAL_FUZZ "Build the fuzzers, and only them" OFF)
if(REPLAYEVAL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "REPLAYEVAL_FUZZ needs clang++ (libFuzzer comes with its compiler-rt), "
                        "CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER}")
  endif()
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

option(REPLAYEVAL_SANITIZE "Build with the address and undefined-behaviour sanitizers" OFF)
if(REPLAYEVAL_SANITIZE)
  if(REPLAYEVAL_WITH_CUDA)
    message(FATAL_ERROR "REPLAYEVAL_SANITIZE needs REPLAYEVAL_CUDA=OFF")
  endif()
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # optimised harder, instrumented code takes minutes a file
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
