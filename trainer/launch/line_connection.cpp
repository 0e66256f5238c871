#include "trainer/launch/line_connection.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>

#include "base/text.h"

namespace assay::launch {
namespace {

constexpr std::string_view kMappedPrefix = "::ffff:";  // IPv4 on an IPv6 socket, RFC 4291 2.5.5.2

std::string numeric_address(const sockaddr_storage& storage, socklen_t size) {
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  const std::string_view address = text;
  const bool is_mapped =
      address.starts_with(kMappedPrefix) && address.find('.') != std::string_view::npos;
  return std::string(is_mapped ? address.substr(kMappedPrefix.size()) : address);
}

}  // namespace

LineConnection::LineConnection(int fd) : fd_(fd) {
  const int flags = fcntl(fd_, F_GETFL);
  if (flags < 0 || fcntl(fd_, F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(fd_, F_SETFD, FD_CLOEXEC) != 0) {
    problem_ = std::strerror(errno);
  }
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

LineConnection::~LineConnection() { close(fd_); }

void LineConnection::receive() {
  std::array<char, 16384> buffer;
  while (is_open()) {
    const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
    if (count > 0) {
      input_.append(buffer.data(), static_cast<size_t>(count));
      // One line is bounded, so that a peer that never ends one cannot fill the memory.
      const size_t start = input_.rfind('\n');
      const size_t unfinished = start == std::string::npos ? input_.size() : input_.size() - start;
      if (unfinished > kMaxLineBytes || input_.size() > kMaxQueuedBytes) {
        close_because(cat("it sent a line of more than ", kMaxLineBytes, " bytes"));
      }
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    close_because(count == 0 ? std::string("it closed the connection") : std::strerror(errno));
  }
}

std::optional<std::string> LineConnection::next_line() {
  const size_t end = input_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = input_.substr(0, end);
  input_.erase(0, end + 1);
  return line;
}

void LineConnection::send(const std::string& line) {
  if (!is_open()) return;
  output_ += line;
  if (output_.size() > kMaxQueuedBytes) close_because("it does not read what it is sent");
}

void LineConnection::flush() {
  while (has_output()) {
    const ssize_t count = ::send(fd_, output_.data(), output_.size(), MSG_NOSIGNAL);
    if (count > 0) {
      output_.erase(0, static_cast<size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    close_because(std::strerror(errno));
  }
}

void LineConnection::finish_sending() { shutdown(fd_, SHUT_WR); }

void LineConnection::close_because(const std::string& reason) {
  if (!is_open()) return;
  problem_ = reason;
  shutdown(fd_, SHUT_RDWR);
}

std::string LineConnection::peer_address() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  const int rc = getpeername(fd_, reinterpret_cast<sockaddr*>(&storage), &size);
  return rc == 0 ? numeric_address(storage, size) : "";
}

std::string LineConnection::own_address() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  const int rc = getsockname(fd_, reinterpret_cast<sockaddr*>(&storage), &size);
  return rc == 0 ? numeric_address(storage, size) : "";
}

}  // namespace assay::launch
