// A stand-in for the trainer that does what its words say, so that tests can see how a launcher
// treats its ranks: `launch_probe train ACTION...`, one after the other. "r1:ACTION" is for rank 1
// alone, "a0:ACTION" for the first attempt alone; both can be combined ("a0:r1:exit=3").
//   env=FILE         writes the environment to FILE.<rank>
//   pid=FILE         writes its process id to FILE.<rank>.<attempt>
//   say=TEXT err=TEXT  a line on standard output, error
//   raw=TEXT         the same without an end of line
//   step=N phase=N save=S writing=0|1 blame=RANK   moves the progress page
//   fail=TEXT        writes the error file
//   exit=N die=N     ends with a code, by a signal
//   throw            ends by an exception that nobody catches
//   sleep=S hang     waits
//   ignore=N         ignores a signal
//   obey=S           from now on a signal to stop ends it with 128 + N, S seconds later
//   await=FILE       waits until the file is there
//   meet             rank 0 lets the others connect to the store's address; then all go on
//   peer             waits until another rank is gone, then ends with exit code 5
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "trainer/launch/progress_page.h"
#include "trainer/launch/rank_env.h"

namespace assay::launch {
namespace {

volatile std::sig_atomic_t stop_signal = 0;
double seconds_to_obey = -1;

void note_signal(int number) { stop_signal = number; }

void obey_if_asked() {
  if (stop_signal == 0 || seconds_to_obey < 0) return;
  const int number = stop_signal;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_to_obey));
  _exit(128 + number);
}

void wait_a_moment() {
  poll(nullptr, 0, 2);
  obey_if_asked();
}

class Probe {
 public:
  Probe() : env_(resolve_rank_env(std::getenv)), page_(ProgressPage::from_environment()) {}

  void act(std::string_view action) {
    while (action.size() > 2 && (action[0] == 'r' || action[0] == 'a') && action[2] == ':') {
      const int64_t wanted = action[1] - '0';
      if ((action[0] == 'r' ? env_.rank : env_.restart_count) != wanted) return;
      action.remove_prefix(3);
    }
    const size_t equals = action.find('=');
    const std::string name(action.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : action.substr(equals + 1));
    if (do_output(name, value) || do_end(name, value) || do_wait(name, value)) return;
    throw std::runtime_error(cat("the probe does not know ", name));
  }

 private:
  bool do_output(const std::string& name, const std::string& value) {
    if (name == "say") std::printf("%s\n", value.c_str());
    if (name == "raw") std::printf("%s", value.c_str());
    if (name == "err") std::fprintf(stderr, "%s\n", value.c_str());
    std::fflush(nullptr);
    if (name == "env") {
      std::string text;
      for (char** entry = environ; *entry != nullptr; ++entry) text += cat(*entry, "\n");
      write(cat(value, ".", env_.rank), text);
    }
    if (name == "pid") write(cat(value, ".", env_.rank, ".", env_.restart_count), cat(getpid()));
    if (name == "step") page_.finish_step(parse_int64(value).value());
    if (name == "phase") page_.set_phase(static_cast<RankPhase>(parse_int64(value).value()));
    if (name == "writing") page_.set_writing(value == "1");
    if (name == "blame") page_.blame(parse_int64(value).value());
    if (name == "save") page_.note_save(parse_double(value).value());
    if (name == "fail") write_error_file(env_.error_file, value);
    for (const char* known :
         {"say", "raw", "err", "env", "pid", "step", "phase", "writing", "blame", "save", "fail"}) {
      if (name == known) return true;
    }
    return false;
  }

  static bool do_end(const std::string& name, const std::string& value) {
    if (name == "exit") _exit(static_cast<int>(parse_int64(value).value()));
    if (name == "throw") std::terminate();
    if (name == "die") {
      raise(static_cast<int>(parse_int64(value).value()));
      return true;
    }
    if (name == "ignore") {
      std::signal(static_cast<int>(parse_int64(value).value()), SIG_IGN);
      return true;
    }
    if (name != "obey") return false;
    seconds_to_obey = parse_double(value).value();
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      std::signal(number, note_signal);
    }
    return true;
  }

  bool do_wait(const std::string& name, const std::string& value) {
    if (name == "sleep") {
      const auto end = std::chrono::steady_clock::now() +
                       std::chrono::duration<double>(parse_double(value).value());
      while (std::chrono::steady_clock::now() < end) wait_a_moment();
    } else if (name == "hang") {
      while (true) wait_a_moment();
    } else if (name == "await") {
      while (!path_exists(value)) wait_a_moment();
    } else if (name == "meet") {
      meet();
    } else if (name == "peer") {
      wait_for_loss();
    } else {
      return false;
    }
    return true;
  }

  void meet() {
    if (env_.rank != 0) return connect_to_store();
    const int fd = static_cast<int>(parse_int64(std::getenv(kStoreSocketVariable)).value());
    for (int64_t other = 1; other < env_.world_size; ++other) {
      const int peer = accept(fd, nullptr, nullptr);
      if (peer < 0) throw std::runtime_error("the store's socket takes nobody");
      peers_.push_back(peer);
    }
    for (const int peer : peers_) send(peer, "1", 1, MSG_NOSIGNAL);
  }

  void connect_to_store() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = cat(env_.master_port);
    if (getaddrinfo(env_.master_addr.c_str(), port.c_str(), &hints, &found) != 0) {
      throw std::runtime_error("MASTER_ADDR does not resolve");
    }
    const int fd = socket(found->ai_family, SOCK_STREAM, 0);
    const bool is_connected = connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    char letter = 0;
    if (!is_connected || recv(fd, &letter, 1, 0) != 1) {
      throw std::runtime_error("rank 0 does not answer");
    }
    peers_.push_back(fd);
  }

  [[noreturn]] void wait_for_loss() {
    while (true) {
      for (const int peer : peers_) {
        char letter = 0;
        if (recv(peer, &letter, 1, MSG_DONTWAIT) == 0) _exit(5);
      }
      wait_a_moment();
    }
  }

  // A reader never sees a part.
  static void write(const std::string& path, const std::string& text) {
    write_file_durably(path, text, "log");
  }

  RankEnv env_;
  ProgressPage page_;
  std::vector<int> peers_;
};

}  // namespace
}  // namespace assay::launch

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() != "train") return 99;
  try {
    assay::launch::Probe probe;
    for (size_t i = 1; i < words.size(); ++i) probe.act(words[i]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launch_probe: %s\n", error.what());
    return 98;
  }
}
