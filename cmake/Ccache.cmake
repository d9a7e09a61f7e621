# Compiles go through ccache where it is installed, unless the caller named a launcher of their own.
# The sloppiness is what ccache asks for before it caches files that use a precompiled header.
find_program(REPLAYEVAL_CCACHE ccache)
if(REPLAYEVAL_CCACHE)
  foreach(language CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
          "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
          "${REPLAYEVAL_CCACHE}")
    endif()
  endforeach()
endif()
