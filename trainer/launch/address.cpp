#include "trainer/launch/address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::launch {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, int64_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = cat(port);
  const int rc =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (rc != 0) {
    throw LaunchError(cat("host ", quoted(host), " does not resolve: ", gai_strerror(rc),
                          ". Fix: give MASTER_ADDR as an address that this host can reach"));
  }
  return {found, &freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

std::string own_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  return getsockname(fd, address, &size) == 0 ? numeric(address, size) : "";
}

struct Interface {
  std::string name;
  std::string address;
  int family = AF_INET;
};

std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const auto size =
        static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    found.push_back({entry->ifa_name, numeric(entry->ifa_addr, size), family});
  }
  freeifaddrs(list);
  return found;
}

int try_listen(const addrinfo& info) {
  Socket socket_fd(socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket_fd.fd() < 0) return -1;
  const int on = 1;
  const int off = 0;
  setsockopt(socket_fd.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (info.ai_family == AF_INET6) {
    setsockopt(socket_fd.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(socket_fd.fd(), info.ai_addr, info.ai_addrlen) != 0) return -1;
  if (listen(socket_fd.fd(), SOMAXCONN) != 0) return -1;
  return socket_fd.release();
}

int wait_connected(int fd, double timeout_seconds) {
  pollfd waiting{fd, POLLOUT, 0};
  const int ready = poll(&waiting, 1, static_cast<int>(timeout_seconds * 1e3));
  if (ready <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

std::string without_brackets(const std::string& host) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    return host.substr(1, host.size() - 2);
  }
  return host;
}

std::string endpoint_text(const std::string& host, int64_t port) {
  return host.find(':') != std::string::npos ? cat("[", host, "]:", port) : cat(host, ":", port);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

std::string local_address_towards(const std::string& host, int64_t port) {
  const AddressList list = resolve(host, port, 0);
  int error = 0;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    const Socket probe(socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (probe.fd() >= 0 && connect(probe.fd(), info->ai_addr, info->ai_addrlen) == 0) {
      const std::string address = own_address(probe.fd());
      if (!address.empty()) return address;
    }
    error = errno;
  }
  throw LaunchError(cat("no route to ", endpoint_text(host, port), ": ", std::strerror(error),
                        ". Fix: check MASTER_ADDR and this host's network"));
}

std::string interface_of(const std::string& address) {
  for (const Interface& entry : interfaces()) {
    if (entry.address == address) return entry.name;
  }
  return "";
}

std::string address_of_interface(const std::string& name) {
  std::string found;
  for (const Interface& entry : interfaces()) {
    if (entry.name != name) continue;
    if (entry.family == AF_INET) return entry.address;
    if (found.empty()) found = entry.address;
  }
  return found;
}

std::string interface_names() {
  std::set<std::string> names;
  for (const Interface& entry : interfaces()) names.insert(entry.name);
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

int listen_on(const std::string& host, int64_t port) {
  AddressList list = resolve(host, port, AI_PASSIVE | AI_NUMERICHOST);
  std::vector<const addrinfo*> order;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next)
    order.push_back(info);
  std::stable_sort(order.begin(), order.end(), [](const addrinfo* a, const addrinfo* b) {
    return a->ai_family == AF_INET6 && b->ai_family != AF_INET6;  // takes IPv4 as well
  });
  int error = 0;
  for (const addrinfo* info : order) {
    const int fd = try_listen(*info);
    if (fd >= 0) return fd;
    error = errno;
    if (error == EADDRINUSE) break;
  }
  throw LaunchError(cat("cannot listen on ", endpoint_text(host.empty() ? "*" : host, port), ": ",
                        std::strerror(error),
                        error == EADDRINUSE ? ". Fix: another MASTER_PORT (--master-port)" : ""));
}

int64_t port_of_socket(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  return storage.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string address_of_socket(int fd) {
  const std::string address = own_address(fd);
  if (address == "0.0.0.0" || address == "::ffff:0.0.0.0") return "127.0.0.1";
  if (address != "::") return address;
  // A socket for both kinds: IPv4's loopback is there even where IPv6 is switched off for lo.
  return connect_problem("127.0.0.1", port_of_socket(fd), 1.0).empty() ? "127.0.0.1" : "::1";
}

std::string connect_problem(const std::string& host, int64_t port, double timeout_seconds) {
  const AddressList list = resolve(host, port, 0);
  int error = EHOSTUNREACH;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    const Socket probe(socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (probe.fd() < 0) continue;
    if (connect(probe.fd(), info->ai_addr, info->ai_addrlen) == 0) return "";
    error = errno == EINPROGRESS ? wait_connected(probe.fd(), timeout_seconds) : errno;
    if (error == 0) return "";
  }
  return std::strerror(error);
}

std::string host_identity() {
  struct stat space {};
  const bool has_space = stat("/proc/self/ns/net", &space) == 0;
  std::string boot;
  try {
    boot = trimmed(read_file("/proc/sys/kernel/random/boot_id"));
  } catch (const FileError&) {
    boot = host_name();  // a container that hides it
  }
  return cat(boot, "/", has_space ? cat(space.st_ino) : "");
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown host";
  return name;
}

}  // namespace assay::launch
