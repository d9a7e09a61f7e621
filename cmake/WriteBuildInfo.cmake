# Run at every build; touches the header only when its text changes.
find_package(Git QUIET)
set(revision unknown)
if(GIT_FOUND)
  execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision "${described}")
  endif()
endif()
file(
  CONFIGURE
  OUTPUT "${HEADER}"
  CONTENT
    "// Written by the build.
#pragma once

namespace replayeval {

inline constexpr const char* build_version = \"@VERSION@\";
inline constexpr const char* build_git_revision = \"@revision@\";  // ends in -dirty where tracked files were changed
inline constexpr const char* build_kind = \"@BUILD@\";
inline constexpr const char* build_torch_version = \"@TORCH@\";

}  // namespace replayeval
"
  @ONLY)
