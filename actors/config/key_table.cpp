#include "actors/config/key_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "actors/config/device_name.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/config/word_list.hpp"

namespace moetier::config {
namespace {

static_assert(k_devices_max == 64);  // as the allowed text of worker.device says

// One legal-text predicate and one printer per type; a row below only names section and member.
bool put_text(std::string& at, std::string_view text) {
  if (text.empty() || text.size() > 4096) return false;
  at = text;
  return true;
}
bool put_endpoint(std::string& at, std::string_view text) {
  return parse_endpoint(text).has_value() && put_text(at, text);
}
bool put_choice(std::string& at, std::string_view text, std::span<const std::string_view> choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end() && put_text(at, text);
}
bool put_logical(bool& at, std::string_view text) {
  if (text != "true" && text != "false") return false;
  at = text == "true";
  return true;
}
// "rpc", "http" or both, in any order.
bool put_insecure(std::string& at, std::string_view text) {
  if (words_of(text).empty()) return false;
  for (const std::string_view one : words_of(text)) {
    if (one != "rpc" && one != "http") return false;
  }
  at = text;
  return true;
}
bool put_count(std::uint32_t& at, std::string_view text, std::uint32_t min, std::uint32_t max) {
  const auto value = parse_count(text);
  if (!value || *value < min || *value > max) return false;
  at = static_cast<std::uint32_t>(*value);
  return true;
}
bool put_size(std::uint64_t& at, std::string_view text, std::uint64_t least = 1ULL << 20) {
  const auto value = parse_size(text);
  if (!value || *value < least) return false;
  at = *value;
  return true;
}
bool put_duration(duration_ns& at, std::string_view text, duration_ns min, duration_ns max) {
  const auto value = parse_duration(text);
  if (!value || *value < min || *value > max) return false;
  at = *value;
  return true;
}

constexpr std::array<std::string_view, 5> k_levels{"debug", "info", "warn", "error", "off"};
constexpr std::array<std::string_view, 3> k_carriers{"auto", "shared_memory", "ucx"};
constexpr std::array<std::string_view, 2> k_tcp{"loopback", "off"};
constexpr std::array<std::string_view, 3> k_checksum{"auto", "on", "off"};
constexpr std::array<std::string_view, 2> k_shared{"auto", "off"};
constexpr std::array<std::string_view, 2> k_infeasible{"wait", "end"};
constexpr std::array<std::string_view, 2> k_nonfinite{"refuse", "serve"};
constexpr std::array<std::string_view, 2> k_switch{"off", "on"};
constexpr std::array<std::string_view, 7> k_quants{"none",  "fp8_tensor", "fp8_block", "mxfp8",
                                                   "mxfp4", "nvfp4",      "int4_g128"};
constexpr std::array<std::string_view, 2> k_modes{"partial", "exact"};

#define MOETIER_PUT(expression) [](settings& s, std::string_view text) { return expression; }
#define MOETIER_SHOW(expression) [](const settings& s) -> std::string { return expression; }
#define MOETIER_TEXT(member) MOETIER_PUT(put_text(s.member, text)), MOETIER_SHOW(s.member)
#define MOETIER_ENDPOINT(member) MOETIER_PUT(put_endpoint(s.member, text)), MOETIER_SHOW(s.member)
#define MOETIER_CHOICE(member, list) \
  MOETIER_PUT(put_choice(s.member, text, list)), MOETIER_SHOW(s.member)
#define MOETIER_COUNT(member, min, max) \
  MOETIER_PUT(put_count(s.member, text, min, max)), MOETIER_SHOW(std::to_string(s.member))
#define MOETIER_DURATION(member, min, max) \
  MOETIER_PUT(put_duration(s.member, text, min, max)), MOETIER_SHOW(duration_text(s.member))

constexpr duration_ns k_hour = 3600 * k_second;

constexpr key_row k_rows[] = {
    {"model.path", "--model", k_up | k_coordinator | k_worker | k_doctor, "a directory",
     "Hugging Face model directory; only expert tensors are read", MOETIER_TEXT(model.path)},
    {"model.quantise", "--quantise", k_up | k_coordinator | k_doctor,
     "none, fp8_tensor, fp8_block, mxfp8, mxfp4, nvfp4 or int4_g128",
     "format in which workers hold unquantised experts", MOETIER_CHOICE(model.quantise, k_quants)},
    {"model.nonfinite", "", 0, "refuse or serve",
     "unquantised experts with NaN or infinity: refused by name, or computed with",
     MOETIER_CHOICE(model.nonfinite, k_nonfinite)},
    {"model.routing.method", "", 0, "a routing method's name", "instead of the family's",
     MOETIER_TEXT(model.routing.method)},
    {"model.routing.scaling", "", 0, "a number", "routed scaling factor",
     MOETIER_TEXT(model.routing.scaling)},
    {"model.routing.epsilon", "", 0, "a number", "of the weights' sum",
     MOETIER_TEXT(model.routing.epsilon)},
    {"model.routing.power", "", 0, "a number", "of softmax_pnorm",
     MOETIER_TEXT(model.routing.power)},
    {"model.routing.renormalise", "", 0, "true or false", "weights sum to the scaling factor",
     MOETIER_TEXT(model.routing.renormalise)},
    {"model.routing.groups", "", 0, "a number", "expert groups",
     MOETIER_TEXT(model.routing.groups)},
    {"model.routing.groups_kept", "", 0, "a number", "expert groups that are chosen",
     MOETIER_TEXT(model.routing.groups_kept)},
    {"coordinator.rpc_listen", "--rpc-listen", k_coordinator, "host:port", "where clients connect",
     MOETIER_ENDPOINT(coordinator.rpc_listen)},
    {"coordinator.control_listen", "--control-listen", k_coordinator, "host:port",
     "where workers connect; beyond loopback only with security.control",
     MOETIER_ENDPOINT(coordinator.control_listen)},
    {"coordinator.state_dir", "--state-dir", k_up | k_coordinator | k_doctor, "a directory",
     "the durable record, mode 0700; up: a temporary one unless given",
     MOETIER_TEXT(coordinator.state_dir)},
    {"coordinator.admin_socket", "--admin-socket", k_up | k_coordinator,
     "auto, off or a path of at most 107 bytes",
     "the Unix socket, mode 0600, over which changes are taken; auto: in the state directory",
     MOETIER_TEXT(coordinator.admin_socket)},
    {"coordinator.placement", "--placement", k_up | k_coordinator, "a plan file",
     "which expert sits in which slot; without it the default placement",
     MOETIER_TEXT(coordinator.placement)},
    {"coordinator.workers", "--workers", k_up | k_coordinator | k_doctor, "1 to 64",
     "the first placement waits for so many workers; up starts as many",
     MOETIER_COUNT(coordinator.workers, 1, k_workers_max)},
    {"coordinator.when_infeasible", "", 0, "wait or end",
     "a first plan that cannot be made: wait for other workers, or end with 4 (up: end)",
     MOETIER_CHOICE(coordinator.when_infeasible, k_infeasible)},
    {"coordinator.load_timeout", "", 0, "10s to 24h",
     "a worker that has not loaded what a plan gives it after so long is left out",
     MOETIER_DURATION(coordinator.load_timeout, 10 * k_second, 24 * k_hour)},
    {"worker.coordinator", "--coordinator", k_worker, "host:port",
     "the coordinator's control address", MOETIER_ENDPOINT(worker.coordinator)},
    {"worker.name", "--name", k_worker, "1 to 64 characters",
     "how a restarted worker finds its place again",
     MOETIER_PUT(text.size() <= k_worker_name_bytes_max && put_text(s.worker.name, text)),
     MOETIER_SHOW(s.worker.name)},
    {"worker.device", "--device", k_up | k_worker | k_doctor,
     "auto, cpu, cuda or cuda:N with N below 64",
     "what computes; auto is the processor, cuda of `up` deals its workers out over all GPUs",
     MOETIER_PUT(parse_device(text).has_value() && put_text(s.worker.device, text)),
     MOETIER_SHOW(s.worker.device)},
    {"worker.slots", "--slots", k_up | k_worker | k_doctor, "auto or 1 to 1024",
     "slots per layer of each worker",
     MOETIER_PUT(text == "auto" ? (s.worker.slots = 0, true)
                                : put_count(s.worker.slots, text, 1, k_slots_per_worker_max)),
     MOETIER_SHOW(s.worker.slots == 0 ? "auto" : std::to_string(s.worker.slots))},
    {"worker.memory", "--memory", k_up | k_worker | k_doctor, "auto or a size of at least 1MiB",
     "bytes for weights; on a GPU for all that the worker takes of it",
     MOETIER_PUT(text == "auto" ? (s.worker.memory = 0, true) : put_size(s.worker.memory, text)),
     MOETIER_SHOW(s.worker.memory == 0 ? "auto" : size_text(s.worker.memory))},
    {"worker.spare_pages", "--spare-pages", k_up | k_worker, "0 to 65536",
     "pages kept free for weights on the move", MOETIER_COUNT(worker.spare_pages, 0, 65536)},
    {"worker.threads", "--threads", k_up | k_worker | k_doctor, "1 to 256", "threads that compute",
     MOETIER_COUNT(worker.threads, 1, 256)},
    {"http.listen", "--http-listen", k_coordinator | k_worker, "host:port",
     "health, metrics and status; worker@N adds N to the port", MOETIER_ENDPOINT(http.listen)},
    {"transport.listen", "--transport-listen", k_up | k_coordinator | k_worker | k_doctor,
     "a host name", "interface of the data plane", MOETIER_TEXT(transport.listen)},
    {"transport.carrier", "", 0, "auto, shared_memory or ucx", "how rows travel",
     MOETIER_CHOICE(transport.carrier, k_carriers)},
    {"transport.allow_tcp", "", 0, "loopback or off", "whether rows may fall back to TCP",
     MOETIER_CHOICE(transport.allow_tcp, k_tcp)},
    {"transport.checksum", "", 0, "auto, on or off", "CRC32C over rows; auto = over TCP",
     MOETIER_CHOICE(transport.checksum, k_checksum)},
    {"transport.spin", "", 0, "0s to 10ms", "how long a thread polls for rows before it sleeps",
     MOETIER_DURATION(transport.spin, 0, 10 * k_millisecond)},
    {"transport.max_workers", "", 0, "1 to 64", "workers of the tier",
     MOETIER_COUNT(transport.max_workers, 1, k_workers_max)},
    {"transport.max_sources", "", 0, "1 to 64", "sources attached at once",
     MOETIER_COUNT(transport.max_sources, 1, k_sources_max)},
    {"gateway.enabled", "", 0, "true or false", "serve thin clients",
     MOETIER_PUT(put_logical(s.gateway.enabled, text)),
     MOETIER_SHOW(s.gateway.enabled ? "true" : "false")},
    {"gateway.memory", "", 0, "a size of at least 16MiB",
     "bytes of thin calls, rows and answers, that the gateway holds at once",
     MOETIER_PUT(put_size(s.gateway.memory, text, 16ULL << 20)),
     MOETIER_SHOW(size_text(s.gateway.memory))},
    {"backend.force", "--backend", k_up | k_coordinator, "auto, a family or a backend's name",
     "which backend computes: one backend runs or the tier is not ready; a family is preferred, "
     "else a slower stand-in runs as degraded",
     MOETIER_TEXT(backend.force)},
    {"backend.allow_degradation", "", 0, "true or false",
     "whether a slower backend may stand in for the one asked for",
     MOETIER_PUT(put_logical(s.backend.allow_degradation, text)),
     MOETIER_SHOW(s.backend.allow_degradation ? "true" : "false")},
    {"moe.shared_experts", "", 0, "auto or off",
     "whether workers also hold the model's shared experts, for sessions that ask",
     MOETIER_CHOICE(moe.shared_experts, k_shared)},
    {"moe.lora", "", 0, "off or on", "whether the tier runs adapters of routed experts",
     MOETIER_CHOICE(moe.lora, k_switch)},
    {"moe.return_mode", "", 0, "partial or exact", "default of sessions made here",
     MOETIER_CHOICE(moe.return_mode, k_modes)},
    {"session.lease", "", 0, "100ms to 1h", "a session ends so long after its last renewal",
     MOETIER_DURATION(session.lease, 100 * k_millisecond, k_hour)},
    {"session.max", "", 0, "1 to 64", "sessions at once",
     MOETIER_COUNT(session.max, 1, k_sessions_max)},
    {"session.max_tokens", "", 0, "1 to 4096", "tokens of one micro-batch",
     MOETIER_COUNT(session.max_tokens, 1, k_tokens_max)},
    {"session.max_micro_batches", "", 0, "1 to 4", "micro-batches of one session",
     MOETIER_COUNT(session.max_micro_batches, 1, k_micro_batches_max)},
    {"session.bank_memory", "", 0, "a size of at least 1MiB",
     "bytes that one session's banks may take at one worker",
     MOETIER_PUT(put_size(s.session.bank_memory, text)),
     MOETIER_SHOW(size_text(s.session.bank_memory))},
    {"replay.max", "", 0, "0 to 16", "replays of a step before its error is told",
     MOETIER_COUNT(replay.max, 0, 16)},
    {"deadline.decode", "", 0, "1ms to 1h", "deadline of a decode call that names none",
     MOETIER_DURATION(deadline.decode, k_millisecond, k_hour)},
    {"deadline.prefill", "", 0, "1ms to 1h", "deadline of a prefill call that names none",
     MOETIER_DURATION(deadline.prefill, k_millisecond, k_hour)},
    {"deadline.step", "", 0, "1ms to 1h", "deadline of a step, or of a batch call, that names none",
     MOETIER_DURATION(deadline.step, k_millisecond, k_hour)},
    {"detect.heartbeat", "", 0, "10ms to 10s", "between two beats of a worker",
     MOETIER_DURATION(detect.heartbeat, 10 * k_millisecond, 10 * k_second)},
    {"detect.timeout", "", 0, "at least 4 heartbeats, to 60s", "silence that ends a member",
     MOETIER_DURATION(detect.timeout, 40 * k_millisecond, 60 * k_second)},
    {"drain.timeout", "", 0, "0s to 1h", "what is in flight gets so long after SIGTERM",
     MOETIER_DURATION(drain.timeout, 0, k_hour)},
    {"restart.budget", "", 0, "COUNT in DURATION", "restarts of a dead child before giving up",
     [](settings& s, std::string_view text) {
       const auto value = parse_budget(text);
       if (value) s.restart.budget = *value;
       return value.has_value();
     },
     MOETIER_SHOW(budget_text(s.restart.budget))},
    {"security.rpc.cert", "", 0, "a PEM file", "own certificate on the RPC link",
     MOETIER_TEXT(security.rpc.cert)},
    {"security.rpc.key", "", 0, "a PEM file of mode 0600", "its key",
     MOETIER_TEXT(security.rpc.key)},
    {"security.rpc.ca", "", 0, "a PEM file", "the authority of the RPC link: it names the tenants",
     MOETIER_TEXT(security.rpc.ca)},
    {"security.control.cert", "--control-cert", k_up | k_coordinator | k_worker, "a PEM file",
     "own certificate between workers and coordinator", MOETIER_TEXT(security.control.cert)},
    {"security.control.key", "--control-key", k_up | k_coordinator | k_worker,
     "a PEM file of mode 0600", "its key", MOETIER_TEXT(security.control.key)},
    {"security.control.ca", "--control-ca", k_up | k_coordinator | k_worker, "a PEM file",
     "the authority of workers and coordinator, another one than the RPC link's",
     MOETIER_TEXT(security.control.ca)},
    {"security.administrators", "", 0, "common names, by commas",
     "whose certificates may change the tier and see all of it",
     MOETIER_TEXT(security.administrators)},
    {"security.insecure", "--insecure", k_up | k_coordinator | k_worker,
     "rpc, http or both by a comma", "what may listen beyond loopback in the clear",
     MOETIER_PUT(put_insecure(s.security.insecure, text)), MOETIER_SHOW(s.security.insecure)},
    {"log.level", "--log-level", k_up | k_coordinator | k_worker, "debug, info, warn, error or off",
     "least severe line that is written", MOETIER_CHOICE(log.level, k_levels)},
};

#undef MOETIER_PUT
#undef MOETIER_SHOW
#undef MOETIER_TEXT
#undef MOETIER_ENDPOINT
#undef MOETIER_CHOICE
#undef MOETIER_COUNT
#undef MOETIER_DURATION

}  // namespace

// Levenshtein distance; keys are short.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::span<const key_row> key_table() noexcept { return k_rows; }

const key_row* find_key(std::string_view key) noexcept {
  const auto at = std::find_if(std::begin(k_rows), std::end(k_rows),
                               [&](const key_row& row) { return row.key == key; });
  return at == std::end(k_rows) ? nullptr : at;
}

std::string_view nearest_key(std::string_view key) noexcept {
  const std::string_view given = key.substr(0, 128);
  return std::min_element(std::begin(k_rows), std::end(k_rows),
                          [&](const key_row& a, const key_row& b) {
                            return edits(a.key, given) < edits(b.key, given);
                          })
      ->key;
}

}  // namespace moetier::config
