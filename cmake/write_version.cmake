# Run at build time by AssayVersion.cmake: fills base/version.cpp.in, and leaves the result alone if
# nothing changed. The commit ends in "-dirty" if tracked files differ from it.
set(COMMIT "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE_DIR}/.git")
  # safe.directory: a checkout owned by another user (a container's volume) still has its commit.
  execute_process(
    COMMAND ${GIT} --no-optional-locks -c safe.directory=* describe --always --dirty
      --abbrev=40 --exclude=*
    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE described RESULT_VARIABLE rc
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(rc EQUAL 0)
    set(COMMIT "${described}")
  endif()
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
