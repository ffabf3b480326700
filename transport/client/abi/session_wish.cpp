#include "transport/client/abi/session_wish.hpp"

#include <iterator>
#include <string_view>

#include <fmt/core.h>

namespace moetier::abi {
namespace {

// Enumerations by value: names[v]; the first `enabled` can be had.
struct choice {
  const char* name;
  std::uint32_t given;
  std::uint32_t enabled;
  std::initializer_list<std::string_view> names;
};

expected<void> check(const choice& c) {
  if (c.given < c.enabled) return {};
  if (c.given >= c.names.size()) {
    return fail(reason::invalid_argument, c.name, c.given,
                fmt::format("0 to {}", c.names.size() - 1));
  }
  return fail(reason::not_enabled, fmt::format("{} {}", c.name, *(c.names.begin() + c.given)));
}

expected<void> absent(const char* name, bool present) {
  if (!present) return {};
  return fail(reason::not_enabled, name);
}

template <class... Check>
expected<void> all(Check&&... checks) {
  expected<void> result;
  static_cast<void>(((result = checks(), result.has_value()) && ...));
  return result;
}

}  // namespace

expected<void> check_wish(const moetier_session_options& o) {
  const std::initializer_list<std::string_view> dtypes = {"auto", "f32", "bf16", "f16", "fp8"};
  const std::initializer_list<std::string_view> sides = {"client", "tier"};
  return all(
      [&] {
        return check(
            {"deadline_class", o.deadline_class, 4, {"default", "decode", "prefill", "batch"}});
      },
      [&] {
        return check({"return_mode", o.return_mode, 2, {"partial", "exact"}});
      },
      [&] { return absent("max_workers", o.max_workers != 0); },
      [&] {
        return check({"dispatch_dtype", o.dispatch_dtype, 2, dtypes});
      },
      [&] {
        return check({"return_dtype", o.return_dtype, 2, dtypes});
      },
      [&] {
        return check({"gate", o.gate, 2, sides});
      },
      [&] {
        return check({"shared_experts", o.shared_experts, 2, sides});
      },
      [&] {
        return check({"ack", o.ack, 1, {"auto", "manual"}});
      },
      [&] {
        return check({"bad_rows", o.bad_rows, 2, {"reject", "flag"}});
      },
      [&] {
        return check({"on_missing", o.on_missing, 1, {"fail", "degrade", "wait"}});
      },
      [&] { return absent("max_missing_weight", !(o.max_missing_weight == 0)); },
      [&] { return absent("low_latency", o.low_latency != 0); },
      [&] { return absent("dry_run", o.dry_run != 0); },
      [&] { return absent("repeat_counts", o.repeat_counts != nullptr); });
}

expected<void> check_wish(const moetier_step_options& o) {
  return all(
      [&] {
        return check({"replay", o.replay, 2, {"no", "yes"}});
      },
      [&] { return absent("warmup", o.warmup != 0); },
      [&] { return absent("counts", o.counts != nullptr || o.counts_length != 0); },
      [&] { return absent("use_dp_padding", o.use_dp_padding != 0); });
}

expected<void> check_wish(const moetier_end_options& o) {
  return check({"wait", o.wait, 2, {"no", "yes"}});
}

expected<void> check_wish(const moetier_call& c) {
  return all([&] { return absent("token_count", c.token_count != nullptr); },
             [&] { return absent("hidden_ready", c.hidden_ready != nullptr); });
}

expected<void> check_wish(const moetier_result& r) {
  return all([&] { return absent("accumulate", r.accumulate != 0); },
             [&] { return absent("missing_weight", r.missing_weight != nullptr); });
}

expected<void> check_stream(const void* stream) { return absent("a stream", stream != nullptr); }

}  // namespace moetier::abi
