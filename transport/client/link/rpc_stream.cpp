#include "transport/client/link/rpc_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <kj/debug.h>

#include "schemas/base/assert.hpp"

namespace moetier::client {
namespace {

static_assert(std::endian::native == std::endian::little, "the stream framing is little endian");

void set_option(int fd, int level, int option, int value) {
  // A Unix socket has no TCP options; a refusal costs a slower notice of a lost peer, nothing else.
  setsockopt(fd, level, option, &value, sizeof value);
}

// A received message: owns its words, hands out the segments the table named.
class received final : public capnp::MessageReader {
 public:
  received(capnp::ReaderOptions limits, std::vector<std::uint64_t> words,
           std::vector<std::uint32_t> sizes)
      : capnp::MessageReader(limits), words_(std::move(words)) {
    std::size_t at = 0;
    segments_.reserve(sizes.size());
    for (const std::uint32_t size : sizes) {
      segments_.emplace_back(reinterpret_cast<const capnp::word*>(words_.data()) + at, size);
      at += size;
    }
    MOETIER_ASSERT(at == words_.size());
  }

  kj::ArrayPtr<const capnp::word> getSegment(capnp::uint id) override {
    return id < segments_.size() ? segments_[id] : kj::ArrayPtr<const capnp::word>();
  }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<kj::ArrayPtr<const capnp::word>> segments_;
};

}  // namespace

struct rpc_stream::incoming {
  std::array<std::uint32_t, 2> first{};  // segments - 1, words of segment 0
  std::vector<std::uint32_t> rest;       // words of segments 1.., padded to a whole word
  std::vector<std::uint32_t> sizes;      // all segments
  std::vector<std::uint64_t> words;      // the body as far as received
  std::size_t words_total = 0;
};

struct rpc_stream::outgoing {
  std::vector<std::uint32_t> table;
  std::vector<iovec> pieces;
  std::size_t next = 0;  // first piece not wholly written
};

rpc_stream::rpc_stream(rpc_loop& loop, std::unique_ptr<byte_channel> channel)
    : loop_(loop), channel_(std::move(channel)) {
  const int fd = channel_->fd();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(k_write_stall_max / 1'000'000));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
  buffer_.resize(k_receive_buffer_bytes);
  ready_ = loop_.observe(fd);
}

rpc_stream::~rpc_stream() noexcept(false) {
  ready_ = nullptr;  // before the socket that it observes
}

void rpc_stream::refuse(const char* what) {
  malformed_ = true;
  KJ_FAIL_REQUIRE("malformed message", what);
}

kj::Promise<bool> rpc_stream::fill(std::span<std::byte> into) {
  for (;;) {
    const std::size_t taken = std::min(into.size(), end_ - begin_);
    if (taken > 0) std::memcpy(into.data(), buffer_.data() + begin_, taken);
    begin_ += taken;
    into = into.subspan(taken);
    if (into.empty()) return true;
    // What is large goes straight to its place; what is small through the buffer, many at a time.
    const bool direct = into.size() >= buffer_.size();
    std::byte* const to = direct ? into.data() : buffer_.data();
    const auto got = channel_->read({to, direct ? into.size() : buffer_.size()});
    switch (got.how) {
      case channel_outcome::kind::closed: return false;
      case channel_outcome::kind::failed:
        kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "receive failed"));
      case channel_outcome::kind::wants_read:
        return ready_->readable().then([this, into] { return fill(into); });
      case channel_outcome::kind::wants_write:
        return ready_->writable().then([this, into] { return fill(into); });
      case channel_outcome::kind::moved: break;
    }
    if (direct) {
      into = into.subspan(got.bytes);
    } else {
      begin_ = 0;
      end_ = got.bytes;
    }
  }
}

kj::Promise<bool> rpc_stream::fill_body(incoming& message) {
  const std::size_t have = message.words.size();
  if (have == message.words_total) return true;
  // First one step, then twice what is here: the memory held is at most twice the bytes received.
  const std::size_t want =
      std::min(message.words_total, std::max(have * 2, k_body_step_bytes / sizeof(capnp::word)));
  message.words.resize(want);
  const auto part =
      std::as_writable_bytes(std::span(message.words)).subspan(have * sizeof(capnp::word));
  return fill(part).then([this, &message](bool whole) -> kj::Promise<bool> {
    if (!whole) refuse("the stream ends inside a message");
    return fill_body(message);
  });
}

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> rpc_stream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd>, capnp::ReaderOptions options, kj::ArrayPtr<capnp::word>) {
  using result = kj::Maybe<capnp::MessageReaderAndFds>;
  auto message = kj::heap<incoming>();
  incoming& m = *message;
  return fill(std::as_writable_bytes(std::span(m.first)))
      .then([this, &m, options](bool whole) -> kj::Promise<result> {
        if (!whole) return result(nullptr);  // a peer that left between messages, or inside 8 bytes
        if (m.first[0] >= k_segments_max) refuse("too many segments");
        const std::uint32_t segments = m.first[0] + 1;
        m.rest.resize(segments / 2 * 2);  // sizes 1..segments-1, and padding if segments is even
        return fill(std::as_writable_bytes(std::span(m.rest)))
            .then([this, &m, segments](bool table_whole) -> kj::Promise<bool> {
              if (!table_whole) refuse("the stream ends inside a segment table");
              m.sizes.push_back(m.first[1]);
              m.sizes.insert(m.sizes.end(), m.rest.begin(), m.rest.begin() + (segments - 1));
              std::uint64_t total = 0;  // 16 numbers of 32 bits cannot overflow it
              for (const std::uint32_t size : m.sizes) total += size;
              if (total > k_message_words_max) refuse("the segments exceed 8 MiB");
              m.words_total = static_cast<std::size_t>(total);
              return fill_body(m);
            })
            .then([&m, options](bool) -> result {
              return capnp::MessageReaderAndFds{
                  kj::heap<received>(options, std::move(m.words), std::move(m.sizes)), nullptr};
            });
      })
      .attach(kj::mv(message));
}

kj::Promise<void> rpc_stream::flush(outgoing& message) {
  while (message.next < message.pieces.size()) {
    const auto sent = channel_->write(std::span(message.pieces).subspan(message.next));
    const bool waits = sent.how == channel_outcome::kind::wants_read ||
                       sent.how == channel_outcome::kind::wants_write;
    if (waits) {
      auto stalled = loop_.delay(k_write_stall_max).then([]() -> void {
        kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the peer takes no bytes"));
      });
      auto ready =
          sent.how == channel_outcome::kind::wants_write ? ready_->writable() : ready_->readable();
      return ready.exclusiveJoin(kj::mv(stalled)).then([this, &message] { return flush(message); });
    }
    if (sent.how != channel_outcome::kind::moved) {
      kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "send failed"));
    }
    std::size_t left = sent.bytes;
    while (message.next < message.pieces.size()) {
      iovec& piece = message.pieces[message.next];
      if (left < piece.iov_len) {
        piece.iov_base = static_cast<std::byte*>(piece.iov_base) + left;
        piece.iov_len -= left;
        break;
      }
      left -= piece.iov_len;
      ++message.next;
    }
  }
  return kj::READY_NOW;
}

kj::Promise<void> rpc_stream::writeMessage(
    kj::ArrayPtr<const int>, kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  MOETIER_ASSERT(segments.size() > 0);
  KJ_REQUIRE(segments.size() <= k_segments_max && framed_bytes(segments) <= k_rpc_message_bytes_max,
             "outgoing message exceeds the protocol's bounds");
  auto message = kj::heap<outgoing>();
  message->table.push_back(static_cast<std::uint32_t>(segments.size() - 1));
  for (const auto& s : segments) message->table.push_back(static_cast<std::uint32_t>(s.size()));
  if (message->table.size() % 2 != 0) message->table.push_back(0);
  message->pieces.push_back({message->table.data(), message->table.size() * sizeof(std::uint32_t)});
  for (const auto& s : segments) {
    // iovec is not const correct; the words are only read.
    message->pieces.push_back(
        {const_cast<capnp::word*>(s.begin()), s.size() * sizeof(capnp::word)});
  }
  auto done = flush(*message);
  return done.attach(kj::mv(message));
}

kj::Promise<void> rpc_stream::writeMessages(
    kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) {
  if (messages.size() == 0) return kj::READY_NOW;
  return writeMessage(nullptr, messages[0])
      .then([this, rest = messages.slice(1, messages.size())]() mutable {
        return writeMessages(rest);
      });
}

kj::Promise<void> rpc_stream::end() {
  channel_->end();
  return kj::READY_NOW;
}

std::size_t framed_bytes(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) noexcept {
  std::size_t words = segments.size() / 2 + 1;
  for (const auto& s : segments) words += s.size();
  return words * sizeof(capnp::word);
}

}  // namespace moetier::client
