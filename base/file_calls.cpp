#include "base/file_calls.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

struct Attempt {
  int error_number = 0;
  ssize_t result = -1;
};

// Calls until it is not interrupted; `call` gives back an Attempt.
template <class Call>
Attempt without_interruption(const Call& call) {
  Attempt attempt;
  for (int count = 0; count < kMaxInterruptions; ++count) {
    attempt = call();
    if (attempt.error_number != EINTR) break;
  }
  return attempt;
}

Attempt outcome_of(ssize_t result) { return {result < 0 ? errno : 0, result}; }

int opened(const std::string& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0644);
}

}  // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

FaultOutcome fault_step(std::string_view site, std::string_view step) {
  if (site.empty() || !are_faults_armed()) return {};
  return fault_point(cat(site, step));
}

Descriptor open_descriptor(const std::string& path, int flags, const std::string& operation) {
  const Attempt attempt = without_interruption([&] { return outcome_of(opened(path, flags)); });
  if (attempt.error_number != 0) throw FileError(operation, path, attempt.error_number);
  return Descriptor(static_cast<int>(attempt.result));
}

Descriptor open_for_writing(const std::string& path, int flags, std::string_view site) {
  const Attempt attempt = without_interruption([&]() -> Attempt {
    const FaultOutcome fault = fault_step(site, ".open");
    if (fault.error_number != 0) return {fault.error_number, -1};
    return outcome_of(opened(path, flags | O_CREAT));
  });
  if (attempt.error_number != 0) throw FileError("create", path, attempt.error_number);
  return Descriptor(static_cast<int>(attempt.result));
}

size_t read_some(const Descriptor& file, void* bytes, size_t limit, const std::string& path) {
  const Attempt attempt =
      without_interruption([&] { return outcome_of(::read(file.get(), bytes, limit)); });
  if (attempt.error_number != 0) throw FileError("read", path, attempt.error_number);
  return static_cast<size_t>(attempt.result);
}

void write_all(int descriptor, std::string_view bytes, const std::string& path,
               std::string_view site, size_t* num_written) {
  size_t done = 0;
  while (done < bytes.size()) {
    const std::string_view rest = bytes.substr(done);
    const Attempt attempt = without_interruption([&]() -> Attempt {
      const FaultOutcome fault = fault_step(site, ".write");
      if (fault.error_number != 0) return {fault.error_number, -1};
      const size_t count = fault.is_short ? std::max<size_t>(rest.size() / 2, 1) : rest.size();
      return outcome_of(::write(descriptor, rest.data(), count));
    });
    if (attempt.error_number != 0) throw FileError("write", path, attempt.error_number);
    // A file that takes nothing and gives no reason would keep us here for ever.
    if (attempt.result == 0) throw FileError("write", path, EIO);
    done += static_cast<size_t>(attempt.result);
    if (num_written != nullptr) *num_written = done;
  }
}

void sync_descriptor(int descriptor, const std::string& path, std::string_view site) {
  const Attempt attempt = without_interruption([&]() -> Attempt {
    const FaultOutcome fault = fault_step(site, ".fsync");
    if (fault.error_number != 0) return {fault.error_number, -1};
    return outcome_of(::fsync(descriptor));
  });
  if (attempt.error_number != 0) throw FileError("sync", path, attempt.error_number);
}

void close_descriptor(int descriptor, const std::string& path, std::string_view site) {
  Descriptor owner(descriptor);
  const FaultOutcome fault = fault_step(site, ".close");
  const int result = ::close(owner.release());
  const int error_number = fault.error_number != 0 ? fault.error_number : result == 0 ? 0 : errno;
  // Linux has closed the descriptor when close(2) is interrupted; a second call would be wrong.
  if (error_number != 0 && error_number != EINTR) throw FileError("close", path, error_number);
}

}  // namespace assay
