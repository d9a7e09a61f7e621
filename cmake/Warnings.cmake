# replayeval_warnings: the warnings that our own code compiles without; link it PRIVATE.
option(REPLAYEVAL_WERROR "Warnings are errors in our own code" ON)
add_library(replayeval_warnings INTERFACE)

set(host_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
                  -Wcast-align -Wformat=2)
set(cuda_host_warnings -Wall -Wextra)  # nvcc's generated host code does not survive the rest
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND host_warnings -Wno-restrict -Wno-stringop-overflow)  # its bug 105329: "a" + std::string at -O3
endif()
if(REPLAYEVAL_SANITIZE)
  # g++ 12 sees uninitialised reads in the standard library's <regex> and <functional> once they are instrumented.
  list(APPEND host_warnings -Wno-maybe-uninitialized)
endif()
if(REPLAYEVAL_WERROR)
  list(APPEND host_warnings -Werror)
  list(APPEND cuda_host_warnings -Werror)
  target_compile_options(replayeval_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()
list(JOIN cuda_host_warnings "," cuda_host_warnings)
target_compile_options(
  replayeval_warnings
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wpedantic;${host_warnings}>"
            "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler ${cuda_host_warnings}>")
