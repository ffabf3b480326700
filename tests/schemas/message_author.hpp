#pragma once
// Writes control messages with random but legal values, of every kind; the same seed, the same
// message. Thread: owner.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "schemas/base/limits.hpp"
#include "schemas/control/messages.hpp"

namespace moetier::control {

// Random but legal values of every message.
class author final {
 public:
  explicit author(std::uint64_t seed) : random_(seed) {}

  std::uint64_t number() {
    const std::uint64_t shift = random_() % 64;  // small and large ones alike
    return random_() >> shift;
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  bool coin() { return random_() % 2 == 0; }

  std::string text(std::size_t least, std::size_t most) {
    std::string s(least + random_() % (most - least + 1), ' ');
    for (char& c : s) c = static_cast<char>(' ' + random_() % 95);
    return s;
  }
  std::vector<std::uint8_t> data(std::size_t most) {
    std::vector<std::uint8_t> v(random_() % (most + 1));
    for (auto& b : v) b = static_cast<std::uint8_t>(random_());
    return v;
  }
  std::vector<std::uint64_t> numbers(std::size_t most) {
    std::vector<std::uint64_t> v(random_() % (most + 1));
    for (auto& n : v) n = number();
    return v;
  }
  source_attachment attachment() {
    source_attachment s;
    s.source = source_id(static_cast<std::uint16_t>(random_()));
    s.session = session_id(number32() | 1);
    s.incarnation = incarnation_id(number());
    s.rows_max = number32();
    s.hidden_stride = number32();
    s.top_k = below(k_top_k_max + 1);
    s.return_stride = number32();
    s.return_rows_max = number32();
    s.banks = number32();
    s.weight = 1 + below(k_tenant_weight_max);
    s.urgency = k_all_deadline_classes[below(3)];
    s.tenant = text(0, 64);
    s.address = data(coin() ? 64 : k_address_bytes_max);
    return s;
  }
  held_adapter adapter() { return {below(k_adapter_ids_max), text(1, 64), std::string(1, '/').append(text(0, 1023))}; }
  template <class Value>
  Value plan() {
    Value v;
    v.epoch = epoch_number(number());
    v.generation = generation_number(number());
    v.plan = plan_hash(number());
    v.incarnation = incarnation_id(number());
    return v;
  }

  message make(std::size_t kind) {
    switch (kind) {
      case 0: {
        hello m;
        m.protocol = number32();
        m.name = text(1, 64);
        m.incarnation = incarnation_id(number());
        m.node = number();
        m.highest_epoch = epoch_number(number());
        m.model_fingerprint = number();
        m.checkpoint_digest = number();
        m.slots = below(k_slots_per_worker_max + 1);
        m.environment = data(200);
        m.resolution = number();
        m.carrier = text(0, 64);
        m.address = data(k_address_bytes_max);
        m.heartbeat_interval_ns = number();
        m.heartbeat_timeout_ns = number();
        for (std::uint32_t i = below(5); i > 0; --i) {
          m.held.push_back({generation_number(number()), plan_hash(number()),
                            static_cast<generation_state>(below(4))});
        }
        m.held_checksums = numbers(coin() ? 40 : 20'000);
        for (std::uint32_t i = below(coin() ? 3 : 64); i > 0; --i) {
          m.sources.push_back(attachment());
        }
        for (std::uint32_t i = below(coin() ? 3 : 65); i > 0; --i) m.adapters.push_back(adapter());
        return m;
      }
      case 1:
        return welcome{worker_id(static_cast<std::uint16_t>(number())), incarnation_id(number()),
                       epoch_number(number()), number32(), below(k_slots_per_worker_max + 1)};
      case 2:
        return refused{static_cast<refused::why>(below(6)), epoch_number(number()),
                       generation_number(number()), incarnation_id(number()), text(0, 1024)};
      case 3: {
        auto m = plan<prepare>();
        m.placement = data(coin() ? 100 : 300'000);
        return m;
      }
      case 4: {
        auto m = plan<prepared>();
        m.checksums = numbers(coin() ? 100 : 40'000);
        return m;
      }
      case 5: return plan<abort_plan>();
      case 6: return plan<commit>();
      case 7: return plan<committed>();
      case 8:
        return release{epoch_number(number()), generation_number(number()),
                       incarnation_id(number())};
      case 9:
        return released{epoch_number(number()), generation_number(number()),
                        incarnation_id(number())};
      case 10: return attach_source{epoch_number(number()), attachment()};
      case 11:
        return source_attached{incarnation_id(number()),
                               source_id(static_cast<std::uint16_t>(number())),
                               incarnation_id(number()), coin(), text(0, 1024)};
      case 12:
        return detach_source{epoch_number(number()),
                             source_id(static_cast<std::uint16_t>(number())),
                             incarnation_id(number())};
      case 13: {
        heartbeat m;
        m.incarnation = incarnation_id(number());
        m.sequence = number();
        m.epoch = epoch_number(number());
        m.generation = generation_number(number());
        m.engine_tick = number();
        m.tickets_ended = number();
        m.oldest_batch_ns = number();
        m.device = static_cast<device_state>(below(3));
        return m;
      }
      case 14:
        return heartbeat_answer{number(), epoch_number(number()), generation_number(number()),
                                static_cast<log_threshold>(number() % 6)};
      case 15: {
        load_report m;
        m.incarnation = incarnation_id(number());
        m.generation = generation_number(number());
        m.plan = plan_hash(number());
        m.rows_total = number();
        m.calls_total = number();
        m.counts = numbers(2'000);
        return m;
      }
      case 16: return leaving{incarnation_id(number())};
      case 17: return load_adapter{epoch_number(number()), adapter()};
      case 18: return drop_adapter{epoch_number(number()), number32()};
      case 19: return adapter_state{incarnation_id(number()), number32(), coin(), text(0, 1024)};
      default: return probe{epoch_number(number()), incarnation_id(number())};
    }
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace moetier::control
