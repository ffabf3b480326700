// One layer over RPC alone, without libmoetier: the coordinator's gateway is the source half.
//   thin_client ADDRESS
//
//   capnp compile -oc++:. --src-prefix=. schemas/tier.capnp
//   c++ -std=c++20 -I. transport/client/examples/thin_client.cpp schemas/tier.capnp.c++
//       $(pkg-config --cflags --libs capnp-rpc) -o thin_client

#include <capnp/ez-rpc.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "schemas/tier.capnp.h"

namespace {

namespace rpc = moetier::rpc;

// [example: call]
// Every request carries protocol, client, request number and how long the caller still waits.
class numbered_calls final {
 public:
  void fill(rpc::Call::Builder call, double seconds) {
    call.setProtocol(rpc::PROTOCOL);
    call.setClientId(client_);
    call.setRequestId(++request_);
    call.setDeadlineNs(static_cast<std::uint64_t>(seconds * 1e9));
  }

 private:
  std::uint64_t client_ = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  std::uint64_t request_ = 0;
};

// A refusal is a Status, never an exception: those mean that the connection is gone.
bool is_ok(const char* what, rpc::Status::Reader status) {
  if (status.getCode() == 0) return true;
  std::fprintf(stderr, "%s: status %u, %s\n", what, unsigned{status.getCode()},
               status.getMessage().cStr());
  return false;
}
// [end]

kj::ArrayPtr<const kj::byte> bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const kj::byte*>(values.data()), values.size() * sizeof(float)};
}

int run(const char* address) {
  constexpr std::uint32_t tokens = 5;
  numbered_calls calls;
  capnp::EzRpcClient client(address);
  kj::WaitScope& wait = client.getWaitScope();
  rpc::Tier::Client tier = client.getMain<rpc::Tier>();

  auto asked = tier.infoRequest();
  calls.fill(asked.initCall(), 5);
  auto answer = asked.send().wait(wait);
  if (!is_ok("info", answer.getStatus())) return 1;
  const auto model = answer.getInfo();

  // [example: forward]
  auto opening = tier.openSessionRequest();
  calls.fill(opening.initCall(), 5);
  opening.initWish().setThin(true);
  opening.getWish().setTokensMax(tokens);
  auto opened = opening.send().wait(wait);
  if (!is_ok("openSession", opened.getStatus())) return 1;
  rpc::Session::Client session = opened.getSession();

  std::vector<float> hidden(tokens * model.getHiddenSize());
  std::vector<float> logits(tokens * model.getRouterColumns());
  for (std::size_t i = 0; i < hidden.size(); ++i)
    hidden[i] = std::sin(0.37F * static_cast<float>(i));
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = std::cos(1.7F * static_cast<float>(i));
  std::vector<float> output(hidden.size());
  for (const std::uint16_t layer : model.getMoeLayers()) {
    auto request = session.forwardRequest();
    calls.fill(request.initCall(), 1);
    auto rows = request.initRows();
    rows.setLayer(layer);
    rows.setTokens(tokens);
    rows.setHidden(bytes_of(hidden));
    rows.setLogits(bytes_of(logits));
    auto done = request.send().wait(wait);
    if (!is_ok("forward", done.getStatus())) return 1;
    const auto sums = done.getSums().getOutput();
    if (sums.size() != output.size() * sizeof(float)) return 1;
    std::memcpy(output.data(), sums.begin(), sums.size());
  }
  // [end]
  double sum = 0;
  for (const float y : output) sum += std::fabs(y);
  std::printf("%u layers, sum %.6g\n", model.getMoeLayers().size(), sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: thin_client ADDRESS\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const kj::Exception& gone) {
    std::fprintf(stderr, "the connection failed: %s\n", gone.getDescription().cStr());
    return 1;
  }
}
