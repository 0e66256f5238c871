# LibTorch as imported targets of our own: libtorch::cpu, libtorch::cuda (where CUDA is on), and
# libtorch::torch, the one of the two that this build links. Not find_package(Torch): on the wheels
# it insists on nvcc and breaks machines without CUDA.
#
# Where: the cache variable LIBTORCH (a folder with torch/ and nvidia/ side by side, the torch
# folder itself, or an unpacked LibTorch archive), else cmake/provision/libtorch.sh find.
# Sets LibTorch_FOUND, LibTorch_VERSION, LibTorch_DIR and the global properties
# ASSAY_LIBTORCH_VERSION and ASSAY_CUDA_VERSION ("" without CUDA).
include(FindPackageHandleStandardArgs)
include(LibTorchCuda)

set(LIBTORCH "" CACHE PATH "LibTorch to use; empty: installed torch of Python, then the cache")

# Any spelling of the folder -> the one that holds lib/libtorch_cpu.so; empty if there is none.
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env "LIBTORCH_HINT=${LIBTORCH}" bash
    "${CMAKE_CURRENT_LIST_DIR}/provision/libtorch.sh" find
  OUTPUT_VARIABLE torch_dir ERROR_VARIABLE why RESULT_VARIABLE rc
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
if(NOT rc EQUAL 0)
  set(torch_dir "")
  set(LibTorch_NOT_FOUND_MESSAGE "${why}")
endif()
set(LibTorch_DIR "${torch_dir}")

set(LibTorch_VERSION "")
if(LibTorch_DIR)
  file(STRINGS "${LibTorch_DIR}/include/torch/headeronly/version.h" version_lines
    REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" version_parts "${version_lines}")
  list(JOIN version_parts "." LibTorch_VERSION)
endif()

find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${LibTorch_NOT_FOUND_MESSAGE}")

if(LibTorch_FOUND AND NOT TARGET libtorch::cpu)
  set(lib "${LibTorch_DIR}/lib")
  # Wheels keep NVIDIA's libraries in nvidia/*/lib beside torch/; libtorch_cpu needs libcudart and
  # libcupti from there even on a machine without a GPU. Their own RPATH knows that layout; ours
  # (the old kind, which also serves the libraries' own needs) adds a toolkit's folders.
  libtorch_nvidia_folders(nvidia_libs nvidia_includes "${LibTorch_DIR}")
  set(search_libs "${lib}" ${nvidia_libs})

  add_library(libtorch::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::c10 PROPERTIES IMPORTED_LOCATION "${lib}/libc10.so")

  add_library(libtorch::cpu SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::cpu PROPERTIES IMPORTED_LOCATION "${lib}/libtorch_cpu.so")
  target_include_directories(libtorch::cpu SYSTEM INTERFACE "${LibTorch_DIR}/include"
    "${LibTorch_DIR}/include/torch/csrc/api/include")
  # What LibTorch's own headers must see set, as it was built with them.
  target_compile_definitions(libtorch::cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  target_link_libraries(libtorch::cpu INTERFACE libtorch::c10)
  target_link_options(libtorch::cpu INTERFACE LINKER:--disable-new-dtags)
  foreach(folder IN LISTS search_libs)
    target_link_options(libtorch::cpu INTERFACE "LINKER:-rpath,${folder}"
      "LINKER:-rpath-link,${folder}")
  endforeach()

  libtorch_add_cuda("${LibTorch_DIR}" "${search_libs}" "${nvidia_includes}" cuda_version)

  add_library(libtorch::torch INTERFACE IMPORTED GLOBAL)
  if(TARGET libtorch::cuda)
    target_link_libraries(libtorch::torch INTERFACE libtorch::cuda)
  else()
    target_link_libraries(libtorch::torch INTERFACE libtorch::cpu)
  endif()
  set_property(GLOBAL PROPERTY ASSAY_LIBTORCH_VERSION "${LibTorch_VERSION}")
  set_property(GLOBAL PROPERTY ASSAY_CUDA_VERSION "${cuda_version}")
endif()
