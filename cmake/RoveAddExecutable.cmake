# rove_add_executable(NAME [STRICT] [SHIP images|bitcode|nothing] [DEPENDS SONAME…] SOURCE…)
#
# A program whose functions can run on nodes that have never seen it. As add_executable(), linked with rove::rove; and
#   images    (the default) after linking, `rove bundle` takes every function that the program sends out of its bitcode, and adds
#             them to the program as packages: their first call takes microseconds, and the program needs no LLVM
#   bitcode   the program carries its bitcode, and librove-jit.so makes packages of it when a function is sent first
#   nothing   its functions run where they are resident
# DEPENDS: libraries that its functions open by themselves, by their bare sonames, as libz.so.1. Those that the program is linked with are
# found; nodes need to have them, too. With images.
# STRICT: what `rove bundle` warns of fails the build. With images, because nothing looks at the functions of the others when they are built.
# The first two need clang; with another compiler the functions are resident only.
function(rove_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 rove "STRICT" "SHIP" "DEPENDS")
  if("SHIP" IN_LIST rove_KEYWORDS_MISSING_VALUES)  # DEPENDS may be given an empty list
    message(FATAL_ERROR "rove_add_executable(${name}): SHIP without a value; there are images, bitcode and nothing")
  endif()
  if(NOT rove_SHIP)
    set(rove_SHIP images)
  endif()
  if(NOT rove_SHIP MATCHES "^(images|bitcode|nothing)$")
    message(FATAL_ERROR "rove_add_executable(${name}): SHIP '${rove_SHIP}'; there are images, bitcode and nothing")
  endif()
  # Both are for `rove bundle`, which nothing else needs.
  if(rove_STRICT AND NOT rove_SHIP STREQUAL "images")
    message(FATAL_ERROR "rove_add_executable(${name}): STRICT is about what `rove bundle` warns of, and SHIP ${rove_SHIP} does not run it")
  endif()
  if(rove_DEPENDS AND rove_SHIP STREQUAL "nothing")
    message(FATAL_ERROR "rove_add_executable(${name}): DEPENDS needs SHIP images; with SHIP nothing no function travels")
  endif()
  if(rove_DEPENDS AND rove_SHIP STREQUAL "bitcode")
    message(FATAL_ERROR "rove_add_executable(${name}): DEPENDS needs SHIP images; with SHIP bitcode a function's libraries are those that the "
      "program is linked with: target_link_libraries(${name} PRIVATE …)")
  endif()
  # Sources may follow them: what is no soname is none of them.
  set(sources ${rove_DEPENDS})
  list(FILTER rove_DEPENDS INCLUDE REGEX "\\.so(\\.[0-9.]+)?$")
  list(FILTER sources EXCLUDE REGEX "\\.so(\\.[0-9.]+)?$")
  if(rove_DEPENDS MATCHES "/")
    message(FATAL_ERROR "rove_add_executable(${name}): DEPENDS ${rove_DEPENDS}; give the bare soname, as libz.so.1")
  endif()
  # No error: the nodes need them, and this machine only where it is one of them.
  foreach(library ${rove_DEPENDS})
    find_library(rove_found NAMES ${library} NO_CACHE)
    if(NOT rove_found)
      message(WARNING "rove_add_executable(${name}): DEPENDS ${library}, which this machine does not have; on nodes that do not have it either "
        "${name}'s functions fail")
    endif()
    unset(rove_found)
  endforeach()
  add_executable(${name} ${rove_UNPARSED_ARGUMENTS} ${sources})
  target_link_libraries(${name} PRIVATE rove::rove)
  target_compile_features(${name} PRIVATE cxx_std_20)
  # Of an installed librove.so, which is compiled without the program's sanitizer.
  if(rove_IMPORTED)
    target_sources(${name} PRIVATE ${rove_TSAN_SOURCE})
  endif()
  # Names are bound at the start, not on the way of the first call.
  target_link_options(${name} PRIVATE -Wl,-z,now)
  if(rove_SHIP STREQUAL "nothing")
    return()
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(WARNING "rove_add_executable(${name}): ${CMAKE_CXX_COMPILER_ID} embeds no bitcode, so ${name}'s functions run on nodes "
      "that have them already, and cannot be sent to others. Configure with -DCMAKE_CXX_COMPILER=clang++-19, or say SHIP nothing.")
    return()
  endif()
  set(in_c ${rove_UNPARSED_ARGUMENTS} ${sources})
  list(FILTER in_c INCLUDE REGEX "\\.c$")
  if(in_c AND NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(WARNING "rove_add_executable(${name}): ${in_c} would be compiled by ${CMAKE_C_COMPILER_ID}, which embeds no bitcode, so functions "
      "that call it stay at home. Configure with -DCMAKE_C_COMPILER=clang-19, too.")
  endif()
  rove_embed(${name})
  set(dependencies ${rove_DEPENDS})
  list(TRANSFORM dependencies PREPEND --dep=)
  if(rove_SHIP STREQUAL "images")
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND rove::command bundle $<$<BOOL:${rove_STRICT}>:--strict> $<TARGET_FILE:${name}> ${dependencies}
      COMMENT "Packing the functions of ${name}" VERBATIM COMMAND_EXPAND_LISTS)
    if(TARGET rove AND NOT rove_IMPORTED)
      add_dependencies(${name} rove)
      # Not linked with it, but packed by it. (An installed Rove is replaced together with librove.so, with which it is linked.)
      set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:rove-jit>)
    endif()
  endif()
endfunction()

# rove_embed(TARGET): a static or object library whose functions travel with those of the programs that are linked with it. Of C sources
# those that clang compiles.
function(rove_embed name)
  if(TARGET ${name})
    get_target_property(type ${name} TYPE)
    if(type MATCHES "^(SHARED|MODULE)_LIBRARY$")
      message(FATAL_ERROR "rove_embed(${name}): functions of a shared library do not travel, because `rove bundle` takes them out of the "
        "program's own file; make ${name} a static or an object library. (Functions that travel can call those of shared libraries that "
        "nodes have.)")
    endif()
  endif()
  foreach(language C CXX)
    # -Xclang: the driver's own flag refuses others that are common.
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANG_AND_ID:${language},Clang>:SHELL:-Xclang -fembed-bitcode=all>")
  endforeach()
  # As programs have it of rove::rove, which a library need not be linked with.
  target_compile_options(${name} PRIVATE
    "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,17>>:-fno-assume-unique-vtables>")
endfunction()
