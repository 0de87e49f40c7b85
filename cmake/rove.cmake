# Helpers shared by the folders' lists.

# rove_layer(NAME SOURCES … LINK …): a static library rove_NAME of one layer.
function(rove_layer name)
  cmake_parse_arguments(layer "" "" "SOURCES;LINK" ${ARGN})
  add_library(rove_${name} STATIC ${layer_SOURCES})
  target_include_directories(rove_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(rove_${name} PRIVATE ${ROVE_WARNINGS})
  target_link_libraries(rove_${name} PUBLIC ${layer_LINK})
endfunction()

# rove_test(NAME SOURCES … LINK … [LABELS …]): a GoogleTest program, one ctest entry per test.
function(rove_test name)
  cmake_parse_arguments(test "" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT test_LABELS)
    set(test_LABELS unit)
  endif()
  add_executable(${name} ${test_SOURCES})
  # Tests look into nodes that they know to be quiet, and at single parts of nodes, without a lock.
  target_compile_options(${name} PRIVATE ${ROVE_WARNINGS} $<$<CXX_COMPILER_ID:Clang>:-Wno-thread-safety>)
  target_link_libraries(${name} PRIVATE ${test_LINK} GTest::gtest_main)
  # Two properties, as gtest_discover_tests drops all but the first of a list of values.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 120 LABELS "${test_LABELS}"
               ENVIRONMENT "ROVE_BUILD_DIR=${CMAKE_BINARY_DIR}"
               ENVIRONMENT_MODIFICATION "ROVE_SOURCE_DIR=set:${PROJECT_SOURCE_DIR}")
endfunction()

# rove_exports(TARGET MAP): the library exports the names in the version script MAP and no others.
function(rove_exports name map)
  target_link_options(${name} PRIVATE -Wl,--version-script,${map})
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()

set(ROVE_WARNINGS -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND ROVE_WARNINGS -Wthread-safety -Werror=thread-safety)  # base/mutex.hpp
endif()
