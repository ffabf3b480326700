// The module's one symbol: a carrier over UCX, opened after a message has crossed between two
// workers of this process on the lanes that members will use.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include "transport/carrier_module.hpp"
#include "transport/exchange/two_sided_capabilities.hpp"
#include "transport/exchange/two_sided_source.hpp"
#include "transport/exchange/two_sided_worker.hpp"
#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_link.hpp"

extern char** environ;

namespace moetier::transport {
namespace {

constexpr auto k_probe_limit = std::chrono::seconds(2);

// The lanes of an endpoint by name, from the library's own print-out: "lane[0]:  2:sysv/memory
// ...".
std::vector<std::string> lanes_of(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);

  std::vector<std::string> lanes;
  std::istringstream lines(std::string(text, bytes));
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("lane[");
    if (at == std::string::npos) continue;
    const auto colon = line.find(':', line.find(']', at) + 2);  // after the resource's number
    if (colon == std::string::npos) continue;
    std::istringstream rest(line.substr(colon + 1));
    std::string lane;
    rest >> lane;
    if (std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) lanes.push_back(lane);
  }
  return lanes;
}

ucs_status_t on_probe(void* arrived, const void*, std::size_t, void*, std::size_t,
                      const ucp_am_recv_param_t*) {
  *static_cast<bool*>(arrived) = true;
  return UCS_OK;
}

void on_probe_error(void*, ucp_ep_h, ucs_status_t) {}

// Sends one message between two fresh workers; the lanes that it went by.
expected<std::vector<std::string>> probe_lanes(const carrier_options& options) {
  auto from = ucx_context::make(options, UCS_THREAD_MODE_SINGLE);
  if (!from) return unexpected_error(from.error());
  auto to = ucx_context::make(options, UCS_THREAD_MODE_SINGLE);
  if (!to) return unexpected_error(to.error());

  bool arrived = false;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = k_ucx_probe_id;
  handler.cb = on_probe;
  handler.arg = &arrived;
  if (const auto s = ucp_worker_set_am_recv_handler((*to)->worker(), &handler); s != UCS_OK)
    return ucx_failure("ucp_worker_set_am_recv_handler", s);

  ucp_ep_params_t param{};
  param.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                     UCP_EP_PARAM_FIELD_ERR_HANDLER;
  param.address = reinterpret_cast<const ucp_address_t*>((*to)->address().data());
  param.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  param.err_handler.cb = on_probe_error;
  ucp_ep_h endpoint = nullptr;
  if (const auto s = ucp_ep_create((*from)->worker(), &param, &endpoint); s != UCS_OK)
    return ucx_failure("ucp_ep_create", s);

  const wire_image header = encode_header(wire_header{.kind = wire_kind::probe});
  const ucp_request_param_t plain{};
  const ucs_status_ptr_t sending =
      ucp_am_send_nbx(endpoint, k_ucx_probe_id, header.data(), header.size(), nullptr, 0, &plain);
  const auto deadline = std::chrono::steady_clock::now() + k_probe_limit;
  while (!arrived && !UCS_PTR_IS_ERR(sending) && std::chrono::steady_clock::now() < deadline) {
    ucp_worker_progress((*from)->worker());
    ucp_worker_progress((*to)->worker());
  }
  if (UCS_PTR_IS_PTR(sending)) ucp_request_free(sending);
  std::vector<std::string> lanes = lanes_of(endpoint);
  ucp_request_param_t force{};
  force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  force.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint, &force);
  if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
  if (!arrived)
    return fail(reason::carrier_unavailable, "ucx",
                "a first message between two members of this process did not arrive");
  return lanes;
}

std::vector<std::string> ucx_variables() {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::string_view(*entry).starts_with("UCX_")) found.emplace_back(*entry);
  return found;
}

class ucx_carrier final : public Communication {
 public:
  ucx_carrier(const carrier_options& options, const std::vector<std::string>& lanes)
      : options_(options) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned patch = 0;
    ucp_get_version(&major, &minor, &patch);
    description_ =
        fmt::format("UCX {}.{}.{}; lanes inside this host: {}; variables: {}", major, minor, patch,
                    fmt::join(lanes, ", "), fmt::join(ucx_variables(), " "));
  }

  std::string_view name() const noexcept override { return "ucx.two_sided"; }

  comm_capabilities capabilities() const noexcept override {
    comm_capabilities bits = k_two_sided_capabilities;
    bits.cross_host = true;
    return bits;
  }

  expected<std::unique_ptr<SourceHalf>> make_source(const source_options& options) override {
    auto link = ucx_link::make(options_, member_role::source);
    if (!link) return unexpected_error(link.error());
    return two_sided_source::make(options, options_.checksum_payload, std::move(*link));
  }

  expected<std::unique_ptr<WorkerHalf>> make_worker(const worker_options& options) override {
    auto link = ucx_link::make(options_, member_role::worker);
    if (!link) return unexpected_error(link.error());
    return two_sided_worker::make(options, options_.checksum_payload, std::move(*link));
  }

  std::string describe() const override { return description_; }

 private:
  carrier_options options_;
  std::string description_;
};

}  // namespace
}  // namespace moetier::transport

extern "C" __attribute__((visibility("default"))) moetier::transport::Communication*
moetier_carrier_module_open(std::uint32_t version,
                            const moetier::transport::carrier_options& options, std::string& why) {
  using namespace moetier::transport;
  if (version != k_carrier_module_version) {
    why = make_error(moetier::reason::carrier_unavailable, "ucx",
                     "the module was built from other sources")
              .text;
    return nullptr;
  }
  const auto lanes = probe_lanes(options);
  if (!lanes) {
    why = lanes.error().text;
    return nullptr;
  }
  return std::make_unique<ucx_carrier>(options, *lanes).release();
}
