// The RPC link's message stream: segment tables and bodies that arrive in pieces of any size. The
// first byte is the size of a piece.

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include <capnp/any.h>
#include <capnp/serialize.h>

#include "tests/fuzz/fuzz_target.hpp"
#include "transport/client/link/rpc_stream.hpp"

namespace moetier::fuzz {
namespace {

// Bytes that come from an input, then the end of the stream.
class scripted_channel final : public client::byte_channel {
 public:
  scripted_channel(int fd, std::span<const std::uint8_t> bytes, std::size_t piece)
      : fd_(fd), bytes_(std::as_bytes(bytes)), piece_(piece) {}

  int fd() const noexcept override { return fd_; }
  client::channel_outcome read(std::span<std::byte> into) override {
    using outcome = client::channel_outcome;
    if (bytes_.empty()) return {outcome::kind::closed, 0};
    const std::size_t count = std::min({into.size(), bytes_.size(), piece_});
    std::memcpy(into.data(), bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return {outcome::kind::moved, count};
  }
  client::channel_outcome write(std::span<const iovec>) override { return {}; }
  void end() override {}

 private:
  const int fd_;
  std::span<const std::byte> bytes_;
  const std::size_t piece_;
};

// A loop and a descriptor that it can watch.
struct world {
  world() { check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "no socket"); }
  ~world() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  client::rpc_loop loop;
  int ends[2] = {-1, -1};
};

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  static world here;
  client::rpc_stream stream(
      here.loop, std::make_unique<scripted_channel>(here.ends[0], bytes.subspan(1), bytes[0] + 1U));
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = bytes.size();
  limits.nestingLimit = client::k_nesting_max;
  for (std::size_t seen = 0;;) {
    bool over = false;
    const auto failed = kj::runCatchingExceptions([&] {
      auto read = stream.tryReadMessage(nullptr, limits, nullptr).wait(here.loop.scope());
      KJ_IF_MAYBE (message, read) {
        std::size_t words = 0;
        for (capnp::uint id = 0; id < client::k_segments_max; ++id) {
          words += message->reader->getSegment(id).size();
        }
        seen += words;
        check(seen * 8 <= bytes.size(), "a message is larger than what came");
        kj::runCatchingExceptions(
            [&] { message->reader->getRoot<capnp::AnyPointer>().targetSize(); });
      } else {
        over = true;
      }
    });
    if (over || failed != nullptr) return;
  }
}

std::vector<input> seeds() {
  std::vector<input> all;
  const auto add = [&](std::vector<std::uint32_t> words) {
    input seed(1 + 4 * words.size(), 6);
    std::memcpy(seed.data() + 1, words.data(), 4 * words.size());
    all.push_back(std::move(seed));
  };
  add({0, 1, 0, 0});                                // an empty root
  add({1, 1, 1, 0, 2, 1, 0, 0});                    // two segments, a far pointer
  add({2, 0, 1, 0, 0, 1, 0, 7, 0, 2, 0, 1, 5, 6});  // three, then one more message
  add({0, 2, 1, 0x22, 0x64636261, 0});              // a text
  add({15, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // sixteen
  add({0, 1024 * 1024, 0, 0});                                         // claims 8 MiB
  add({16, 0, 0, 0});
  return all;
}

}  // namespace moetier::fuzz
