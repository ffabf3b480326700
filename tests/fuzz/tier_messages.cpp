// The values that a client or a coordinator reads out of an RPC message (schemas/tier.capnp): the
// first byte says which, the rest is one segment. A capnp exception ends a call, so it is an
// answer.

#include <cstring>

#include <capnp/message.h>

#include "tests/fuzz/fuzz_target.hpp"
#include "transport/client/link/call_status.hpp"
#include "transport/client/link/limits.hpp"
#include "transport/client/link/rows_codec.hpp"

namespace moetier::fuzz {
namespace {

constexpr client::thin_limits k_limits{
    .tokens_max = 16, .hidden_size = 8, .columns = 6, .top_k = 2, .gate_on_tier = false};

// Bytes that a value may hold for each byte of its message.
constexpr std::size_t k_growth_max = 8;

void check_size(std::size_t held, std::size_t given) {
  check(held <= k_growth_max * given + 4096, "a value holds more than its message");
}

void read(capnp::MessageReader& message, std::uint8_t which, std::size_t given) {
  switch (which % 7) {
    case 0: {
      auto limits = k_limits;
      limits.gate_on_tier = (which & 0x80) != 0;
      const auto rows = client::read_rows(message.getRoot<rpc::Session::Rows>(), limits);
      if (!rows) return;
      check(rows->hidden.size() == std::size_t{rows->tokens} * 8 * dtype_bytes(rows->hidden_type),
            "rows of another size than they say");
      check(rows->ids.size() == rows->weights.size(), "ids without weights");
      return check_size(rows->hidden.size() + rows->logits.size() + 4 * rows->ids.size(), given);
    }
    case 1: {
      const auto sums = client::read_sums(message.getRoot<rpc::Session::Sums>(), 3);
      if (sums) check_size(4 * sums->output.size() + 4 * sums->ids.size(), given);
      return;
    }
    case 2: {
      std::uint32_t next = 0;
      client::layer_router whole;
      auto piece = client::read_router_rows(message.getRoot<rpc::Tier::RouterRows>());
      if (!piece) return;
      check_size(piece->matrix.size() + 4 * piece->bias.size(), given);
      const auto copy = *piece;
      if (client::join(whole, std::move(*piece), next)) {
        check(next >= 1 && next <= whole.columns, "a router of too many rows");
        client::join(whole, copy, next).has_value();
      }
      return;
    }
    case 3: {
      const auto suspected = client::read_suspicion(message.getRoot<rpc::Session::Suspicion>());
      if (suspected) check_size(suspected->workers.size(), given);
      return;
    }
    case 4: client::read_shape(message.getRoot<rpc::Session::Shape>()); return;
    case 5: client::read_status(message.getRoot<rpc::Status>()).has_value(); return;
    default: client::check_call(message.getRoot<rpc::Call>(), "forward").has_value(); return;
  }
}

template <class Struct>
struct of {
  using named = Struct;
};

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 9) return;
  std::vector<std::uint64_t> words((bytes.size() - 1) / 8);  // as aligned as a message
  std::memcpy(words.data(), bytes.data() + 1, words.size() * 8);
  const kj::ArrayPtr<const capnp::word> segments[] = {
      {reinterpret_cast<const capnp::word*>(words.data()), words.size()}};
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = 2 * client::k_message_words_max;
  limits.nestingLimit = client::k_nesting_max;
  capnp::SegmentArrayMessageReader message(segments, limits);
  kj::runCatchingExceptions([&] { read(message, bytes[0], bytes.size()); });
}

std::vector<input> seeds() {
  std::vector<input> all;
  const auto add = [&](std::uint8_t which, auto type, auto fill) {
    capnp::MallocMessageBuilder message;
    fill(message.initRoot<typename decltype(type)::named>());
    const auto segment = message.getSegmentsForOutput()[0].asBytes();
    input seed{which};
    seed.insert(seed.end(), segment.begin(), segment.end());
    all.push_back(std::move(seed));
  };
  const std::vector<std::byte> hidden(2 * 8 * 4, std::byte{1});
  const std::vector<std::byte> logits(2 * 6 * 4, std::byte{2});
  const std::vector<std::int32_t> ids{0, 1, 2, 3};
  const std::vector<float> weights{0.5F, 0.5F, 1, 0};
  add(0, of<rpc::Session::Rows>(), [&](auto to) {
    client::write_rows(
        to,
        {.layer = {}, .tokens = 2, .hidden = hidden, .logits = {}, .ids = ids, .weights = weights});
  });
  add(0, of<rpc::Session::Rows>(), [&](auto to) {
    client::write_rows(
        to,
        {.layer = {}, .tokens = 2, .hidden = hidden, .logits = logits, .ids = {}, .weights = {}});
  });
  add(1, of<rpc::Session::Sums>(), [&](auto to) {
    client::write_sums(to, {.output = std::vector<float>(24, 1),
                            .ids = ids,
                            .weights = weights,
                            .bad_rows = {0, 1, 0},
                            .generation = {},
                            .epoch = {}});
  });
  add(2, of<rpc::Tier::RouterRows>(), [&](auto to) {
    client::layer_router router;
    router.columns = 3;
    router.width = 4;
    router.matrix.assign(3 * 4 * 4, std::byte{3});
    router.bias.assign(3, 1);
    client::write_router_rows(to, router, 0);
  });
  add(3, of<rpc::Session::Suspicion>(), [&](auto to) {
    client::write_suspicion(to, {4, {{worker_id(1), incarnation_id(2)}}});
  });
  add(4, of<rpc::Session::Shape>(),
      [&](auto to) { client::write_shape(to, {.rows_max = 16, .hidden_stride = 64, .top_k = 2}); });
  add(5, of<rpc::Status>(), [&](auto to) { to.setMessage("a sentence"); });
  add(6, of<rpc::Call>(), [&](auto to) {
    to.setProtocol(1);
    to.setDeadlineNs(1000);
  });
  return all;
}

}  // namespace moetier::fuzz
