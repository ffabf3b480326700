// oneDNN's f32 products as a peer of `moetier bench kernels`: matmul and inner product, weights in
// the layout that it chooses for itself, one thread.
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>
#include <omp.h>

#include "actors/cli/gemm_peer.hpp"

namespace {

using dnnl::memory;

constexpr std::uint32_t k_forms = 2;  // matmul, inner product

struct product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  memory::desc in, plain, packed, out;
  dnnl::primitive primitive;
};

memory::desc rows_of(memory::dim rows, memory::dim columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ab};
}

void prepare_matmul(product& p, memory::dim outputs, memory::dim depth) {
  // [depth, outputs] whose columns lie together: the transpose of what is given.
  p.plain = {{depth, outputs}, memory::data_type::f32, memory::format_tag::ba};
  const memory::desc any({depth, outputs}, memory::data_type::f32, memory::format_tag::any);
  const dnnl::matmul::primitive_desc made({p.in, any, p.out}, p.engine);
  p.packed = made.weights_desc();
  p.primitive = dnnl::matmul(made);
}

void prepare_inner_product(product& p, memory::dim outputs, memory::dim depth) {
  p.plain = rows_of(outputs, depth);
  const memory::desc any({outputs, depth}, memory::data_type::f32, memory::format_tag::any);
  const dnnl::inner_product_forward::primitive_desc made(
      {dnnl::prop_kind::forward_inference, p.in, any, p.out}, p.engine);
  p.packed = made.weights_desc();
  p.primitive = dnnl::inner_product_forward(made);
}

const char* name() {
  static const std::string text = [] {
    const dnnl::version_t* v = dnnl::version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }();
  return text.c_str();
}

void* open(std::uint32_t form, std::uint32_t rows, std::uint32_t outputs, std::uint32_t depth) {
  try {
    omp_set_num_threads(1);
    auto p = std::make_unique<product>();
    p->in = rows_of(rows, depth);
    p->out = rows_of(rows, outputs);
    form == 0 ? prepare_matmul(*p, outputs, depth) : prepare_inner_product(*p, outputs, depth);
    return p.release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::size_t packed_bytes(void* opened) { return static_cast<product*>(opened)->packed.get_size(); }

void pack(void* opened, const float* matrix, void* packed) {
  auto* p = static_cast<product*>(opened);
  memory from(p->plain, p->engine, const_cast<float*>(matrix));
  memory to(p->packed, p->engine, packed);
  dnnl::reorder(from, to).execute(p->stream, from, to);
  p->stream.wait();
}

void run(void* opened, const void* packed, const float* in, float* out) {
  auto* p = static_cast<product*>(opened);
  const memory rows(p->in, p->engine, const_cast<float*>(in));
  const memory weights(p->packed, p->engine, const_cast<void*>(packed));
  const memory results(p->out, p->engine, out);
  p->primitive.execute(
      p->stream, {{DNNL_ARG_SRC, rows}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, results}});
  p->stream.wait();
}

void close(void* opened) { const std::unique_ptr<product> gone(static_cast<product*>(opened)); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const moetier_gemm_peer moetier_bench_gemm_peer;
const moetier_gemm_peer moetier_bench_gemm_peer = {
    .version = moetier::cli::k_gemm_peer_version,
    .name = name,
    .forms = [] { return k_forms; },
    .form_name = [](std::uint32_t form) { return form == 0 ? "matmul" : "inner product"; },
    .open = open,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
    .close = close};
