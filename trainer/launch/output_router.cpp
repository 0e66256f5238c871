#include "trainer/launch/output_router.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::launch {
namespace {

constexpr int kStdoutBit = 1;
constexpr int kStderrBit = 2;
constexpr int kReadsAPump = 8;        // a rank that talks without end must not hold up the rest
constexpr int kReadsAtTheEnd = 4096;  // more than a pipe can hold
constexpr size_t kMostPendingBytes = size_t{1} << 20;  // of a line without an end

// As tempfile.mkdtemp of Python, which torchrun uses.
std::string random_suffix() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::random_device device;
  std::string text;
  for (int i = 0; i < 8; ++i) text += kLetters[device() % kLetters.size()];
  return text;
}

int open_for_writing(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0) return fd;
  throw LaunchError(cat("cannot open ", quoted(path), ": ", std::strerror(errno),
                        ". Fix: give another --log-dir, or make it writable"));
}

void make_folder(const std::string& path) {
  try {
    create_directories(path);
  } catch (const FileError& error) {
    throw LaunchError(cat(error.what(), ". Fix: give another --log-dir, or make it writable"));
  }
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a closed terminal or a full disk must not stop the run
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool takes_output(int fd) {
  pollfd waiting{fd, POLLOUT, 0};
  return poll(&waiting, 1, 0) != 0;  // an error shows when it is written to
}

}  // namespace

std::string line_prefix(const OutputSettings& settings, int64_t rank, int64_t local_rank) {
  std::string text =
      settings.prefix_template.empty() ? "[${role_name}${local_rank}]:" : settings.prefix_template;
  const auto put = [&](std::string_view name, const std::string& value) {
    for (const std::string& spelling : {cat("${", name, "}"), cat("$", name)}) {
      size_t at = text.find(spelling);
      for (; at != std::string::npos; at = text.find(spelling, at + value.size())) {
        text.replace(at, spelling.size(), value);
      }
    }
  };
  put("role_name", settings.role);
  put("local_rank", cat(local_rank));
  put("rank", cat(rank));
  return text;
}

OutputRouter::OutputRouter(OutputSettings settings) : settings_(std::move(settings)) {
  if (settings_.log_dir.empty()) return;
  folder_ = join_path(settings_.log_dir, cat(settings_.run_id, "_", random_suffix()));
  make_folder(folder_);
}

OutputRouter::~OutputRouter() { finish(); }

void OutputRouter::begin_attempt(int64_t attempt) {
  if (folder_.empty()) return;
  attempt_folder_ = join_path(folder_, cat("attempt_", attempt));
  make_folder(attempt_folder_);
}

std::string OutputRouter::error_file(int64_t local_rank) const {
  if (folder_.empty()) return "";
  return join_path(join_path(attempt_folder_, cat(local_rank)), "error.json");
}

WorkerStreams OutputRouter::open(int64_t rank, int64_t local_rank) {
  if (!folder_.empty()) make_folder(join_path(attempt_folder_, cat(local_rank)));
  return {open_stream({kStdoutBit, "stdout.log", STDOUT_FILENO}, rank, local_rank),
          open_stream({kStderrBit, "stderr.log", STDERR_FILENO}, rank, local_rank)};
}

int OutputRouter::open_stream(const Stream& stream, int64_t rank, int64_t local_rank) {
  const bool is_teed = (settings_.tee.of(local_rank) & stream.bit) != 0;
  const bool is_redirected = (settings_.redirects.of(local_rank) & stream.bit) != 0;
  const bool is_shown = settings_.shown_ranks.empty() || settings_.shown_ranks.contains(local_rank);
  if (!is_teed && !is_redirected && is_shown) return -1;
  const bool has_file = !folder_.empty() && (is_teed || is_redirected);
  const std::string rank_folder = join_path(attempt_folder_, cat(local_rank));
  const std::string path = has_file ? join_path(rank_folder, stream.file_name) : "/dev/null";
  const int file = open_for_writing(path);
  if (!is_teed) {
    child_ends_.push_back(file);
    return file;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    close(file);
    throw LaunchError(cat("cannot make a pipe for the output of rank ", rank, ": ",
                          std::strerror(error), ". Fix: see ulimit -n"));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  child_ends_.push_back(ends[1]);
  Tee tee;
  tee.from = ends[0];
  tee.file = file;
  tee.terminal = is_shown ? stream.terminal : -1;
  tee.filters = stream.bit == kStdoutBit ? &settings_.stdout_filters : &settings_.stderr_filters;
  tee.filtered = filtered_file(stream);
  tee.prefix = line_prefix(settings_, rank, local_rank);
  tees_.push_back(std::move(tee));
  return ends[1];
}

int OutputRouter::filtered_file(const Stream& stream) {
  const bool is_stdout = stream.bit == kStdoutBit;
  if ((is_stdout ? settings_.stdout_filters : settings_.stderr_filters).empty()) return -1;
  const auto found = filtered_files_.find(stream.bit);
  if (found != filtered_files_.end()) return found->second;
  const int fd = open_for_writing(join_path(attempt_folder_, cat("filtered_", stream.file_name)));
  filtered_files_[stream.bit] = fd;
  return fd;
}

void OutputRouter::close_child_ends() {
  for (const int fd : child_ends_) close(fd);
  child_ends_.clear();
}

std::vector<int> OutputRouter::readable() {
  std::vector<int> fds;
  for (const Tee& tee : tees_) {
    const bool is_blocked = tee.terminal >= 0 && !takes_output(tee.terminal);
    if (tee.from >= 0 && !is_blocked) fds.push_back(tee.from);
  }
  return fds;
}

void OutputRouter::write_line(const Tee& tee, const std::string& line) {
  const std::string text = cat(tee.prefix, line);
  if (tee.terminal >= 0) write_all(tee.terminal, text);
  if (tee.filtered < 0) return;
  for (const std::string& filter : *tee.filters) {
    if (line.find(filter) != std::string::npos) return write_all(tee.filtered, text);
  }
}

void OutputRouter::move(Tee& tee, int most_reads) {
  std::array<char, 16384> buffer;
  for (int reads = 0; tee.from >= 0 && reads < most_reads; ++reads) {
    const ssize_t count = read(tee.from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing more at the moment
    if (count == 0) {
      close(std::exchange(tee.from, -1));
      return;
    }
    const std::string_view text(buffer.data(), static_cast<size_t>(count));
    if (tee.file >= 0) write_all(tee.file, text);
    tee.pending.append(text);
    size_t start = 0;
    for (size_t end = tee.pending.find('\n'); end != std::string::npos;
         end = tee.pending.find('\n', start)) {
      write_line(tee, tee.pending.substr(start, end + 1 - start));
      start = end + 1;
    }
    tee.pending.erase(0, start);
    if (tee.pending.size() > kMostPendingBytes)
      write_line(tee, std::exchange(tee.pending, "") + "\n");
  }
}

void OutputRouter::pump() {
  for (Tee& tee : tees_) {
    if (tee.terminal < 0 || takes_output(tee.terminal)) move(tee, kReadsAPump);
  }
}

void OutputRouter::finish() {
  close_child_ends();
  for (Tee& tee : tees_) {
    move(tee, kReadsAtTheEnd);
    if (!tee.pending.empty()) write_line(tee, tee.pending + "\n");
    if (tee.from >= 0) close(tee.from);
    if (tee.file >= 0) close(tee.file);
  }
  tees_.clear();
  for (const auto& [bit, fd] : filtered_files_) close(fd);
  filtered_files_.clear();
}

}  // namespace assay::launch
