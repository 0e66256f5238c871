# assay_version: base/version.h, with its values written at build time into one small .cpp. The git
# commit is looked up on every build, but only that file and the final links depend on it.
function(assay_add_version)
  get_property(torch_version GLOBAL PROPERTY ASSAY_LIBTORCH_VERSION)
  get_property(cuda_version GLOBAL PROPERTY ASSAY_CUDA_VERSION)
  get_property(nccl_version GLOBAL PROPERTY ASSAY_NCCL_VERSION)
  set(source "${PROJECT_BINARY_DIR}/version/version.cpp")
  add_custom_target(assay_write_version
    COMMAND ${CMAKE_COMMAND}
      -D "TEMPLATE=${PROJECT_SOURCE_DIR}/base/version.cpp.in" -D "OUTPUT=${source}"
      -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "VERSION=${PROJECT_VERSION}"
      -D "BUILD_TYPE=${CMAKE_BUILD_TYPE}" -D "LIBTORCH_VERSION=${torch_version}"
      -D "CUDA_VERSION=${cuda_version}" -D "NCCL_VERSION=${nccl_version}"
      -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      -P "${PROJECT_SOURCE_DIR}/cmake/write_version.cmake"
    BYPRODUCTS "${source}" COMMENT "Looking up the commit" VERBATIM)
  add_library(assay_version STATIC "${source}")
  target_sources(assay_version PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
    FILES "${PROJECT_SOURCE_DIR}/base/version.h")
  add_dependencies(assay_version assay_write_version)
  assay_warnings(assay_version)
endfunction()
