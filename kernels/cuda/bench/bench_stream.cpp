#include "kernels/cuda/bench/bench_stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cxxabi.h>

namespace moetier::kernels::cuda::bench {
namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

// "580.159.04", or the version of CUDA that the driver serves where it does not say its own.
std::string driver_text() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string text;
  if (file >> text) return text;
  int version = 0;
  cudaDriverGetVersion(&version);
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::uint32_t attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, device);
  return static_cast<std::uint32_t>(value);
}

// In the order of capture.
std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return {};
  std::vector<cudaGraphNode_t> nodes(count);
  if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return {};
  return nodes;
}

// A function of the driver, which nothing links; null where the driver lacks it.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  constexpr unsigned k_version = 12030;  // the first with all that is asked here
  if (cudaGetDriverEntryPointByVersion(name, &found, k_version, cudaEnableDefault, &result) !=
          cudaSuccess ||
      result != cudaDriverEntryPointSuccess)
    return nullptr;
  return reinterpret_cast<Function>(found);
}

// "straight_kernel" of "void moetier::kernels::cuda::straight_kernel<...>(...)".
std::string short_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? text.get() : mangled;
  name = name.substr(0, name.find_first_of("<("));
  return name.substr(name.find_last_of(": ") + 1);
}

// The driver knows the kernel of a node wherever it came from; the runtime does not always.
std::string kernel_name_of(cudaGraphNode_t node) {
  const auto parameters_of = driver_function<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)>(
      "cuGraphKernelNodeGetParams");
  const auto function_name =
      driver_function<CUresult (*)(const char**, CUfunction)>("cuFuncGetName");
  const auto kernel_name = driver_function<CUresult (*)(const char**, CUkernel)>("cuKernelGetName");
  CUDA_KERNEL_NODE_PARAMS parameters{};
  const char* name = nullptr;
  if (parameters_of == nullptr || function_name == nullptr || kernel_name == nullptr ||
      parameters_of(node, &parameters) != CUDA_SUCCESS)
    return "unknown";
  const CUresult named = parameters.func != nullptr ? function_name(&name, parameters.func)
                                                    : kernel_name(&name, parameters.kern);
  return named == CUDA_SUCCESS && name != nullptr ? short_name(name) : "unknown";
}

unexpected_error unmeasurable(const std::string& why) {
  return unexpected_error(error{
      .code = status::unavailable, .why = reason::not_enabled, .text = "device: skipped, " + why});
}

}  // namespace

time_spread spread_of(std::vector<double> times_us) {
  if (times_us.empty()) return {};
  std::sort(times_us.begin(), times_us.end());
  return {.median = times_us[times_us.size() / 2],
          .min = times_us.front(),
          .max = times_us.back(),
          .n = static_cast<std::uint32_t>(times_us.size())};
}

device_block::~device_block() {
  if (data_ != nullptr) cudaFree(data_);
}

bench_graph::~bench_graph() {
  if (executable_ != nullptr) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));
}

expected<std::unique_ptr<bench_stream>> bench_stream::open() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    return unmeasurable("this machine has no CUDA device");
  std::unique_ptr<bench_stream> made(new bench_stream());
  cudaDeviceProp properties{};
  made->take_error(cudaGetDeviceProperties(&properties, 0));
  bench_device_facts& f = made->facts_;
  f.name = properties.name;
  f.driver = driver_text();
  f.architecture = static_cast<std::uint32_t>(properties.major * 10 + properties.minor);
  f.cache_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
  f.memory_bytes = properties.totalGlobalMem;
  f.size.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, 0);
  f.size.shared_bytes_max = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  if (made->ok() && f.architecture != 90) return unmeasurable(f.name + " is not of sm_90");
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  made->take_error(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  made->take_error(cudaEventCreate(&begin));
  made->take_error(cudaEventCreate(&end));
  made->stream_ = stream;
  made->begin_ = begin;
  made->end_ = end;
  if (!made->ok()) return tl::unexpected(made->failed("opening the device"));
  return made;
}

bench_stream::~bench_stream() {
  if (begin_ != nullptr) cudaEventDestroy(event_of(begin_));
  if (end_ != nullptr) cudaEventDestroy(event_of(end_));
  if (stream_ != nullptr) cudaStreamDestroy(stream_of(stream_));
}

void bench_stream::take_error(int error) noexcept {
  if (error_ == 0) error_ = error;
}

void bench_stream::take(launch_status status) { take_error(status.error); }

error bench_stream::failed(const char* what) const {
  const std::string why = error_ == launch_status::k_refused
                              ? "the launcher refused the call"
                              : cudaGetErrorString(static_cast<cudaError_t>(error_));
  return make_error(reason::internal_error, std::string(what) + " on the device: " + why);
}

std::uint64_t bench_stream::free_bytes() const noexcept {
  std::size_t available = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&available, &total);
  return available;
}

device_block bench_stream::allocate(std::size_t bytes) {
  device_block block;
  void* data = nullptr;
  if (ok()) take_error(cudaMalloc(&data, std::max<std::size_t>(bytes, 256)));
  block.data_ = static_cast<std::byte*>(data);
  block.bytes_ = data != nullptr ? bytes : 0;
  return block;
}

void bench_stream::upload(std::byte* to, std::span<const std::byte> from) {
  if (!ok() || from.empty()) return;
  take_error(
      cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_of(stream_)));
  wait();
}

void bench_stream::download_bytes(std::span<std::byte> to, const void* from) {
  if (!ok() || to.empty()) return;
  take_error(
      cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_of(stream_)));
  wait();
}

void bench_stream::fill(std::span<std::byte> block, std::uint8_t byte) {
  if (ok()) take_error(cudaMemsetAsync(block.data(), byte, block.size(), stream_of(stream_)));
}

void bench_stream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (ok())
    take_error(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(stream_)));
}

void bench_stream::wait() {
  if (ok()) take_error(cudaStreamSynchronize(stream_of(stream_)));
}

void* bench_stream::capture_graph(const std::function<void()>& enqueue) {
  enqueue();
  wait();
  if (!ok()) return nullptr;
  take_error(cudaStreamBeginCapture(stream_of(stream_), cudaStreamCaptureModeThreadLocal));
  enqueue();
  cudaGraph_t graph = nullptr;
  take_error(cudaStreamEndCapture(stream_of(stream_), &graph));
  return graph;
}

// Takes the graph over.
bench_graph bench_stream::instantiate(void* graph) {
  bench_graph made;
  cudaGraphExec_t executable = nullptr;
  if (ok()) take_error(cudaGraphInstantiate(&executable, static_cast<cudaGraph_t>(graph), 0));
  if (graph != nullptr) cudaGraphDestroy(static_cast<cudaGraph_t>(graph));
  if (ok()) take_error(cudaGraphUpload(executable, stream_of(stream_)));
  made.executable_ = executable;
  return made;
}

bench_graph bench_stream::capture(const std::function<void()>& enqueue) {
  return instantiate(capture_graph(enqueue));
}

launch_stages bench_stream::stages_of(const std::function<void()>& enqueue, std::uint32_t parts) {
  if (!ok()) return {.each = {}, .note = "an earlier error"};
  const auto graph = static_cast<cudaGraph_t>(capture_graph(enqueue));
  launch_stages stages;
  if (graph != nullptr) stages = time_stages(graph, parts);
  if (!ok()) {
    stages = {.each = {}, .note = cudaGetErrorString(static_cast<cudaError_t>(error_))};
    static_cast<void>(cudaGetLastError());
    error_ = 0;
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  return stages;
}

launch_stages bench_stream::time_stages(void* graph, std::uint32_t parts) {
  constexpr std::uint32_t k_repeats = 5;
  const auto nodes = nodes_of(static_cast<cudaGraph_t>(graph));
  if (nodes.empty() || nodes.size() % parts != 0)
    return {.each = {}, .note = std::to_string(nodes.size()) + " nodes of the graph"};
  bench_graph whole;
  cudaGraphExec_t executable = nullptr;
  take_error(cudaGraphInstantiate(&executable, static_cast<cudaGraph_t>(graph), 0));
  whole.executable_ = executable;
  const std::size_t period = nodes.size() / parts;
  launch_stages stages;
  for (std::size_t s = 0; s < period && ok(); ++s) {
    for (std::size_t i = 0; i < nodes.size() && ok(); ++i)
      take_error(cudaGraphNodeSetEnabled(executable, nodes[i], i % period == s ? 1U : 0U));
    std::vector<double> times;
    for (std::uint32_t i = 0; i < k_repeats; ++i) times.push_back(replay_us(whole) / parts);
    std::string kernel = kernel_name_of(nodes[s]);
    for (std::size_t i = s; i < nodes.size(); i += period)
      if (kernel_name_of(nodes[i]) != kernel) return {.each = {}, .note = "parts that differ"};
    stages.each.push_back({std::move(kernel), spread_of(std::move(times)).median});
  }
  return stages;
}

void bench_stream::replay(const bench_graph& graph) {
  if (ok())
    take_error(
        cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.executable_), stream_of(stream_)));
}

double bench_stream::replay_us(const bench_graph& graph) {
  replay(graph);
  return enqueue_us([&] { replay(graph); });
}

double bench_stream::enqueue_us(const std::function<void()>& enqueue) {
  if (ok()) take_error(cudaEventRecord(event_of(begin_), stream_of(stream_)));
  enqueue();
  if (ok()) take_error(cudaEventRecord(event_of(end_), stream_of(stream_)));
  wait();
  float ms = 0;
  if (ok()) take_error(cudaEventElapsedTime(&ms, event_of(begin_), event_of(end_)));
  return double{1e3} * ms;
}

}  // namespace moetier::kernels::cuda::bench
