#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>

#include "actors/cli/commands.hpp"
#include "actors/cli/direct_session.hpp"
#include "actors/cli/forward_input.hpp"
#include "actors/cli/output_text.hpp"
#include "actors/cli/tier_address.hpp"
#include "actors/process/random.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_rpc_margin_bytes = 64 * 1024;  // of a message: all but the rows

// A run of rows that goes in one call.
struct part {
  std::uint32_t first = 0;
  std::uint32_t tokens = 0;
};

std::vector<part> parts_of(std::uint32_t tokens, std::uint32_t most, std::uint32_t least_parts) {
  const std::uint32_t even = (tokens + least_parts - 1) / std::max(1U, least_parts);
  const std::uint32_t size = std::max(1U, std::min(most, even));
  std::vector<part> parts;
  for (std::uint32_t first = 0; first < tokens; first += size) {
    parts.push_back({first, std::min(size, tokens - first)});
  }
  if (parts.empty()) parts.push_back({0, 0});  // zero tokens are a legal call
  return parts;
}

template <class T>
std::span<T> rows(std::vector<T>& all, const part& p, std::size_t width) {
  if (all.empty()) return {};
  return std::span(all).subspan(p.first * width, p.tokens * width);
}
template <class T>
std::span<const T> rows(const std::vector<T>& all, const part& p, std::size_t width) {
  if (all.empty()) return {};
  return std::span(all).subspan(p.first * width, p.tokens * width);
}

class forward_run final {
 public:
  forward_run(const command_line& line, const config::settings& settings, const forward_input& in)
      : line_(line), settings_(settings), in_(in), end_(monotonic_now() + line.timeout) {
    out_.return_mode =
        line.forward.return_mode.empty() ? settings.moe.return_mode : line.forward.return_mode;
    mode_ =
        out_.return_mode == "exact" ? kernels::return_mode::exact : kernels::return_mode::partial;
  }

  expected<forward_output> run() {
    auto done = line_.forward.direct ? direct() : gateway();
    if (!done) return tl::unexpected(done.error());
    return std::move(out_);
  }

 private:
  duration_ns left() const {
    const time_ns now = monotonic_now();
    return now < end_ ? end_ - now : 1;
  }

  expected<void> adopt(const transport::routing_snapshot& snapshot) {
    if (auto fits = check_against(in_, snapshot.model); !fits) return fits;
    out_.fingerprint = snapshot.model.fingerprint;
    out_.top_k = snapshot.model.top_k;
    out_.rows.resize(std::size_t{in_.tokens} * in_.hidden_size);
    if (line_.forward.with_routing) {
      out_.ids.resize(std::size_t{in_.tokens} * out_.top_k);
      out_.weights.resize(std::size_t{in_.tokens} * out_.top_k);
    }
    return {};
  }

  std::size_t hidden_bytes() const { return in_.hidden_size * dtype_bytes(in_.hidden_type); }
  std::size_t logits_bytes() const { return in_.experts * dtype_bytes(in_.logits_type); }

  expected<void> gateway() {
    auto link = reach(line_, left());
    if (!link) return tl::unexpected(link.error());
    const auto granted = (*link)->open_session({.tenant = line_.forward.tenant,
                                                .incarnation = incarnation_id(random_bits()),
                                                .return_mode = static_cast<std::uint8_t>(mode_),
                                                .thin = true,
                                                .gate_on_tier = line_.forward.use == "gate",
                                                .shared_experts = line_.forward.shared_experts,
                                                .urgency = line_.forward.urgency},
                                               left());
    if (!granted) return tl::unexpected(granted.error());
    if (auto fits = adopt(*granted->snapshot); !fits) return fits;
    const std::size_t row_bytes =
        std::max(hidden_bytes() + logits_bytes() + 8 * std::size_t{in_.top_k},
                 4 * std::size_t{in_.hidden_size} + 8 * std::size_t{out_.top_k});
    const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(
        granted->tokens_max, (k_rpc_message_bytes_max - k_rpc_margin_bytes) / row_bytes));
    for (const part& p : parts_of(in_.tokens, most, line_.forward.micro_batches)) {
      if (auto done = call_gateway(**link, granted->session, p); !done) return done;
    }
    return (*link)->close_session(granted->session, left());
  }

  expected<void> call_gateway(client::tier_link& link, session_id session, const part& p) {
    auto result =
        link.forward(session, {.layer = layer_id(static_cast<std::uint16_t>(line_.forward.layer)),
                               .tokens = p.tokens,
                               .hidden_type = in_.hidden_type,
                               .hidden = rows(in_.hidden, p, hidden_bytes()),
                               .logits_type = in_.logits_type,
                               .logits = rows(in_.logits, p, logits_bytes()),
                               .ids = rows(in_.ids, p, in_.top_k),
                               .weights = rows(in_.weights, p, in_.top_k),
                               .token_ids = rows(in_.token_ids, p, 1),
                               .adapter_ids = rows(in_.adapter_ids, p, 1),
                               .deadline = left()});
    if (!result) return tl::unexpected(result.error());
    const auto place = rows(out_.rows, p, in_.hidden_size);
    if (result->output.size() != place.size()) {
      return fail(reason::frame_malformed, "the result has another number of rows");
    }
    std::copy(result->output.begin(), result->output.end(), place.begin());
    if (line_.forward.with_routing) {
      const auto ids = rows(out_.ids, p, out_.top_k);
      const auto weights = rows(out_.weights, p, out_.top_k);
      if (result->ids.size() != ids.size() || result->weights.size() != weights.size()) {
        return fail(reason::frame_malformed, "the result lacks its routing");
      }
      std::copy(result->ids.begin(), result->ids.end(), ids.begin());
      std::copy(result->weights.begin(), result->weights.end(), weights.begin());
    }
    out_.epoch = result->epoch;
    out_.generation = result->generation;
    return {};
  }

  expected<void> direct() {
    const std::uint32_t m = line_.forward.micro_batches;
    const std::uint32_t most = std::min(settings_.session.max_tokens, std::max(1U, in_.tokens));
    auto session = direct_session::open({.address = line_.address,
                                         .tokens_max = most,
                                         .micro_batches = m,
                                         .mode = mode_,
                                         .gate_on_tier = line_.forward.use == "gate",
                                         .shared_experts = line_.forward.shared_experts,
                                         .urgency = line_.forward.urgency,
                                         .tenant = line_.forward.tenant,
                                         .limit = left()},
                                        settings_);
    if (!session) return tl::unexpected(session.error());
    client::source_session& source = (*session)->source();
    if (auto fits = adopt(source.snapshot()); !fits) return fits;
    const std::vector<part> parts = parts_of(in_.tokens, most, m);
    // Each m parts are one step; a step that failed in a way that a newer snapshot may mend is done
    // again as a whole.
    for (std::size_t first = 0; first < parts.size(); first += m) {
      const auto now =
          std::span(parts).subspan(first, std::min<std::size_t>(m, parts.size() - first));
      if (auto done = step(source, now); !done) return done;
    }
    out_.epoch = source.snapshot().epoch;
    out_.generation = source.snapshot().generation;
    return {};
  }

  expected<void> step(client::source_session& source, std::span<const part> parts) {
    expected<void> done;
    for (std::uint32_t attempt = 0; attempt <= settings_.replay.max; ++attempt) {
      done = attempt_step(source, parts, attempt > 0);
      const bool again =
          !done &&
          (done.error().code == status::timeout || done.error().code == status::stale_generation ||
           done.error().code == status::corrupt || done.error().code == status::skipped);
      if (!again || monotonic_now() >= end_) break;
    }
    return done;
  }

  expected<void> attempt_step(client::source_session& source, std::span<const part> parts,
                              bool replay) {
    if (auto begun = source.step_begin(replay); !begun) return begun;
    expected<void> first;
    std::size_t submitted = 0;
    for (; submitted < parts.size() && first; ++submitted) {
      first = submit(source, parts[submitted], static_cast<std::uint16_t>(submitted));
      if (!first) break;
    }
    // What was sent is collected in any case; the first failure is the one to tell.
    for (std::size_t u = 0; u < submitted; ++u) {
      auto collected = collect(source, parts[u], static_cast<std::uint16_t>(u));
      if (!collected && first) first = std::move(collected);
    }
    const auto ended = source.step_end();
    if (!first) return first;
    return ended;
  }

  expected<void> submit(client::source_session& source, const part& p, std::uint16_t u) {
    const auto hidden = rows(in_.hidden, p, hidden_bytes());
    const auto logits = rows(in_.logits, p, logits_bytes());
    return source.submit({.layer = layer_id(static_cast<std::uint16_t>(line_.forward.layer)),
                          .micro_batch = u,
                          .tokens = p.tokens,
                          .hidden = hidden.data(),
                          .hidden_type = in_.hidden_type,
                          .hidden_pitch = hidden_bytes(),
                          .logits = logits.empty() ? nullptr : logits.data(),
                          .logits_type = in_.logits_type,
                          .logits_pitch = logits_bytes(),
                          .ids = rows(in_.ids, p, in_.top_k),
                          .weights = rows(in_.weights, p, in_.top_k),
                          .token_ids = rows(in_.token_ids, p, 1),
                          .adapter_ids = rows(in_.adapter_ids, p, 1),
                          .deadline = 0});
  }

  expected<void> collect(client::source_session& source, const part& p, std::uint16_t u) {
    const auto place = rows(out_.rows, p, in_.hidden_size);
    return source.collect(u, {.output = place.data(),
                              .type = dtype::f32,
                              .pitch = 4 * std::size_t{in_.hidden_size},
                              .ids = rows(out_.ids, p, out_.top_k),
                              .weights = rows(out_.weights, p, out_.top_k)});
  }

  const command_line& line_;
  const config::settings& settings_;
  const forward_input& in_;
  const time_ns end_;
  kernels::return_mode mode_ = kernels::return_mode::partial;
  forward_output out_;
};

// JSON has no infinity.
std::string number(double x) { return std::isfinite(x) ? fmt::format("{:.3e}", x) : "null"; }

std::string check_json(const deviation& d, bool ok) {
  return fmt::format(",\"largest_error\":{},\"scale\":{},\"relative_error\":{},\"check\":{}",
                     number(d.largest), number(d.scale), number(d.relative()), ok);
}

}  // namespace

expected<exit_code> run_forward(const command_line& line, const config::settings& settings) {
  const forward_options& o = line.forward;
  if (o.out.empty() && !o.check) {
    return fail(reason::config_invalid, "--out", "not given", "a file, or --check");
  }
  if (same_file(o.out, o.in)) {
    return fail(reason::config_invalid, "--out", o.out, "another file than --in's");
  }
  if (std::isnan(o.tolerance)) {
    return fail(reason::config_invalid, "--tolerance", "nan", "0 or more");
  }
  if (o.layer > 0xffff) return fail(reason::config_invalid, "--layer", o.layer, "0 to 65535");
  const auto input = read_forward_input(o);
  if (!input) return tl::unexpected(input.error());
  const auto output = forward_run(line, settings, *input).run();
  if (!output) return tl::unexpected(output.error());
  if (!o.out.empty()) {
    if (auto written = write_forward_output(o, *input, *output); !written) {
      return tl::unexpected(written.error());
    }
  }
  const deviation d = o.check ? deviation_of(*input, *output) : deviation{};
  const bool ok = d.relative() <= o.tolerance;
  if (line.json) {
    std::fputs(fmt::format("{{\"schema\":\"moetier.forward/1\",\"status\":\"OK\",\"layer\":{},"
                           "\"tokens\":{},\"epoch\":{},\"generation\":{},\"return_mode\":\"{}\","
                           "\"via\":\"{}\"{}}}\n",
                           o.layer, input->tokens, output->epoch.value, output->generation.value,
                           output->return_mode, o.direct ? "direct" : "gateway",
                           o.check ? check_json(d, ok) : "")
                   .c_str(),
               stdout);
  } else if (o.check) {
    std::fputs(fmt::format("largest error {:.3e} of the scale ({} {:.3e}); absolute {:.3e}, scale "
                           "{:.3e}\n",
                           d.relative(), ok ? "within" : "above", o.tolerance, d.largest, d.scale)
                   .c_str(),
               stdout);
  }
  return ok ? exit_code::done : exit_code::check_failed;
}

}  // namespace moetier::cli
