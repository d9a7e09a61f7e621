# replayeval_build_info: "build_info.h" with the version, the git revision at build time and the kind of build.
set(build_info_header "${CMAKE_BINARY_DIR}/generated/build_info.h")
if(REPLAYEVAL_WITH_CUDA)
  set(build_kind "${CMAKE_BUILD_TYPE}, CUDA ${CMAKE_CUDA_COMPILER_VERSION} sm ${CMAKE_CUDA_ARCHITECTURES}")
else()
  set(build_kind "${CMAKE_BUILD_TYPE}, CPU only")
endif()
string(APPEND build_kind ", ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
string(REPLACE ";" "," build_kind "${build_kind}")

add_custom_target(
  replayeval_build_info_header
  COMMAND "${CMAKE_COMMAND}" "-DHEADER=${build_info_header}" "-DSOURCE_DIR=${CMAKE_SOURCE_DIR}"
          "-DVERSION=${PROJECT_VERSION}" "-DBUILD=${build_kind}" "-DTORCH=${REPLAYEVAL_TORCH_VERSION}" -P
          "${CMAKE_CURRENT_LIST_DIR}/WriteBuildInfo.cmake"
  BYPRODUCTS "${build_info_header}"
  VERBATIM)
add_library(replayeval_build_info INTERFACE)
target_include_directories(replayeval_build_info INTERFACE "${CMAKE_BINARY_DIR}/generated")
add_dependencies(replayeval_build_info replayeval_build_info_header)
