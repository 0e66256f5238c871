#include "platform/nvml_library.h"

#include <dlfcn.h>

#include "base/text.h"

namespace assay::platform::nvml {

Library::Library(const std::string& name) {
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) {
    const char* const reason = dlerror();
    problem_ = reason ? reason : cat(name, ": cannot be loaded");
    return;
  }
  const int code = call<Plain>("nvmlInit_v2");
  is_initialized_ = code == kSuccess;
  if (!is_initialized_) problem_ = cat("nvmlInit_v2: ", error_text(code), " (code ", code, ")");
}

Library::~Library() {
  if (is_initialized_) call<Plain>("nvmlShutdown");
  if (handle_) dlclose(handle_);
}

void* Library::find(const char* function) const {
  return handle_ ? dlsym(handle_, function) : nullptr;
}

std::string Library::error_text(int code) const {
  void* const address = find("nvmlErrorString");
  const char* const text = address ? reinterpret_cast<ErrorText*>(address)(code) : nullptr;
  if (text) return text;
  return code == kFunctionNotFound ? "the library has no such function" : "no explanation";
}

}  // namespace assay::platform::nvml
