#pragma once
// The command line of `moetier` as a value. Parsing is all that happens here: flags that stand for
// configuration keys become a layer for the loader, everything else a field. Thread: owner.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/cli/bench_options.hpp"
#include "actors/cli/bench_plan.hpp"
#include "actors/cli/exit_code.hpp"
#include "actors/cli/heatmap_document.hpp"
#include "actors/cli/plan_options.hpp"
#include "actors/cli/resolve_inputs.hpp"
#include "actors/config/layer.hpp"
#include "actors/config/settings.hpp"
#include "schemas/base/deadline_class.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {

enum class command : std::uint8_t {
  up,
  coordinator,
  worker,
  status,
  placement_show,
  placement_heatmap,
  log_level,
  forward,
  bench_tier,
  bench_sessions,
  bench_wire,
  bench_kernels,
  bench_plan,
  resolve,
  plan,
  adapters_list,
  adapters_load,
  adapters_drop,
  doctor
};

struct forward_options {
  std::uint32_t layer = 0;
  std::string in;
  std::string out;  // empty = nothing is written (with --check)
  std::string prefix;
  std::string use;                        // "logits", "ids", "gate"; empty = whichever is there
  std::string hidden = "hidden";          // the tensor with the rows
  std::string expected = "output";        // the tensor that --check compares with
  bool shared_experts = false;            // the tier adds them
  std::string return_mode;                // empty = the configuration's
  std::optional<deadline_class> urgency;  // none = the tenant's highest
  std::string tenant = "default";
  bool direct = false;
  bool with_routing = false;
  bool check = false;
  double tolerance = 1e-5;  // of the expected tensor's largest absolute value
  std::uint32_t micro_batches = 1;
};

struct kernels_options {
  std::string part;  // empty = all
  std::uint64_t seed = 1;
  std::uint32_t repeat = 30;
  // Of the parts cpu and device: empty = all.
  std::string shape;
  std::string format;
  std::vector<std::uint32_t> rows;
  std::string backend;
  std::string peer;
  bool markdown = false;
};

struct adapter_options {
  std::string name;
  std::string directory;
};

struct watch_options {
  bool on = false;
  duration_ns interval = k_second;
};

struct doctor_options {
  std::vector<std::string> peers;
  std::string answer;     // empty = it asks
  bool insecure = false;  // may answer on an address that is not loopback
};

struct command_line {
  command what = command::status;
  std::string config_file;
  std::string address = "127.0.0.1:7400";
  bool json = false;
  duration_ns timeout = 10 * k_second;
  bool print_config = false;
  bool quiet = false;
  config::layer flags;
  config::link_files tls;  // of the RPC link, once the settings are loaded
  forward_options forward;
  bench_options bench;
  sessions_options sessions;
  wire_options wire;
  kernels_options kernels;
  resolve_options resolve;
  plan_options plan;
  plan_bench_options plan_bench;
  adapter_options adapter;
  watch_options watch;
  heatmap_options heatmap;
  std::string log_level;  // of the command of that name
  doctor_options doctor;
};

// Whether the words ask for JSON, even where they cannot be parsed.
bool wants_json(int argc, const char* const* argv) noexcept;

// The command line, or the code to exit with: help and version are printed and done, an error is
// on standard error, and with `-o json` a document on standard output too.
std::variant<command_line, exit_code> parse_command_line(int argc, const char* const* argv);

}  // namespace moetier::cli
