#include "actors/doctor/peers.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/core.h>

#include "actors/doctor/control_groups.hpp"
#include "actors/doctor/peer_line.hpp"
#include "actors/process/random.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::doctor {
namespace {

// The answerer speaks first: "moetier.doctor/1 BOOT"; a tier's RPC port never does.
constexpr std::string_view k_greeting = "moetier.doctor/1 ";
constexpr duration_ns k_greeting_limit = 500 * k_millisecond;
constexpr duration_ns k_word_limit = 2 * k_second;
constexpr duration_ns k_session_limit = 60 * k_second;  // of one asker
constexpr int k_words = 20;
constexpr duration_ns k_slow_words = 10 * k_millisecond;
constexpr double k_slow_rows = 0.5e9;  // bytes a second

std::string boot_id() { return first_line("/proc/sys/kernel/random/boot_id").value_or("unknown"); }

std::string hex_of(const transport::member_address& bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::optional<transport::member_address> bytes_of(const std::string& hex) {
  constexpr std::size_t k_address_bytes_max = 4096;
  if (hex.empty() || hex.size() % 2 != 0 || hex.size() / 2 > k_address_bytes_max ||
      hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return std::nullopt;
  }
  transport::member_address bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// "attach INCARNATION ADDRESS", asked and answered alike.
struct attachment {
  incarnation_id incarnation;
  transport::member_address address;
};
std::string attach_line(incarnation_id own, const transport::member_address& address) {
  return fmt::format("attach {:x} {}", own.value, hex_of(address));
}
std::optional<attachment> attachment_of(const std::string& line) {
  std::istringstream words(line);
  std::string verb, address;
  std::uint64_t incarnation = 0;
  if (!(words >> verb >> std::hex >> incarnation >> address) || verb != "attach") return {};
  auto bytes = bytes_of(address);
  if (!bytes) return std::nullopt;
  return attachment{incarnation_id(incarnation), std::move(*bytes)};
}

duration_ns median(std::vector<duration_ns>& times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

expected<std::unique_ptr<transport::Communication>> open_carrier(const carrier_wish& wish) {
  return transport::open_carrier(
      wish.name, {.listen = wish.listen, .checksum_payload = false, .allow_tcp = wish.allow_tcp});
}

expected<row_figures> exchange_rows(peer_line& line, const carrier_wish& wish) {
  auto carrier = open_carrier(wish);
  if (!carrier) return tl::unexpected(carrier.error());
  const incarnation_id own(random_bits());
  auto asker = row_asker::make(**carrier, own);
  if (!asker) return tl::unexpected(asker.error());
  line.say(attach_line(own, (*asker)->address()));
  const auto answer = line.hear(k_word_limit);
  const auto other = answer ? attachment_of(*answer) : std::nullopt;
  if (!other) {
    return fail(reason::carrier_unavailable, "ucx",
                "the other doctor could not attach to this one");
  }
  if (auto done = (*asker)->attach(other->incarnation, other->address); !done) {
    return tl::unexpected(done.error());
  }
  return (*asker)->measure();
}

void ask_doctor(peer_line& line, const carrier_wish& wish, peer_facts& f) {
  std::vector<duration_ns> times;
  for (int i = 0; i < k_words; ++i) {
    const time_ns began = monotonic_now();
    if (!line.say("ping") || line.hear(k_word_limit) != "pong") {
      f.refusal = "the other doctor fell silent";
      return;
    }
    times.push_back(monotonic_now() - began);
  }
  f.words_p50 = median(times);
  const auto rows = exchange_rows(line, wish);
  if (rows) {
    f.rows = *rows;
  } else {
    f.rows_refusal = rows.error().text;
  }
}

void ask_tier(const config::endpoint& at, duration_ns limit, peer_facts& f) {
  const auto link = client::connect(config::endpoint_text(at), limit);
  if (!link) {
    f.refusal = link.error().text;
    return;
  }
  std::vector<duration_ns> times;
  for (int i = 0; i < k_words; ++i) {
    const time_ns began = monotonic_now();
    const auto told = (*link)->document(client::admin_document::status, limit);
    if (!told) {
      f.refusal = told.error().text;
      return;
    }
    times.push_back(monotonic_now() - began);
  }
  f.words_p50 = median(times);
}

std::string milliseconds(duration_ns d) {
  return fmt::format("{:.2f} ms", static_cast<double>(d) / static_cast<double>(k_millisecond));
}

// One asker, until it goes or its time is over.
void answer(peer_line& line, transport::Communication& carrier,
            const std::function<bool()>& stopping) {
  const time_ns until = monotonic_now() + k_session_limit;
  if (!line.say(std::string(k_greeting) + boot_id())) return;
  std::unique_ptr<row_answerer> rows;
  while (!stopping() && monotonic_now() < until && line.open()) {
    const auto word = line.hear(rows ? 0 : 100 * k_millisecond);
    if (word == "ping") {
      line.say("pong");
    } else if (word) {
      const auto asker = attachment_of(*word);
      const incarnation_id own(random_bits());
      auto made = asker ? row_answerer::make(carrier, own)
                        : expected<std::unique_ptr<row_answerer>>(
                              fail(reason::frame_malformed, "no attachment"));
      if (!made || !(*made)->attach(asker->incarnation, asker->address)) {
        line.say("refused");
        return;
      }
      rows = std::move(*made);
      line.say(attach_line(own, rows->address()));
    }
    // Many turns between two looks at the line: rows are what is measured.
    const time_ns next_look = monotonic_now() + 50 * k_millisecond;
    while (rows && monotonic_now() < next_look) rows->turn();
  }
}

}  // namespace

peer_facts probe_peer(const config::endpoint& at, const carrier_wish& carrier, duration_ns limit) {
  peer_facts f{.address = config::endpoint_text(at)};
  const auto line = peer_line::connect(at, limit);
  if (!line) {
    f.refusal = line.error().text;
    return f;
  }
  const auto greeting = (*line)->hear(k_greeting_limit);
  if (greeting && greeting->starts_with(k_greeting)) {
    f.is_doctor = true;
    f.same_host = greeting->substr(k_greeting.size()) == boot_id();
    ask_doctor(**line, carrier, f);
  } else {
    ask_tier(at, limit, f);
  }
  return f;
}

findings judge_peer(const peer_facts& f) {
  const std::string check = "peer " + f.address;
  if (!f.refusal.empty()) {
    return {failure(check, f.refusal,
                    "start `moetier doctor --answer` or a tier there, and let both machines' "
                    "firewalls pass the port")};
  }
  const std::string who =
      f.is_doctor ? f.same_host ? "a doctor on this host" : "a doctor" : "a tier";
  const std::string seen = fmt::format("{} answers in {} (p50)", who, milliseconds(f.words_p50));
  findings all;
  if (f.words_p50 > k_slow_words) {
    all.push_back(warn(check, seen,
                       "keep client, coordinator and workers in one place: leases and heartbeats "
                       "are made for a local network"));
  } else {
    all.push_back(pass(check, seen));
  }
  const std::string rows = "rows " + f.address;
  if (!f.is_doctor) {
    all.push_back(skip(rows,
                       "a tier's port carries no rows of strangers; start `moetier doctor "
                       "--answer` there"));
    return all;
  }
  if (!f.rows_refusal.empty()) {
    all.push_back(failure(rows, f.rows_refusal,
                          "transport.listen must name an interface that the other machine reaches, "
                          "on both, and UCX the same version and devices"));
    return all;
  }
  const std::string figures =
      fmt::format("4 KiB there and back in {:.1f} us (p50), {:.2f} GB/s one way",
                  static_cast<double>(f.rows.one_row_p50) / 1000.0, f.rows.bytes_per_second / 1e9);
  if (f.rows.bytes_per_second < k_slow_rows) {
    all.push_back(warn(rows, figures,
                       f.same_host
                           ? "look at the lines carrier_lanes, cross_memory and shm: shared "
                             "memory is much faster"
                           : "look at the lines nics, link_rate and rdma: rows take longer "
                             "than experts do"));
  } else {
    all.push_back(pass(rows, figures));
  }
  return all;
}

expected<void> answer_peers(const config::endpoint& at, const carrier_wish& wish,
                            const std::function<void(const config::endpoint&)>& listening,
                            const std::function<bool()>& stopping) {
  auto carrier = open_carrier(wish);
  if (!carrier) return tl::unexpected(carrier.error());
  auto listener = peer_listener::open(at);
  if (!listener) return tl::unexpected(listener.error());
  listening((*listener)->address());
  while (!stopping()) {
    if (const auto line = (*listener)->accept(200 * k_millisecond))
      answer(*line, **carrier, stopping);
  }
  return {};
}

}  // namespace moetier::doctor
