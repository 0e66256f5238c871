// One TCP connection that carries lines of text: never blocks, never holds more than it was told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace assay::launch {

// Thread-compatible; owns the descriptor.
class LineConnection {
 public:
  static constexpr size_t kMaxLineBytes = size_t{64} << 10;
  static constexpr size_t kMaxQueuedBytes = size_t{4} << 20;  // for a peer that does not read

  explicit LineConnection(int fd);  // made non-blocking and close-on-exec
  ~LineConnection();
  LineConnection(const LineConnection&) = delete;
  LineConnection& operator=(const LineConnection&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }  // why it is no longer open
  bool has_output() const { return is_open() && !output_.empty(); }

  void receive();                          // takes what has arrived
  std::optional<std::string> next_line();  // without its end
  void send(const std::string& line);      // queues a line, which must end in '\n'
  void flush();                            // sends what the system takes
  void finish_sending();                   // the peer sees the end after the last line
  void close_because(const std::string& reason);

  std::string peer_address() const;  // numeric, IPv4 as IPv4
  std::string own_address() const;   // as the peer sees this host

 private:
  int fd_;
  std::string input_;
  std::string output_;
  std::string problem_;
};

}  // namespace assay::launch
