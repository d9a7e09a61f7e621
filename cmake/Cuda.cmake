# Decides whether this build has CUDA kernels, and enables the language if so.
#   REPLAYEVAL_CUDA                AUTO (where an nvcc is found) | ON (an nvcc must be there) | OFF
#   REPLAYEVAL_CUDA_ARCHITECTURES  90 by default; "80;90;100" compile too
# Sets REPLAYEVAL_WITH_CUDA (also a preprocessor macro) and REPLAYEVAL_CUDA_REASON (why not, in words).
set(REPLAYEVAL_CUDA AUTO CACHE STRING "CUDA kernels: AUTO, ON or OFF")
set_property(CACHE REPLAYEVAL_CUDA PROPERTY STRINGS AUTO ON OFF)
set(REPLAYEVAL_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures that CUDA files are compiled for")
set(REPLAYEVAL_WITH_CUDA OFF)

if(NOT REPLAYEVAL_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "REPLAYEVAL_CUDA is '${REPLAYEVAL_CUDA}'; allowed are AUTO, ON and OFF")
endif()

if(REPLAYEVAL_CUDA STREQUAL "OFF")
  set(REPLAYEVAL_CUDA_REASON "REPLAYEVAL_CUDA is OFF")
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER)
  find_program(REPLAYEVAL_NVCC nvcc PATHS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(REPLAYEVAL_NVCC)
    set(CMAKE_CUDA_COMPILER "${REPLAYEVAL_NVCC}")
  endif()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  if(REPLAYEVAL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "REPLAYEVAL_CUDA is ON, but no nvcc was found on PATH, in $CUDA_HOME/bin or /usr/local/cuda/bin")
  endif()
  set(REPLAYEVAL_CUDA_REASON "no nvcc found")
  return()
endif()

set(CMAKE_CUDA_ARCHITECTURES "${REPLAYEVAL_CUDA_ARCHITECTURES}")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime in the process: the one that LibTorch loads as well
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
set(REPLAYEVAL_WITH_CUDA ON)
add_compile_definitions(REPLAYEVAL_WITH_CUDA=1)
