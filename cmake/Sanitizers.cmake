# REPLAYEVAL_SANITIZE=ON builds everything of ours with the address and undefined-behaviour sanitizers.
option(REPLAYEVAL_SANITIZE "Build with the address and undefined-behaviour sanitizers" OFF)
if(REPLAYEVAL_SANITIZE)
  if(REPLAYEVAL_WITH_CUDA)
    message(FATAL_ERROR "REPLAYEVAL_SANITIZE needs REPLAYEVAL_CUDA=OFF")
  endif()
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # optimised harder, instrumented code takes minutes a file
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
