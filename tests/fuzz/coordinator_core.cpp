// Sequences into the coordinator's core: workers and clients that say anything, in any order, on a
// disk and links that keep to their rules. A byte chooses each act; honest ones are among them, so
// that a tier comes into service between the others.

#include "tests/fuzz/coordinator_world.hpp"

namespace moetier::fuzz {
namespace {

using namespace coordinator;

constexpr std::size_t k_acts_max = 256;

session_id some_session(byte_source& from) { return session_id(from.below(5)); }
incarnation_id some_source(byte_source& from) { return incarnation_id(7000 + from.below(4)); }

void ask_session(coordinator_world& tier, byte_source& from) {
  switch (from.below(8)) {
    case 0:
    case 1: {
      session_request r;
      r.incarnation = some_source(from);
      if (from.below(4) == 0) r.tenant = from.text(70);
      if (from.below(4) == 0) r.tokens_max = static_cast<std::uint32_t>(from.any());
      if (from.below(4) == 0) r.top_k = static_cast<std::uint32_t>(from.any());
      r.micro_batches = from.below(6);
      r.return_mode = static_cast<std::uint8_t>(from.below(4) / 2);
      r.shared_experts = from.below(8) == 0;
      return tier.ask([&](request_token token) { return open_session{token, r}; });
    }
    case 2:
    case 3: {
      attach_session a;
      a.session = some_session(from);
      a.incarnation = some_source(from);
      a.shape = {.rows_max = 16,
                 .hidden_stride = 64,
                 .top_k = 2,
                 .return_stride = 64,
                 .return_rows_max = 32,
                 .banks = 2};
      if (from.below(4) == 0) a.shape.rows_max = static_cast<std::uint32_t>(from.any());
      a.address.assign(from.below(8) == 0 ? from.below(200) * 16 : 1, std::byte{5});
      return tier.ask([&](request_token token) {
        a.token = token;
        return a;
      });
    }
    case 4: {
      const resume_session r{0, some_session(from), some_source(from),
                             from.coin() ? "" : "default"};
      return tier.ask([&](request_token token) {
        return resume_session{token, r.session, r.incarnation, r.tenant};
      });
    }
    case 5:
      return tier.step(renew_session{some_session(from),
                                     some_source(from),
                                     {from.any(), from.any(), generation_number(from.any())}});
    case 6:
      return tier.step(late_report{some_session(from), some_source(from),
                                   worker_id(static_cast<std::uint16_t>(from.below(3))),
                                   incarnation_id(11 + from.below(3))});
    default: {
      const close_session c{0, some_session(from), some_source(from)};
      return tier.ask([&](request_token token) {
        return close_session{token, c.session, c.incarnation};
      });
    }
  }
}

void ask_adapter(coordinator_world& tier, byte_source& from) {
  const std::string name(1, static_cast<char>('k' + from.below(3)));
  const std::string path = from.below(4) == 0 ? from.text(8) : "/" + name;
  if (from.coin()) {
    return tier.ask([&](request_token token) { return load_adapter{token, name, path}; });
  }
  tier.ask([&](request_token token) { return drop_adapter{token, name}; });
}

void act(coordinator_world& tier, byte_source& from) {
  switch (from.below(20)) {
    case 0: return tier.pass(from.below(8) * 100 * k_millisecond);
    case 1: return tier.pass(from.u8() * 50 * k_millisecond);
    case 2:
    case 3: return tier.connect(from);
    case 4: return tier.lose_link(from);
    case 5:
    case 6: return tier.answer(from);
    case 7: return tier.settle();
    case 8:
    case 9: return tier.beat(from);
    case 10: return tier.say_anything(from);
    case 11: return tier.repeat(from);
    case 12: return tier.write(from.below(32) != 0);
    case 13:
    case 14:
    case 15:
    case 16: return ask_session(tier, from);
    case 17: return ask_adapter(tier, from);
    case 18: return tier.step(set_log_level{static_cast<control::log_threshold>(from.below(6))});
    default:
      switch (from.u8()) {
        case 0: return tier.shut_down();
        case 1:
        case 2:
        case 3: return tier.restart();
        default: return tier.pass(100 * k_millisecond);
      }
  }
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  byte_source from(bytes);
  coordinator_world tier(from.u8());
  for (std::size_t i = 0; i < k_acts_max && !from.empty(); ++i) act(tier, from);
  tier.shut_down();
}

std::vector<input> seeds() {
  const auto sequence = [](std::initializer_list<input> parts) {
    input all;
    for (const input& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const input begins = {0, 12, 1};                                      // two workers; the record
  const input join = {2, 0, 1, 2, 1, 1, 12, 1, 7, 12, 1, 7, 12, 1, 7};  // both, and what follows
  const input beats = {8, 0, 0, 8, 1, 0, 0, 1};
  const input session = {13, 0, 0, 1, 1, 1, 1, 0, 1, 13, 2, 1, 0, 1, 1, 7};
  const input adapter = {17, 0, 1, 0, 7, 0, 1, 17, 0, 1, 1, 7};
  const input restart = {19, 1, 12, 1, 2, 0, 1, 2, 1, 1, 12, 1, 7};
  const input loss = {4, 0, 0, 2, 12, 1, 2, 0, 1, 7, 12, 1, 7, 12, 1};
  input mixed{3};
  for (unsigned i = 0; i < 700; ++i) mixed.push_back(static_cast<std::uint8_t>(i * 151 + i / 5));
  return {sequence({begins, join, beats, session, beats}),
          sequence({begins, join, session, restart, session}),
          sequence({begins, join, loss, session, loss}),
          sequence({{4}, {12, 1}, join, adapter, beats, adapter, loss}),
          sequence({{1}, {12, 1}, join, {10, 1, 3, 5, 0, 1, 11, 2, 7}, beats}),
          mixed};
}

}  // namespace moetier::fuzz
