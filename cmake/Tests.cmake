# replayeval_test(NAME <n> SOURCES <files> LIBS <targets> [LABELS <words>] [TORCH]), NAME and SOURCES being optional words,
# makes the GoogleTest program bin/<n> and registers its cases with ctest. Its labels are its folder under tests/ and
# whatever LABELS adds. TORCH: it uses ATen; the others are labelled `plain` and belong to the target
# replayeval_plain_tests, which is what the sanitizers run on.
# Tests run in the repository's root.
include(GoogleTest)
option(REPLAYEVAL_TESTS "Build the tests" ON)
if(REPLAYEVAL_TESTS)
  find_package(GTest REQUIRED)
endif()
find_package(Threads REQUIRED)
add_custom_target(replayeval_plain_tests)

function(replayeval_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH" "NAME" "SOURCES;LIBS;LABELS")
  if(NOT arg_NAME)
    list(POP_FRONT arg_UNPARSED_ARGUMENTS arg_NAME)
  endif()
  list(APPEND arg_SOURCES ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "replayeval_test(NAME n SOURCES files LIBS targets [LABELS words] [TORCH]): "
                        "'${arg_NAME}' lacks a name or sources")
  endif()
  if(NOT REPLAYEVAL_TESTS)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBS} replayeval_warnings GTest::gmock GTest::gtest_main
                                            Threads::Threads)
  if(arg_TORCH)
    replayeval_use_torch(${arg_NAME})
  else()
    list(APPEND arg_LABELS plain)
    add_dependencies(replayeval_plain_tests ${arg_NAME})
  endif()
  file(RELATIVE_PATH folder "${CMAKE_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "^\\.\\./" "" folder "${folder}")
  string(REGEX REPLACE "/.*" "" top_folder "${folder}")
  set(labels ${top_folder} ${folder} ${arg_LABELS})
  list(REMOVE_DUPLICATES labels)
  list(JOIN labels "\\;" labels)  # one list element, so that all of it reaches the property
  gtest_discover_tests(
    ${arg_NAME}
    TEST_PREFIX "${arg_NAME}."
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
    NO_PRETTY_VALUES  # a parameter goes by the name its test gave it
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${labels}" TIMEOUT 1200)
endfunction()
