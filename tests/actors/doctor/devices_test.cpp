// Network devices, GPUs and carriers: every verdict by facts; the network's probe over a small
// sysfs made here, the GPU's over a stand-in for the driver's library.

#include <gtest/gtest.h>

#include "actors/doctor/carriers.hpp"
#include "actors/doctor/gpu.hpp"
#include "actors/doctor/network.hpp"
#include "tests/actors/doctor/fake_root.hpp"

namespace moetier::doctor {
namespace {

finding of(const findings& all, const std::string& check) {
  for (const finding& f : all) {
    if (f.check == check) return f;
  }
  ADD_FAILURE() << "no line " << check;
  return {};
}

void expect(const finding& f, verdict what, const char* seen) {
  EXPECT_EQ(f.what, what) << f.check << ": " << f.seen;
  EXPECT_NE(f.seen.find(seen), std::string::npos) << f.seen;
  EXPECT_EQ(f.remedy.empty(), what == verdict::pass || what == verdict::skip) << f.remedy;
}

nic_facts nic(const char* name, bool up, std::optional<std::uint32_t> mbps) {
  nic_facts n;
  n.name = name;
  n.physical = true;
  n.up = up;
  n.mbps = mbps;
  n.mtu = 9000;
  return n;
}

rdma_facts port(const char* device, std::uint32_t gbps, bool active = true,
                std::optional<int> node = {}) {
  return {.device = device,
          .port = 1,
          .active = active,
          .gbps = gbps,
          .state = active ? "4: ACTIVE" : "1: DOWN",
          .numa_node = node};
}

TEST(doctor_network, a_network_that_carries_rows_must_be_up_and_fast) {
  expect(of(judge_network({}, true), "nics"), verdict::pass, "rows stay on this host");
  expect(of(judge_network({}, false), "nics"), verdict::fail, "no network device is up");
  expect(of(judge_network({{nic("eth0", true, 1000)}, {}}, false), "nics"), verdict::warn,
         "eth0 1 Gb/s");
  expect(of(judge_network({{nic("eth0", true, 25000)}, {}}, false), "nics"), verdict::pass,
         "eth0 25 Gb/s mtu 9000");
  expect(of(judge_network({{nic("eth0", true, {})}, {}}, false), "nics"), verdict::pass,
         "speed not told");
}

TEST(doctor_network, a_link_below_its_like_is_named) {
  expect(of(judge_network({{nic("eth0", true, {})}, {}}, true), "link_rate"), verdict::skip,
         "tells its rate");
  expect(of(judge_network({{nic("a", true, 25000), nic("b", true, 25000)}, {}}, true), "link_rate"),
         verdict::pass, "2 links");
  expect(of(judge_network({{nic("a", true, 25000), nic("b", true, 10000)}, {}}, true), "link_rate"),
         verdict::warn, "b runs at 10 of 25 Gb/s");
  expect(of(judge_network({{nic("a", true, 1000)}, {port("m0", 400), port("m1", 200)}}, true),
            "link_rate"),
         verdict::warn, "m1 port 1 runs at 200 of 400 Gb/s");
}

TEST(doctor_network, bonds_tell_lost_and_idle_members) {
  expect(of(judge_network({}, true), "bonds"), verdict::skip, "no bonded");
  nic_facts bond = nic("bond0", true, 50000);
  bond.bond_mode = "802.3ad";
  bond.bond_members = {"a", "b"};
  bond.bond_members_up = {"a", "b"};
  expect(of(judge_network({{bond}, {}}, true), "bonds"), verdict::pass, "2 of 2");
  bond.bond_members_up = {"a"};
  expect(of(judge_network({{bond}, {}}, true), "bonds"), verdict::warn, "1 of 2");
  bond.bond_members_up = {"a", "b"};
  bond.bond_mode = "active-backup";
  expect(of(judge_network({{bond}, {}}, true), "bonds"), verdict::warn, "one member only");
}

TEST(doctor_network, rdma_ports_must_be_active) {
  expect(of(judge_network({}, true), "rdma"), verdict::skip, "no RDMA device");
  expect(of(judge_network({{}, {port("m0", 400)}}, true), "rdma"), verdict::pass, "m0 port 1");
  expect(of(judge_network({{}, {port("m0", 400), port("m1", 400, false)}}, true), "rdma"),
         verdict::warn, "not active: m1");
  expect(of(judge_network({{}, {port("m1", 400, false)}}, true), "rdma"), verdict::fail,
         "no port is active");
}

TEST(doctor_network, a_gpu_without_a_port_on_its_memory_node_is_named) {
  expect(judge_gpu_nics({}, {}), verdict::skip, "no GPU");
  expect(judge_gpu_nics({}, {0}), verdict::skip, "no RDMA");
  expect(judge_gpu_nics({{}, {port("m0", 400)}}, {std::nullopt}), verdict::skip, "does not tell");
  const network_facts f{{}, {port("m0", 400, true, 0), port("m1", 400, false, 1)}};
  expect(judge_gpu_nics(f, {0, 0}), verdict::pass, "each GPU");
  expect(judge_gpu_nics(f, {0, 1}), verdict::warn, "GPU 1 (node 1)");
}

TEST(doctor_network, the_probe_reads_sysfs) {
  const fake_root root;
  root.put("sys/class/net/lo/operstate", "unknown\n");
  root.put("sys/class/net/eth0/operstate", "up\n");
  root.put("sys/class/net/eth0/speed", "25000\n");
  root.put("sys/class/net/eth0/mtu", "9000\n");
  root.put("sys/class/net/eth0/device/numa_node", "1\n");
  root.put("sys/class/net/eth1/operstate", "down\n");
  root.put("sys/class/net/eth1/speed", "-1\n");
  root.put("sys/class/net/bond0/operstate", "up\n");
  root.put("sys/class/net/bond0/bonding/mode", "active-backup 1\n");
  root.put("sys/class/net/bond0/bonding/slaves", "eth0 eth1\n");
  root.put("sys/class/net/bonding_masters", "bond0\n");  // a file among the devices
  root.put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  root.put("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  root.put("sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
  const network_facts f = probe_network(root.path());
  ASSERT_EQ(f.nics.size(), 3U);
  EXPECT_EQ(f.nics[0].name, "bond0");
  EXPECT_EQ(f.nics[0].bond_mode, "active-backup");
  EXPECT_EQ(f.nics[0].bond_members.size(), 2U);
  EXPECT_EQ(f.nics[0].bond_members_up, std::vector<std::string>{"eth0"});
  EXPECT_TRUE(f.nics[1].up);
  EXPECT_TRUE(f.nics[1].physical);
  EXPECT_EQ(f.nics[1].mbps, 25000U);
  EXPECT_EQ(f.nics[1].numa_node, 1);
  EXPECT_FALSE(f.nics[2].up);
  EXPECT_FALSE(f.nics[2].mbps);
  ASSERT_EQ(f.rdma.size(), 1U);
  EXPECT_TRUE(f.rdma[0].active);
  EXPECT_EQ(f.rdma[0].gbps, 400U);
  EXPECT_EQ(f.rdma[0].numa_node, 1);
  EXPECT_TRUE(probe_network("/nowhere").nics.empty());
}

gpu_facts gpus(std::size_t count) {
  gpu_facts f{.library = true, .init_error = 0, .driver = 13000, .devices = {}};
  for (std::size_t i = 0; i < count; ++i) {
    f.devices.push_back({.name = "NVIDIA H200",
                         .major = 9,
                         .minor = 0,
                         .memory_bytes = std::uint64_t{140} << 30,
                         .pci = {},
                         .numa_node = {},
                         .reaches = std::vector<bool>(count, true)});
  }
  return f;
}

TEST(doctor_gpu, without_a_wish_a_missing_gpu_is_no_fault) {
  expect(of(judge_gpus({}, {}), "gpu"), verdict::skip, "libcuda.so.1");
  expect(of(judge_gpus({}, {}), "gpu_driver"), verdict::skip, "libcuda.so.1");
  expect(of(judge_gpus({}, {}), "gpu_peers"), verdict::skip, "fewer than two");
  expect(of(judge_gpus(gpus(1), {}), "gpu"), verdict::pass, "NVIDIA H200 (sm_90, 140.0 GiB)");
}

TEST(doctor_gpu, with_a_wish_each_lack_is_named) {
  const gpu_wish wish{.wanted = true, .ordinal = -1, .built = true, .toolkit_major = 13};
  expect(of(judge_gpus(gpus(1), wish), "gpu"), verdict::pass, "H200");
  expect(of(judge_gpus({}, wish), "gpu"), verdict::fail, "does not load");
  expect(
      of(judge_gpus({.library = true, .init_error = 100, .driver = 0, .devices = {}}, wish), "gpu"),
      verdict::fail, "error 100");
  expect(of(judge_gpus(gpus(0), wish), "gpu"), verdict::fail, "sees no device");
  expect(of(judge_gpus(gpus(1), {.wanted = true, .ordinal = 0, .built = false}), "gpu"),
         verdict::fail, "this build has none");
  expect(of(judge_gpus(gpus(2), {.wanted = true, .ordinal = 2, .built = true}), "gpu"),
         verdict::fail, "number 2; there are 2");
  gpu_facts old = gpus(1);
  old.devices[0].major = 8;
  expect(of(judge_gpus(old, wish), "gpu"), verdict::warn, "sm_80");
  old.driver = 12040;
  expect(of(judge_gpus(old, wish), "gpu_driver"), verdict::fail, "12.4; this build needs 13");
  expect(of(judge_gpus(old, {.built = true, .toolkit_major = 13}), "gpu_driver"), verdict::warn,
         "12.4");
  expect(of(judge_gpus(gpus(1), wish), "gpu_driver"), verdict::pass, "13.0");
}

TEST(doctor_gpu, gpus_that_do_not_reach_each_other_are_named) {
  gpu_facts f = gpus(2);
  expect(of(judge_gpus(f, {}), "gpu_peers"), verdict::pass, "2 GPUs");
  f.devices[1].reaches[0] = false;
  expect(of(judge_gpus(f, {}), "gpu_peers"), verdict::warn, "1 to 0");
}

TEST(doctor_gpu, the_probe_reads_what_a_driver_says) {
  const fake_root root;
  root.put("sys/bus/pci/devices/0000:1b:00.0/numa_node", "1\n");
  EXPECT_FALSE(probe_gpus(root.path(), "libmoetier_no_such_driver.so").library);
  const gpu_facts f = probe_gpus(root.path(), MOETIER_FAKE_DRIVER);
  ASSERT_TRUE(f.library);
  EXPECT_EQ(f.driver, 13010);
  ASSERT_EQ(f.devices.size(), 2U);
  EXPECT_EQ(f.devices[0].name, "Fake 0");
  EXPECT_EQ(f.devices[1].major, 9);
  EXPECT_EQ(f.devices[1].minor, 0);
  EXPECT_EQ(f.devices[1].memory_bytes, std::uint64_t{3} << 30);
  EXPECT_EQ(f.devices[0].pci, "0000:1b:00.0");
  EXPECT_EQ(f.devices[0].numa_node, 1);
  EXPECT_FALSE(f.devices[1].numa_node);
  EXPECT_EQ(f.devices[0].reaches, (std::vector<bool>{true, true}));
  EXPECT_EQ(f.devices[1].reaches, (std::vector<bool>{false, true}));
}

TEST(doctor_carrier, a_fall_back_to_tcp_is_a_failure_unless_it_was_asked_for) {
  const carrier_facts good = read_description(
      "UCX 1.13.1; lanes inside this host: sysv/memory, cma/memory; variables: UCX_LOG_LEVEL=x");
  EXPECT_EQ(good.version, "1.13.1");
  EXPECT_EQ(good.lanes, (std::vector<std::string>{"sysv/memory", "cma/memory"}));
  expect(of(judge_carrier(good, false), "carrier"), verdict::pass, "1.13.1");
  expect(of(judge_carrier(good, false), "carrier_lanes"), verdict::pass, "sysv/memory");
  expect(of(judge_carrier(good, true), "carrier_memory"), verdict::pass, "pinned");
  const carrier_facts tcp =
      read_description("UCX 1.13.1; lanes inside this host: tcp/lo; variables: ");
  expect(of(judge_carrier(tcp, false), "carrier_lanes"), verdict::fail, "silent fall-back");
  const carrier_facts asked =
      read_description("UCX 1.13.1; lanes inside this host: tcp/lo; variables: UCX_TLS=tcp");
  expect(of(judge_carrier(asked, false), "carrier_lanes"), verdict::warn, "tcp/lo");
  const carrier_facts memory = read_description("memory shared by processes of this host");
  expect(of(judge_carrier(memory, false), "carrier"), verdict::pass, "shared_memory");
  expect(of(judge_carrier(memory, false), "carrier_lanes"), verdict::pass, "memory shared");
  const carrier_facts none{.refusal = "carrier ucx cannot run: x"};
  expect(of(judge_carrier(none, false), "carrier"), verdict::fail, "cannot run");
  expect(of(judge_carrier(none, false), "carrier_lanes"), verdict::skip, "does not open");
}

TEST(doctor_carrier, nccl_is_named_by_version_or_absent) {
  expect(judge_nccl(22703), verdict::pass, "2.27.3");
  expect(judge_nccl({}), verdict::skip, "not here");
}

}  // namespace
}  // namespace moetier::doctor
