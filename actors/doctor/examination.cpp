#include "actors/doctor/examination.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "actors/build_info.hpp"
#include "actors/config/device_name.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/config/key_table.hpp"
#include "actors/doctor/carriers.hpp"
#include "actors/doctor/certificates.hpp"
#include "actors/doctor/cross_memory.hpp"
#include "actors/doctor/gpu.hpp"
#include "actors/doctor/limits.hpp"
#include "actors/doctor/model_files.hpp"
#include "actors/doctor/network.hpp"
#include "actors/doctor/node_identity.hpp"
#include "actors/doctor/peers.hpp"
#include "actors/doctor/ports.hpp"
#include "actors/doctor/processor.hpp"
#include "actors/doctor/state_directory.hpp"

namespace moetier::doctor {
namespace {

bool is_given(const config::loaded& l, std::string_view key) {
  const auto row = config::find_key(key) - config::key_table().data();
  return l.origins[static_cast<std::size_t>(row)] != "default";
}

gpu_wish gpu_wish_of(const config::settings& s) {
  gpu_wish wish;
  if (const auto device = config::parse_device(s.worker.device)) {
    wish.wanted = device->cuda;
    wish.ordinal = device->ordinal;
  }
  const std::string toolkit(this_build().cuda);
  wish.built = toolkit != "none";
  wish.toolkit_major = static_cast<int>(std::strtol(toolkit.c_str(), nullptr, 10));
  return wish;
}

class examination final {
 public:
  examination(const config::loaded& given, const examination_wish& wish)
      : given_(given), s_(given.values), wish_(wish), root_(wish.root) {}

  findings run() {
    const cross_memory_facts memory = probe_cross_memory();  // forks: before libraries have threads
    const gpu_wish wish = gpu_wish_of(s_);
    const gpu_facts gpus = probe_gpus(root_);
    const network_facts network = probe_network(root_);
    const bool loopback = config::is_loopback(s_.transport.listen);

    add(judge_features(probe_features()));
    add(judge_share(probe_share(root_), s_.coordinator.workers * s_.worker.threads));
    add(judge_gpus(gpus, wish));
    add(judge_network(network, loopback));
    std::vector<std::optional<int>> nodes;
    for (const gpu_device& g : gpus.devices) nodes.push_back(g.numa_node);
    add(judge_gpu_nics(network, nodes));
    add_limits(wish.wanted || (!loopback && !network.rdma.empty()));
    add(judge_cross_memory(memory));
    add(judge_proc_links(memory));
    add(judge_carrier(probe_carrier({.name = config::carrier_of(s_),
                                     .listen = s_.transport.listen,
                                     .allow_tcp = s_.transport.allow_tcp != "off"}),
                      wish.wanted));
    add(judge_nccl(probe_nccl()));
    add(judge_identity(probe_identity(root_)));
    add_ports();
    add_certificates("rpc", s_.security.rpc);
    add_certificates("control", s_.security.control);
    const model_facts model = probe_model(s_.model.path);
    add(judge_model(model));
    add(judge_bill(probe_bill(model, s_, probe_available_memory(root_))));
    add(judge_state(
        probe_state(s_.coordinator.state_dir, is_given(given_, "coordinator.state_dir"))));
    for (const config::endpoint& peer : wish_.peers) {
      add(judge_peer(probe_peer(peer, carrier_wish_of(s_), wish_.peer_limit)));
    }
    return std::move(all_);
  }

 private:
  void add(finding f) { all_.push_back(std::move(f)); }
  void add(findings more) { std::move(more.begin(), more.end(), std::back_inserter(all_)); }

  void add_limits(bool registers) {
    memlock_facts locked = probe_memlock();
    locked.registers = registers;
    add(judge_memlock(locked));
    add(judge_open_files(probe_open_files()));
    // The workers, the gateway, and one client that brings its own source half.
    add(judge_shm(probe_shm(), s_.coordinator.workers + 2));
  }

  void add_certificates(const char* zone, const config::link_files& files) {
    add(judge_certificates(probe_certificates(zone, {files.cert, files.key, files.ca})));
  }

  void add_ports() {
    for (const auto& [key, text] : {std::pair<const char*, const std::string&>(
                                        "coordinator.rpc_listen", s_.coordinator.rpc_listen),
                                    {"coordinator.control_listen", s_.coordinator.control_listen},
                                    {"http.listen", s_.http.listen}}) {
      if (const auto at = config::parse_endpoint(text)) add(judge_port(probe_port(key, *at)));
    }
  }

  const config::loaded& given_;
  const config::settings& s_;
  const examination_wish& wish_;
  const std::filesystem::path& root_;
  findings all_;
};

}  // namespace

// Another machine's: memory ends at this one.
carrier_wish carrier_wish_of(const config::settings& s) {
  return {.name = s.transport.carrier == "auto" ? "ucx" : s.transport.carrier,
          .listen = s.transport.listen,
          .allow_tcp = s.transport.allow_tcp != "off"};
}

findings examine(const config::loaded& given, const examination_wish& wish) {
  return examination(given, wish).run();
}

}  // namespace moetier::doctor
