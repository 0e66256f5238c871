#include "trainer/launch/endpoint.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/address.h"

namespace assay::launch {
namespace {

struct Lookup {
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{nullptr, &freeaddrinfo};
  std::string problem;
};

Lookup look_up(const std::string& host, int64_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = cat(port);
  Lookup result;
  const int rc = getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (rc != 0) result.problem = gai_strerror(rc);
  if (rc == 0) result.list.reset(found);
  return result;
}

class ClosingFd {
 public:
  explicit ClosingFd(int fd) : fd_(fd) {}
  ~ClosingFd() {
    if (fd_ >= 0) close(fd_);
  }
  ClosingFd(const ClosingFd&) = delete;
  ClosingFd& operator=(const ClosingFd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// An address belongs to this host if a socket can be bound to it.
bool can_bind(const addrinfo& info) {
  const ClosingFd fd(socket(info.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return false;
  sockaddr_storage storage{};
  std::memcpy(&storage, info.ai_addr, info.ai_addrlen);
  // Port 0: any free one, so that only the address can be refused.
  if (info.ai_family == AF_INET) reinterpret_cast<sockaddr_in*>(&storage)->sin_port = 0;
  if (info.ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = 0;
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), info.ai_addrlen) == 0;
}

bool bind_to(int fd, int family, const std::string& from) {
  if (from.empty()) return true;
  const Lookup own = look_up(from, 0, AI_NUMERICHOST);
  for (const addrinfo* info = own.list.get(); info != nullptr; info = info->ai_next) {
    if (info->ai_family == family) return bind(fd, info->ai_addr, info->ai_addrlen) == 0;
  }
  errno = EAFNOSUPPORT;
  return false;
}

// 0, or the reason as errno.
int connect_within(int fd, const addrinfo& info, double timeout_seconds) {
  if (connect(fd, info.ai_addr, info.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{fd, POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(timeout_seconds * 1e3)) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// With an ephemeral port as endpoint, a connection can come out as one to itself (RFC 793, 3.4).
bool is_connected_to_itself(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof(own);
  socklen_t peer_size = sizeof(peer);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
    return false;
  }
  return own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

}  // namespace

bool is_numeric_address(const std::string& host) {
  return look_up(host, 0, AI_NUMERICHOST).problem.empty();
}

bool is_own_host(const std::string& host) {
  const Lookup found = look_up(host, 0, 0);
  for (const addrinfo* info = found.list.get(); info != nullptr; info = info->ai_next) {
    if (can_bind(*info)) return true;
  }
  return false;
}

int connect_to(const std::string& host, int64_t port, double timeout_seconds,
               const std::string& from) {
  const Lookup found = look_up(host, port, 0);
  std::string problem = found.problem;
  for (const addrinfo* info = found.list.get(); info != nullptr; info = info->ai_next) {
    ClosingFd fd(socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.get() < 0 || !bind_to(fd.get(), info->ai_family, from)) {
      problem = cat(from.empty() ? "" : cat("from ", from, ": "), std::strerror(errno));
      continue;
    }
    int error = connect_within(fd.get(), *info, timeout_seconds);
    if (error == 0 && is_connected_to_itself(fd.get())) error = ECONNREFUSED;
    if (error == 0) return fd.release();
    problem = std::strerror(error);
  }
  throw LaunchError(cat("cannot connect to ", endpoint_text(host, port), ": ", problem));
}

}  // namespace assay::launch
