# replayeval_torch: LibTorch out of the `torch` wheel, named file by file. The wheel's own find_package(Torch) insists on
# an nvcc because the wheel was built with CUDA; a CPU-only program needs only libtorch_cpu and libc10 of it.
#   REPLAYEVAL_TORCH_DIR  the `torch` folder of the wheel; found in the project's .venv by default
# replayeval_use_torch(TARGET) links it and reuses one precompiled <ATen/ATen.h> for all its users.
set(REPLAYEVAL_TORCH_VERSION 2.11.0)

if(NOT REPLAYEVAL_TORCH_DIR)
  file(GLOB torch_candidates "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  foreach(candidate IN LISTS torch_candidates)
    if(EXISTS "${candidate}/lib/libtorch_cpu.so")
      set(REPLAYEVAL_TORCH_DIR "${candidate}" CACHE PATH "The torch folder of the torch wheel" FORCE)
    endif()
  endforeach()
endif()
if(NOT REPLAYEVAL_TORCH_DIR)
  find_program(REPLAYEVAL_PYTHON NAMES python3)
  if(REPLAYEVAL_PYTHON)
    execute_process(
      COMMAND "${REPLAYEVAL_PYTHON}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE torch_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(torch_found)
      set(REPLAYEVAL_TORCH_DIR "${torch_found}" CACHE PATH "The torch folder of the torch wheel" FORCE)
    endif()
  endif()
endif()
if(NOT EXISTS "${REPLAYEVAL_TORCH_DIR}/lib/libtorch_cpu.so" OR NOT EXISTS "${REPLAYEVAL_TORCH_DIR}/include/ATen/ATen.h")
  message(FATAL_ERROR "No torch ${REPLAYEVAL_TORCH_VERSION} wheel in ${CMAKE_SOURCE_DIR}/.venv (looked at "
                      "'${REPLAYEVAL_TORCH_DIR}'): run `make setup`, or give -DREPLAYEVAL_TORCH_DIR=.../site-packages/torch")
endif()
file(STRINGS "${REPLAYEVAL_TORCH_DIR}/version.py" torch_version_line REGEX "^__version__")
if(NOT torch_version_line MATCHES "'${REPLAYEVAL_TORCH_VERSION}[+']")
  message(FATAL_ERROR "${REPLAYEVAL_TORCH_DIR} holds another torch (${torch_version_line}); "
                      "${REPLAYEVAL_TORCH_VERSION} is needed")
endif()

get_filename_component(site_packages "${REPLAYEVAL_TORCH_DIR}" DIRECTORY)
file(GLOB nvidia_libraries LIST_DIRECTORIES true "${site_packages}/nvidia/*/lib")
set(torch_library_folders "${REPLAYEVAL_TORCH_DIR}/lib" ${nvidia_libraries})
# Every program of ours finds the wheel's libraries, the CUDA runtime among them, without LD_LIBRARY_PATH. Written out, as
# CMake's own path would come with a warning: the wheel has a libgomp, and so has g++. One is loaded, the wheel's.
set(CMAKE_SKIP_BUILD_RPATH ON)
foreach(folder IN LISTS torch_library_folders)
  add_link_options("LINKER:-rpath,${folder}")
endforeach()

# libstdc++ comes first among the shared libraries: the wheel's export an older copy of std::filesystem, which would answer
# our calls and crash.
add_link_options("LINKER:--push-state,--no-as-needed,-lstdc++,--pop-state")

add_library(replayeval_torch INTERFACE)
target_compile_definitions(replayeval_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
# After the system's folders, as the wheel carries an fmt of its own that must not hide the distribution's, which the
# distribution's spdlog is built with. Like -isystem, -idirafter silences warnings from there.
target_compile_options(
  replayeval_torch
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${REPLAYEVAL_TORCH_DIR}/include>"
            "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${REPLAYEVAL_TORCH_DIR}/include/torch/csrc/api/include>"
            "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
foreach(folder IN LISTS torch_library_folders)
  target_link_options(replayeval_torch INTERFACE "LINKER:-rpath-link,${folder}")
endforeach()
if(REPLAYEVAL_WITH_CUDA)
  # Nothing refers to libtorch_cuda by symbol: it registers its operators when it is loaded.
  target_link_libraries(
    replayeval_torch
    INTERFACE "-Wl,--push-state,--no-as-needed" "${REPLAYEVAL_TORCH_DIR}/lib/libtorch_cuda.so"
              "${REPLAYEVAL_TORCH_DIR}/lib/libc10_cuda.so"
              "-Wl,--pop-state" CUDA::cudart)
endif()
target_link_libraries(replayeval_torch INTERFACE "${REPLAYEVAL_TORCH_DIR}/lib/libtorch_cpu.so"
                                                 "${REPLAYEVAL_TORCH_DIR}/lib/libc10.so")

file(WRITE "${CMAKE_BINARY_DIR}/generated/torch_pch.cpp" "// Owns the precompiled header of everything that uses ATen.\n")
add_library(replayeval_torch_pch OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/generated/torch_pch.cpp")
target_link_libraries(replayeval_torch_pch PRIVATE replayeval_torch replayeval_warnings)
target_precompile_headers(replayeval_torch_pch PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<ATen/ATen.h$<ANGLE-R>>")

function(replayeval_use_torch target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_libraries(${target} PRIVATE replayeval_torch)
  else()
    target_link_libraries(${target} PUBLIC replayeval_torch)
  endif()
  target_precompile_headers(${target} REUSE_FROM replayeval_torch_pch)
endfunction()
