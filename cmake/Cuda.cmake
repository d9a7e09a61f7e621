# Decides whether this build has CUDA kernels, and enables the language if so.
#   REPLAYEVAL_CUDA                AUTO (where an nvcc of CUDA 13 or newer is found) | ON (there must be one) | OFF
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

# The first nvcc that is new enough, in the places and the order of scripts/lib/python.sh: the wheel's LibTorch is built
# with CUDA 13, and one process holds one CUDA runtime.
set(oldest_nvcc 13.0)
if(CMAKE_CUDA_COMPILER)
  set(nvcc_candidates "${CMAKE_CUDA_COMPILER}")
else()
  set(nvcc_candidates nvcc "$ENV{CUDA_HOME}/bin/nvcc" /usr/local/cuda/bin/nvcc)
endif()
set(nvcc "")
set(too_old "")
foreach(candidate IN LISTS nvcc_candidates)
  execute_process(COMMAND "${candidate}" --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET RESULT_VARIABLE nvcc_failed)
  if(nvcc_failed OR NOT nvcc_says MATCHES "release ([0-9]+\\.[0-9]+)")
    continue()
  endif()
  if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL oldest_nvcc)
    set(nvcc "${candidate}")
    break()
  endif()
  string(APPEND too_old ", ${candidate} is of CUDA ${CMAKE_MATCH_1}")
endforeach()
if(NOT nvcc)
  set(REPLAYEVAL_CUDA_REASON "no nvcc of CUDA ${oldest_nvcc} or newer${too_old}")
  if(REPLAYEVAL_CUDA STREQUAL "ON")
    list(JOIN nvcc_candidates ", " nvcc_candidates)
    message(FATAL_ERROR "REPLAYEVAL_CUDA is ON: ${REPLAYEVAL_CUDA_REASON} (looked for ${nvcc_candidates})")
  endif()
  return()
endif()
set(CMAKE_CUDA_COMPILER "${nvcc}")

set(CMAKE_CUDA_ARCHITECTURES "${REPLAYEVAL_CUDA_ARCHITECTURES}")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime in the process: the one that LibTorch loads as well
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
set(REPLAYEVAL_WITH_CUDA ON)
add_compile_definitions(REPLAYEVAL_WITH_CUDA=1)
