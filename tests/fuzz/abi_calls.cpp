// Sequences through the C interface, on a tier inside the process: structs of any size and content,
// tensors that claim anything, calls in any order. Pointers are honest: null, or memory as large as
// the struct or the tensor says.

#include <memory>

#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/transport/client/toy_service.hpp"

namespace moetier::fuzz {
namespace {

using namespace client::toy;

constexpr std::size_t k_acts_max = 48;
constexpr std::uint32_t k_tokens_max = 64;  // of the tier
constexpr std::size_t k_tensor_bytes = 64 * 1024;

// One struct of the interface in memory of exactly the bytes that it claims.
template <class T>
class claimed final {
 public:
  claimed(const T& content, byte_source& from) {
    T value = content;
    value.size = sizeof(T);
    value.version = MOETIER_VERSION;
    const std::uint8_t how = from.u8();
    if (how == 0xff) return;  // null
    if (how == 0xfe) value.version = static_cast<std::uint32_t>(from.any());
    if (how == 0xfd) value.size = from.below(2 * sizeof(T) < 256 ? 2 * sizeof(T) : 256);
    if (how == 0xfc) value.size = sizeof(T) + 8 * from.below(4);
    if (how == 0xfb) value.size = static_cast<std::uint32_t>(from.any());
    bytes_.resize(std::clamp<std::size_t>(value.size, 8, 70'000), how == 0xfc ? from.u8() : 0);
    std::memcpy(bytes_.data(), &value, std::min(bytes_.size(), sizeof(T)));
    if (how == 0xfb && value.size > bytes_.size()) bytes_.resize(value.size % 70'000 + 70'000);
  }
  T* get() { return bytes_.empty() ? nullptr : reinterpret_cast<T*>(bytes_.data()); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// A tensor whose memory is as large as it says, as far as anybody can tell.
class any_tensor final {
 public:
  any_tensor(byte_source& from, std::int64_t rows, std::int64_t width, DLDataType type)
      : memory_(k_tensor_bytes / 8, 0) {
    tensor_.device = {kDLCPU, 0};
    tensor_.ndim = width == 0 ? 1 : 2;
    tensor_.dtype = type;
    tensor_.shape = shape_;
    tensor_.strides = strides_;
    tensor_.data = memory_.data();
    shape_[0] = rows;
    shape_[1] = width;
    strides_[0] = std::max<std::int64_t>(width, 1);
    strides_[1] = 1;
    switch (from.u8()) {
      case 0xf0: tensor_.ndim = static_cast<std::int32_t>(from.any()); break;
      case 0xf1: shape_[0] = std::min<std::int64_t>(k_tokens_max, from.u8()); break;
      case 0xf2: shape_[from.below(2)] = -static_cast<std::int64_t>(from.any() / 2); break;
      case 0xf3: strides_[0] = from.below(32); break;
      case 0xf4: strides_[0] = -static_cast<std::int64_t>(from.any() / 2); break;
      case 0xf5: strides_[1] = from.below(4); break;
      case 0xf6:
        tensor_.dtype = {static_cast<std::uint8_t>(from.below(8)),
                         static_cast<std::uint8_t>(8 * from.below(9)),
                         static_cast<std::uint16_t>(from.below(3))};
        break;
      case 0xf7: tensor_.device = {static_cast<DLDeviceType>(from.below(20)), from.u8() - 1}; break;
      case 0xf8: tensor_.byte_offset = from.below(16); break;
      case 0xf9: tensor_.shape = nullptr; break;
      case 0xfa: tensor_.strides = nullptr; break;
      case 0xfb: tensor_.data = nullptr; break;
      case 0xfc: shape_[1] = from.below(20); break;
      case 0xff: null_ = true; break;
      default: break;
    }
    fill(from);
  }
  const DLTensor* get() const { return null_ ? nullptr : &tensor_; }

 private:
  // Zeros, ids of 32 or 64 bits, ones, or one pattern all over: NaN and infinity among them.
  void fill(byte_source& from) {
    const std::uint32_t how = from.below(5);
    const std::uint64_t pattern = how == 4 ? from.any() : 0x3f8000003f800000;  // 1.0F twice
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const std::uint64_t two_ids = (2 * i + 1) % 8 << 32 | 2 * i % 8;
      memory_[i] = how == 0 ? 0 : how == 1 ? two_ids : how == 3 ? i % 8 : pattern;
    }
  }

  std::vector<std::uint64_t> memory_;
  std::int64_t shape_[8] = {};
  std::int64_t strides_[8] = {};
  DLTensor tensor_{};
  bool null_ = false;
};

class caller final {
 public:
  caller() {
    const auto options = at_tier();
    check(abi::open_service(&options, &service_, world_of(tier_)).has_value(),
          "the toy tier does not open");
  }
  ~caller() {
    for (moetier_session* s : sessions_) moetier_session_close(s);
    check(moetier_service_close(service_) == MOETIER_OK, "a service without sessions stays");
  }
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;

  void act(byte_source& from) {
    const std::uint32_t which = from.below(14);
    if (which == 0) return open(from);
    if (which == 1) return tell_service(from);
    if (sessions_.empty()) return open(from);
    moetier_session* s = sessions_[from.u8() % sessions_.size()];
    switch (which) {
      case 2: {
        std::erase(sessions_, s);
        last(moetier_session_close(s));
        return;
      }
      case 3:
      case 4: {
        moetier_step_options o{};
        o.replay = from.below(8) == 0;
        o.deadline_ns = from.below(8) == 0 ? from.any() : 0;
        o.warmup = from.below(16) == 0;
        claimed<moetier_step_options> options(o, from);
        last(moetier_step_begin(s, options.get(), nullptr));
        return;
      }
      case 5: {
        claimed<moetier_end_options> options({}, from);
        claimed<moetier_step_report> report({}, from);
        last(moetier_step_end(s, options.get(), report.get()));
        return;
      }
      case 6:
      case 7:
      case 8: return submit(s, from, false);
      case 9: return collect(s, from);
      case 10: return submit(s, from, true);
      case 11: return look(s, from);
      case 12:
        tier_.publish(make_snapshot(tier_.shape, 1 + from.below(3), 2 + from.below(3)));
        return;
      default: return misbehave(from);
    }
  }

 private:
  static void last(moetier_status status) {
    check(moetier_status_name(status)[0] != '\0', "a status without a name");
    if (status == MOETIER_OK || status == MOETIER_PENDING) return;
    const moetier_error* e = moetier_last_error();
    check(e != nullptr && e->text != nullptr && e->text[0] != '\0', "a failure without a sentence");
  }

  void open(byte_source& from) {
    if (sessions_.size() >= 4) return;
    moetier_session_options o{};
    o.max_tokens = from.below(4) == 0 ? from.u8() : 16;
    o.micro_batches = from.below(5);
    o.top_k = from.below(4);
    o.return_mode = from.below(8) == 0 ? 1 : 0;
    o.deadline_class = from.below(5);
    o.max_rows_per_chunk = from.below(4) * 5;
    if (from.below(8) == 0) o.call_deadline_ns = from.any();
    if (from.below(8) == 0) o.return_dtype = from.u8();
    if (from.below(8) == 0) o.gate = from.u8();
    if (from.below(8) == 0) o.bad_rows = from.u8();
    // A real tier bounds what it grants.
    tier_.refuse_open.reset();
    if (o.max_tokens > k_tokens_max) {
      tier_.refuse_open =
          make_error(reason::limit_exceeded, "tokens_max", o.max_tokens, k_tokens_max);
    }
    claimed<moetier_session_options> options(o, from);
    moetier_session* s = nullptr;
    const moetier_status status = moetier_session_open(service_, options.get(), &s);
    last(status);
    check((status == MOETIER_OK) == (s != nullptr), "a handle without a session, or the reverse");
    if (s != nullptr) sessions_.push_back(s);
  }

  void tell_service(byte_source& from) {
    claimed<moetier_model_info> info({}, from);
    last(moetier_service_info(service_, info.get()));
    claimed<moetier_service_options> options(at_tier(), from);
    moetier_service* other = nullptr;
    scripted_carrier* const own = tier_.carrier;
    const auto opened = abi::open_service(options.get(), &other, world_of(tier_));
    check(opened.has_value() == (other != nullptr), "a handle without a service, or the reverse");
    if (other != nullptr) moetier_service_close(other);
    tier_.carrier = own;
  }

  void submit(moetier_session* s, byte_source& from, bool whole) {
    const std::int64_t rows = from.below(20);
    const auto width = static_cast<std::int64_t>(tier_.shape.hidden_size);
    const bool routed = from.coin();
    const auto k = static_cast<std::int64_t>(tier_.shape.top_k);
    any_tensor hidden(from, rows, width, k_dl_f32);
    any_tensor logits(from, rows, static_cast<std::int64_t>(tier_.shape.experts), k_dl_f32);
    any_tensor ids(from, rows, k, from.coin() ? k_dl_i32 : k_dl_i64);
    any_tensor weights(from, rows, k, k_dl_f32);
    any_tensor token_ids(from, rows, 0, k_dl_i32);
    moetier_call c{};
    c.layer = from.below(4) == 0 ? static_cast<std::uint16_t>(from.any()) : 2;
    c.micro_batch = static_cast<std::uint16_t>(from.below(4));
    c.repeat_idx = static_cast<std::uint16_t>(from.below(16) / 14);
    c.repeat_count = static_cast<std::uint16_t>(from.below(16) / 14);
    c.hidden = hidden.get();
    if (routed) {
      c.ids = ids.get();
      c.weights = weights.get();
    } else {
      c.logits = logits.get();
    }
    if (from.below(16) == 0) c.token_ids = token_ids.get();
    if (from.below(16) == 0) c.adapter_ids = token_ids.get();
    claimed<moetier_call> call(c, from);
    if (whole) {
      with_result(from, rows, [&](const moetier_result* r) {
        return moetier_forward(s, call.get(), r, nullptr);
      });
      return;
    }
    moetier_ticket ticket = 0;
    const moetier_status status = moetier_submit(s, call.get(), nullptr, &ticket);
    last(status);
    if (status == MOETIER_OK) tickets_.push_back({ticket, rows});
  }

  void collect(moetier_session* s, byte_source& from) {
    moetier_ticket ticket = from.any();
    std::int64_t rows = from.below(20);
    if (!tickets_.empty() && from.below(8) != 0) {
      const auto at = from.u8() % tickets_.size();
      ticket = tickets_[at].first;
      rows = tickets_[at].second;
    }
    std::size_t count = 4;
    moetier_pair pairs[4];
    last(moetier_missing(s, ticket, pairs, &count));
    with_result(from, rows,
                [&](const moetier_result* r) { return moetier_collect(s, ticket, r, nullptr); });
  }

  template <class Call>
  void with_result(byte_source& from, std::int64_t rows, Call call) {
    any_tensor output(from, rows, static_cast<std::int64_t>(tier_.shape.hidden_size), k_dl_f32);
    any_tensor ids(from, rows, static_cast<std::int64_t>(tier_.shape.top_k), k_dl_i32);
    any_tensor weights(from, rows, static_cast<std::int64_t>(tier_.shape.top_k), k_dl_f32);
    moetier_result r{};
    r.output = output.get();
    if (from.below(4) == 0) r.ids = ids.get();
    if (from.below(4) == 0) r.weights = weights.get();
    if (from.below(32) == 0) r.accumulate = 1;
    claimed<moetier_result> result(r, from);
    last(call(result.get()));
  }

  void look(moetier_session* s, byte_source& from) {
    claimed<moetier_event> event({}, from);
    last(moetier_next_event(s, event.get(), 0));
    claimed<moetier_stats_snapshot> stats({}, from);
    last(moetier_stats(s, stats.get()));
    std::size_t count = 0;
    const auto* words = moetier_status_words(s, &count);
    check(words != nullptr && count >= 1 && count <= 4, "a session without status words");
    last(moetier_ack_generation(s, from.any()));
    check(moetier_event_fd(s) >= 0, "a session without a descriptor");
  }

  // What a worker does from now on; never silence, which a caller would wait out.
  void misbehave(byte_source& from) {
    if (tier_.carrier == nullptr) return;
    constexpr behaviour k_acts[] = {behaviour::answer, behaviour::lost,    behaviour::stale,
                                    behaviour::refuse, behaviour::damaged, behaviour::short_rows};
    tier_.carrier->workers[static_cast<std::uint16_t>(1 + from.below(3))].acts =
        k_acts[from.below(6)];
  }

  toy_tier tier_;
  moetier_service* service_ = nullptr;
  std::vector<moetier_session*> sessions_;
  std::vector<std::pair<moetier_ticket, std::int64_t>> tickets_;
};

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  byte_source from(bytes);
  caller program;
  for (std::size_t i = 0; i < k_acts_max && !from.empty(); ++i) program.act(from);
}

std::vector<input> seeds() {
  const input open = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1};
  const input begin = {3, 0, 1, 1, 1, 1};
  const input rows = {5, 1, 0, 2, 0, 2, 1, 0, 1, 0, 2, 0, 1};  // five, with ids and weights
  const input call = {1, 0, 0, 0, 1, 1, 1};                    // in layer 2
  const input result = {0, 2, 0, 1, 0, 2, 1, 1, 1, 1};
  const input end = {5, 0, 1, 1};
  const auto joined = [](std::initializer_list<input> parts) {
    input all;
    for (const input& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const input forward = joined({{10, 0}, rows, call, result});
  const input submit = joined({{6, 0}, rows, call});
  const input collect = joined({{9, 0, 2, 0, 5, 1, 0}, result});
  const input look = {11, 0, 1, 1, 2, 0};
  input mixed;
  for (unsigned i = 0; i < 900; ++i) mixed.push_back(static_cast<std::uint8_t>(i * 57 + i / 9));
  return {joined({open, begin, forward, forward, end, look}),
          joined({open, begin, submit, collect, collect, end, begin, forward, end}),
          joined({open, open, begin, {13, 0, 2}, forward, end, look}), mixed};
}

}  // namespace moetier::fuzz
