#pragma once
// From the words of `moetier resolve` to a resolution request: the model's problem, a deployment
// with the defaults filled in, one environment for each worker. Thread: any (pure).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/resolution/request.hpp"
#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier::cli {

struct resolve_options {
  std::string model{};                      // a directory, or a config.json
  std::vector<std::string> environments{};  // files; none = this machine
  std::uint32_t workers = 0;                // 0 = one for each environment
  std::uint32_t tokens = 0;                 // of one source in a call; 0 = session.max_tokens
  std::uint32_t slots = 0;                  // of each worker per layer; 0 = as the partition gives
  std::optional<bool> eplb{};               // not given = where there are more slots than experts
  std::string return_mode{};                // empty = the configuration's
  std::vector<std::string> forced{};        // backend=NAME, communication=NAME
  bool no_degradation = false;
  bool live = false;     // ask the tier at --address
  bool capture = false;  // print this machine's environment, nothing else

  bool operator==(const resolve_options&) const = default;
};

// What stands in the configuration where no flag says otherwise.
struct resolve_defaults {
  std::string backend = "auto";
  std::string carrier = "auto";
  std::string return_mode = "partial";
  std::uint32_t tokens = 0;
  std::uint32_t workers = 1;
  std::uint32_t slots = 0;  // of each worker per layer; 0 = as the partition gives
  bool allow_degradation = true;
  std::optional<quant_kind> quantise{};  // format of unquantised experts
  bool lora = false;                     // adapters are to be served
};

// `model` has the operator's routing overrides. reason::config_invalid: an unknown part of --force
// or one that is given twice, environments that are neither one nor as many as the workers.
// Requires: at least one environment.
expected<coordinator::resolution_request> resolve_request(
    const resolve_options& options, const resolve_defaults& defaults,
    const model_description& model, std::vector<resolution::environment> environments);

}  // namespace moetier::cli
