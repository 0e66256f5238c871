#include "trainer/launch/rank_env.h"

#include <ctime>
#include <limits>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "trainer/launch/meeting_point.h"

namespace assay::launch {
namespace {

struct Range {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int32_t>::max();
};

class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return lookup_(name) != nullptr; }
  std::string text(const char* name) const {
    const char* value = lookup_(name);
    return value == nullptr ? "" : value;
  }
  std::optional<int64_t> number(const char* name, const Range& range) const {
    const char* value = lookup_(name);
    if (value == nullptr) return std::nullopt;
    const auto parsed = parse_int64(value);
    if (!parsed || *parsed < range.least || *parsed > range.most) {
      throw LaunchError(cat("environment variable ", name, " is ", quoted(value),
                            ", must be a whole number from ", range.least, " to ", range.most,
                            ". Fix: unset it, or start through torchrun, mpirun or srun"));
    }
    return parsed;
  }

 private:
  const Lookup& lookup_;
};

constexpr Range kCount{1, std::numeric_limits<int32_t>::max()};
constexpr Range kIndex{0, std::numeric_limits<int32_t>::max()};

struct Names {
  const char* source;
  const char* rank;
  const char* world_size;
  const char* local_rank;        // nullptr: one process a host
  const char* local_world_size;  // nullptr: unknown
};

void check_below(const char* name, int64_t value, const char* limit_name, int64_t limit) {
  if (value < limit) return;
  throw LaunchError(cat("environment variable ", name, " is ", quoted(cat(value)),
                        ", must be below ", limit_name, ", which is ", limit,
                        ". Fix: give each process its own rank from 0 on"));
}

RankEnv read_place(const Variables& variables, const Names& names) {
  RankEnv env;
  env.source = names.source;
  const auto rank = variables.number(names.rank, kIndex);
  const auto world_size = variables.number(names.world_size, kCount);
  if (rank.has_value() != world_size.has_value()) {
    const char* present = rank ? names.rank : names.world_size;
    const char* absent = rank ? names.world_size : names.rank;
    throw LaunchError(cat("environment variable ", present, " is ", quoted(variables.text(present)),
                          " but ", absent,
                          " is not set. Fix: set both, or neither for a single process"));
  }
  env.rank = *rank;
  env.world_size = *world_size;
  check_below(names.rank, env.rank, names.world_size, env.world_size);
  if (names.local_rank != nullptr) {
    env.local_rank = variables.number(names.local_rank, kIndex).value_or(0);
  }
  if (names.local_world_size != nullptr) {
    env.local_world_size = variables.number(names.local_world_size, kCount).value_or(1);
    check_below(names.local_rank, env.local_rank, names.world_size, env.world_size);
    if (variables.has(names.local_world_size)) {
      check_below(names.local_rank, env.local_rank, names.local_world_size, env.local_world_size);
    }
  }
  return env;
}

// A step of a job that srun started; interactive shells inherit the variables without being one.
bool is_slurm_step(const Variables& variables) {
  const std::string job_name = variables.text("SLURM_JOB_NAME");
  return variables.has("SLURM_PROCID") && variables.has("SLURM_STEP_ID") && job_name != "bash" &&
         job_name != "interactive";
}

RankEnv find_place(const Variables& variables) {
  if (variables.has("RANK") || variables.has("WORLD_SIZE") || variables.has("LOCAL_RANK")) {
    if (!variables.has("RANK") && !variables.has("WORLD_SIZE")) {
      throw LaunchError(cat("environment variable LOCAL_RANK is ",
                            quoted(variables.text("LOCAL_RANK")),
                            " but RANK and WORLD_SIZE are not set. Fix: set all three, or none"));
    }
    const bool is_torchrun = variables.has("LOCAL_RANK");
    return read_place(variables, {is_torchrun ? "torchrun" : "PyTorchJob", "RANK", "WORLD_SIZE",
                                  "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  }
  if (variables.has("OMPI_COMM_WORLD_RANK")) {
    return read_place(variables, {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  }
  if (variables.has("PMI_RANK")) {
    return read_place(variables,
                      {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  }
  if (is_slurm_step(variables)) {
    return read_place(variables,
                      {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr});
  }
  return RankEnv{};
}

// A file in memory has no name that could be replaced.
void write_in_memory(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return;
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count <= 0) break;
    text.remove_prefix(static_cast<size_t>(count));
  }
  close(fd);
}

}  // namespace

RankEnv resolve_rank_env(const Lookup& lookup) {
  const Variables variables(lookup);
  RankEnv env = find_place(variables);
  if (variables.has("MASTER_ADDR")) env.master_addr = variables.text("MASTER_ADDR");
  env.master_port = variables.number("MASTER_PORT", {1, 65535}).value_or(0);
  env.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", kIndex).value_or(0);
  env.has_agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.error_file = variables.text("TORCHELASTIC_ERROR_FILE");
  fill_meeting_point(env, lookup);
  return env;
}

void write_error_file(const std::string& path, const std::string& message) noexcept {
  if (path.empty()) return;
  try {
    nlohmann::json info;
    info["py_callstack"] = message;  // torchrun prints this key as the trace
    info["timestamp"] = std::to_string(std::time(nullptr));
    nlohmann::json root;
    root["message"]["message"] = message;
    root["message"]["extraInfo"] = info;
    const std::string text = root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (path.starts_with(kMemoryErrorFilePrefix)) return write_in_memory(path, text);
    remove_file(path);
    FileWriter writer(path, "log");
    writer.write(text);
    writer.close();
  } catch (...) {
    return;  // the process is failing already; its own message goes to stderr
  }
}

}  // namespace assay::launch
