#include "tests/support/ranks.h"

#include <algorithm>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

#include <unistd.h>

#include "base/text.h"

namespace assay::support {

std::vector<ProgramEnd> run_ranks(const RanksRequest& request) {
  const std::string port = cat(free_port());
  const std::string world = cat(request.world_size);
  std::vector<ProgramEnd> ends(static_cast<size_t>(request.world_size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < request.world_size; ++rank) {
    threads.emplace_back([&, rank] {
      ProgramRequest one;
      const auto words = request.words_of.find(rank);
      one.command = words != request.words_of.end() ? words->second : request.words;
      one.command.insert(one.command.begin(), request.program);
      one.environment = {{"RANK", cat(rank)},          {"LOCAL_RANK", cat(rank)},
                         {"WORLD_SIZE", world},        {"LOCAL_WORLD_SIZE", world},
                         {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
      for (const auto& [name, value] : request.environment) one.environment[name] = value;
      const auto extra = request.environment_of.find(rank);
      if (extra != request.environment_of.end()) {
        for (const auto& [name, value] : extra->second) one.environment[name] = value;
      }
      one.working_directory = request.working_directory;
      if (request.watch) one.watch = [&, rank] { return request.watch(rank); };
      one.limit_seconds = request.limit_seconds;
      ends[static_cast<size_t>(rank)] = run_program(one);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  return is_bound ? ntohs(address.sin_port) : 29500;
}

std::string ends_text(const std::vector<ProgramEnd>& ends) {
  std::string text;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const std::string& output = ends[rank].output;
    text += cat("rank ", rank, " ended with ", ends[rank].code, ": ",
                output.substr(output.size() - std::min<size_t>(output.size(), 800)), "\n");
  }
  return text;
}

}  // namespace assay::support
