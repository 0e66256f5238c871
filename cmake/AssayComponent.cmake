# add_component(NAME PLAIN|TORCH SOURCES ... HEADERS ... [DEPS ...]): the static library assay_NAME.
# add_component_tests(NAME SOURCES ... [DEPS ...] [LABELS ...]): the test binary NAME_tests.
# A TORCH component links LibTorch (with CUDA where that is on) and uses the one torch PCH.
find_package(Threads REQUIRED)

function(assay_warnings target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;\
-Wshadow;-Wconversion;-Wnon-virtual-dtor;-Wold-style-cast>")
endfunction()

# The one precompiled header: only <system> includes, so that its text holds no path of the checkout.
function(assay_add_torch_pch)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/torch_pch.cpp" CONTENT "// Owner of the PCH.\n")
  add_library(assay_torch_pch OBJECT "${PROJECT_BINARY_DIR}/torch_pch.cpp")
  target_link_libraries(assay_torch_pch PUBLIC libtorch::torch Threads::Threads)
  target_precompile_headers(assay_torch_pch PRIVATE <torch/torch.h>)
  assay_pch_options(assay_torch_pch)
  assay_warnings(assay_torch_pch)  # -Wpedantic changes predefined macros: must be as its users'
endfunction()

function(assay_use_torch_pch target)
  if(TARGET assay_torch_pch)
    target_precompile_headers(${target} REUSE_FROM assay_torch_pch)
    assay_pch_options(${target})
  endif()
endfunction()

# What ccache needs in order to cache with a precompiled header.
function(assay_pch_options target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()

function(add_component name kind)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS;DEPS" ${ARGN})
  if(NOT kind MATCHES "^(PLAIN|TORCH)$" OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_component(${name} ...): got kind '${kind}' and stray arguments "
      "'${arg_UNPARSED_ARGUMENTS}', expected PLAIN or TORCH, then SOURCES, HEADERS, DEPS")
  endif()
  set(target assay_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
    FILES ${arg_HEADERS})
  set_property(TARGET ${target} PROPERTY VERIFY_INTERFACE_HEADER_SETS ON)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PUBLIC "${PROJECT_SOURCE_DIR}/third_party")
  target_link_libraries(${target} PUBLIC Threads::Threads ${arg_DEPS})
  if(name STREQUAL "base")
    target_link_libraries(${target} PUBLIC assay_version)
  endif()
  if(kind STREQUAL "TORCH")
    target_link_libraries(${target} PUBLIC libtorch::torch)
    assay_use_torch_pch(${target})
  endif()
  assay_warnings(${target})
endfunction()

# Tests of a TORCH component use the PCH too: they are recognised by what their DEPS link.
function(add_component_tests name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  set(target ${name}_tests)
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${target} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  foreach(dep IN LISTS arg_DEPS)
    if(TARGET ${dep})
      get_target_property(linked ${dep} LINK_LIBRARIES)
      if("libtorch::torch" IN_LIST linked)
        assay_use_torch_pch(${target})
        break()
      endif()
    endif()
  endforeach()
  assay_warnings(${target})
  string(REPLACE ";" "\\;" labels "${arg_LABELS}")
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS "${labels}")
endfunction()
