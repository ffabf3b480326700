// Tensors in the memory of a real device, where there is one: that the driver's functions, streams
// and addresses are what the stand-in says they are.

#include <array>

#include <dlfcn.h>

#include "tests/transport/client/placed_tensor.hpp"
#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

using address = std::uintptr_t;

// What a caller of its own does with the driver, on device 0.
class caller {
 public:
  caller() : library_(dlopen(abi::k_driver_library, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr || call("cuInit", 0u) != 0) return;
    int device = 0;
    if (call("cuDeviceGet", &device, 0) != 0) return;
    void* context = nullptr;
    has_device = call("cuDevicePrimaryCtxRetain", &context, device) == 0 &&
                 call("cuCtxPushCurrent_v2", context) == 0;
  }

  template <class... Args>
  int call(const char* function, Args... args) const {
    auto* const found = reinterpret_cast<int (*)(Args...)>(dlsym(library_, function));
    return found == nullptr ? -1 : found(args...);
  }
  template <class... Args>
  void need(const char* function, Args... args) const {
    ASSERT_EQ(call(function, args...), 0) << function;
  }
  address allocate(std::size_t bytes) const {
    address memory = 0;
    need("cuMemAlloc_v2", &memory, bytes);
    return memory;
  }

  bool has_device = false;

 private:
  void* library_;
};

// A tensor of host memory, with its margins and gaps, on the device.
class mirror {
 public:
  mirror(const caller& c, placed_tensor& of) : caller_(c), of_(of), dl(of.dl) {
    memory_ = c.allocate(of.memory().size());
    c.need("cuMemcpyHtoD_v2", memory_, static_cast<const void*>(of.memory().data()),
           of.memory().size());
    dl.data = reinterpret_cast<void*>(
        memory_ + static_cast<address>(static_cast<std::byte*>(of.dl.data) - of.memory().data()));
    dl.device = {kDLCUDA, 0};
  }
  mirror(const mirror&) = delete;
  ~mirror() { caller_.call("cuMemFree_v2", memory_); }

  address memory() const { return memory_; }
  std::size_t size() const { return of_.memory().size(); }
  void bring_back() {
    caller_.need("cuMemcpyDtoH_v2", static_cast<void*>(of_.memory().data()), memory_, size());
  }

 private:
  const caller& caller_;
  placed_tensor& of_;
  address memory_ = 0;

 public:
  DLTensor dl;
};

TEST(real_device, gives_the_bits_of_host_tensors_behind_its_streams_work) {
  const caller c;
  if (!c.has_device) GTEST_SKIP() << "NO CUDA DEVICE";
  void* stream = nullptr;
  c.need("cuStreamCreate", &stream, 1u);  // does not wait for the default stream
  constexpr std::size_t k_busy_bytes = std::size_t{256} << 20;
  const address busy = c.allocate(k_busy_bytes);

  toy_tier tier;
  tier.driver_library = abi::k_driver_library;
  const auto at = at_tier();
  for (void* const on : {static_cast<void*>(nullptr), stream}) {
    for (const std::int64_t gap : {0, 3}) {
      const placed_tensor::layout layout{.device = k_host, .gap = gap};
      placed_call due(tier.shape, 16, 3, layout);
      placed_call given(tier.shape, 16, 3, layout);
      mirror true_rows(c, given.hidden);
      std::memset(given.hidden.row(0), 0, 4);  // what is read too early is another row
      mirror hidden(c, given.hidden);
      mirror ids(c, given.ids);
      mirror weights(c, given.weights);
      mirror output(c, given.output);
      for (int i = 0; i < 50; ++i) {
        c.need("cuMemsetD8Async", busy, static_cast<unsigned char>(i), k_busy_bytes, on);
      }
      c.need("cuMemcpyDtoDAsync_v2", hidden.memory(), true_rows.memory(), hidden.size(), on);

      const auto run = [&](placed_call& call, void* with) {
        tier.next_session = 1;
        moetier_service* service = nullptr;
        moetier_session* session = nullptr;
        ASSERT_TRUE(abi::open_service(&at, &service, world_of(tier)));
        ASSERT_EQ(moetier_session_open(service, nullptr, &session), MOETIER_OK) << last_text();
        EXPECT_EQ(moetier_step_begin(session, nullptr, nullptr), MOETIER_OK) << last_text();
        EXPECT_EQ(moetier_forward(session, &call.call, &call.result, with), MOETIER_OK)
            << last_text();
        EXPECT_EQ(moetier_session_close(session), MOETIER_OK);
        EXPECT_EQ(moetier_service_close(service), MOETIER_OK);
      };
      run(due, nullptr);
      given.call.hidden = &hidden.dl;
      given.call.ids = &ids.dl;
      given.call.weights = &weights.dl;
      given.result.output = &output.dl;
      run(given, on);
      output.bring_back();
      EXPECT_EQ(given.output.bytes(), due.output.bytes());
      EXPECT_TRUE(given.output.has_poison_around_rows());
    }
  }
  c.call("cuMemFree_v2", busy);
  c.call("cuStreamDestroy_v2", stream);
}

}  // namespace
}  // namespace moetier::client::toy
