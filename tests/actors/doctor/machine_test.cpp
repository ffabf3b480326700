// What the machine is and grants: processor, limits, shared memory, other processes' memory,
// identity. Every verdict is provoked by facts; the probes read small trees made here, and this
// machine.

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "actors/doctor/cross_memory.hpp"
#include "actors/doctor/limits.hpp"
#include "actors/doctor/node_identity.hpp"
#include "actors/doctor/processor.hpp"
#include "tests/actors/doctor/fake_root.hpp"

namespace moetier::doctor {
namespace {

void expect(const finding& f, verdict what, const char* seen) {
  EXPECT_EQ(f.what, what) << f.check << ": " << f.seen;
  EXPECT_NE(f.seen.find(seen), std::string::npos) << f.seen;
  EXPECT_EQ(f.remedy.empty(), what == verdict::pass || what == verdict::skip) << f.remedy;
}

TEST(doctor_processor, a_processor_without_one_of_three_features_computes_slowly) {
  expect(judge_features({.name = "X", .avx2 = true, .fma = true, .f16c = true}), verdict::pass,
         "X: AVX2, FMA, F16C");
  expect(judge_features({.name = {}, .avx2 = true, .fma = true, .f16c = true, .avx512f = true}),
         verdict::pass, "AVX-512F");
  expect(judge_features({.name = {}, .avx2 = false, .fma = true, .f16c = true}), verdict::warn,
         "lacks AVX2");
  expect(judge_features({.name = {}, .avx2 = true, .fma = false, .f16c = false}), verdict::warn,
         "lacks FMA, F16C");
}

TEST(doctor_processor, threads_need_a_processors_time_each) {
  expect(judge_share({.processors = 4, .quota = {}}, 4), verdict::pass, "quota none");
  expect(judge_share({.processors = 4, .quota = {}}, 5), verdict::warn, "4 processors");
  expect(judge_share({.processors = 4, .quota = 1.5}, 2), verdict::warn, "quota 1.50");
  expect(judge_share({.processors = 4, .quota = 2.0}, 2), verdict::pass, "quota 2.00");
  expect(judge_share({.processors = 4, .quota = 2.0, .periods = 1000, .throttled = 10}, 2),
         verdict::warn, "throttled in 10 of 1000");
  expect(judge_share({.processors = 4, .quota = 2.0, .periods = 1000, .throttled = 9}, 2),
         verdict::pass, "quota");
}

TEST(doctor_processor, the_tightest_quota_of_either_version_counts) {
  const fake_root two;
  two.put("proc/self/cgroup", "0::/a/b\n");
  two.put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  two.put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  two.put("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 40\nnr_throttled 3\n");
  const share_facts v2 = probe_share(two.path());
  ASSERT_TRUE(v2.quota);
  EXPECT_DOUBLE_EQ(*v2.quota, 1.5);
  EXPECT_EQ(v2.periods, 40U);
  EXPECT_EQ(v2.throttled, 3U);
  EXPECT_GE(v2.processors, 1U);

  const fake_root one;
  one.put("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n");
  one.put("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
  one.put("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  ASSERT_TRUE(probe_share(one.path()).quota);
  EXPECT_DOUBLE_EQ(*probe_share(one.path()).quota, 0.5);
  EXPECT_FALSE(probe_share(fake_root().path()).quota);
}

TEST(doctor_limits, locked_memory_matters_where_something_registers) {
  expect(judge_memlock({.limit_bytes = k_unlimited, .registers = true}), verdict::pass,
         "unlimited");
  expect(judge_memlock({.limit_bytes = 8 << 20, .may_exceed = true, .registers = true}),
         verdict::pass, "CAP_IPC_LOCK");
  expect(judge_memlock({.limit_bytes = 8 << 20}), verdict::pass, "8.0 MiB");
  expect(judge_memlock({.limit_bytes = 65536, .registers = true}), verdict::fail, "64.0 KiB");
}

TEST(doctor_limits, few_open_files_warn_and_too_few_fail) {
  expect(judge_open_files(k_unlimited), verdict::pass, "unlimited");
  expect(judge_open_files(1024), verdict::pass, "1024");
  expect(judge_open_files(1023), verdict::warn, "1023");
  expect(judge_open_files(255), verdict::fail, "255");
}

TEST(doctor_limits, shared_memory_must_be_there_large_and_open) {
  shm_facts f{.there = true,
              .writable = true,
              .mode = 01777,
              .free_bytes = std::uint64_t{1} << 30,
              .size_bytes = std::uint64_t{2} << 30};
  expect(judge_shm(f, 4), verdict::pass, "1.0 GiB free of 2.0 GiB");
  expect(judge_shm(f, 64), verdict::fail, "64 processes");
  f.mode = 0755;
  expect(judge_shm(f, 4), verdict::warn, "mode 0755");
  f.writable = false;
  expect(judge_shm(f, 4), verdict::fail, "not writable");
  f.there = false;
  expect(judge_shm(f, 4), verdict::fail, "is not there");
  EXPECT_FALSE(probe_shm("/nowhere/at/all").there);
  EXPECT_TRUE(probe_shm("/tmp").writable);
}

TEST(doctor_cross_memory, each_refusal_names_what_refuses) {
  expect(judge_cross_memory({}), verdict::pass, "no Yama");
  expect(judge_cross_memory({.ptrace_scope = 1, .read_error = EPERM}), verdict::warn,
         "ptrace_scope 1");
  EXPECT_NE(judge_cross_memory({.ptrace_scope = 1, .read_error = EPERM}).remedy.find("yama"),
            std::string::npos);
  EXPECT_NE(judge_cross_memory({.ptrace_scope = 0, .read_error = ENOSYS}).remedy.find("seccomp"),
            std::string::npos);
  expect(judge_proc_links({}), verdict::pass, "opens");
  expect(judge_proc_links({.ptrace_scope = {}, .read_error = 0, .link_error = EACCES}),
         verdict::warn, "Permission denied");
}

TEST(doctor_cross_memory, the_probe_answers_on_this_machine) {
  const cross_memory_facts f = probe_cross_memory();
  EXPECT_GE(f.read_error, 0);
  EXPECT_EQ(f.link_error, 0);  // a file of our own
}

TEST(doctor_identity, a_container_without_a_line_of_its_own_may_have_a_twin) {
  expect(judge_identity({.root_uuid = "1-2", .hardware_addresses = 1, .own_pid_namespace = true}),
         verdict::pass, "root UUID 1-2");
  expect(judge_identity({.root_uuid = {}, .hardware_addresses = 1}), verdict::pass, "no root UUID");
  expect(judge_identity({.root_uuid = {}, .hardware_addresses = 1, .own_pid_namespace = true}),
         verdict::warn, "one name");
  expect(judge_identity({}), verdict::fail, "process id alone");
}

TEST(doctor_identity, the_probe_reads_fstab_addresses_and_the_first_process) {
  const fake_root root;
  root.put("etc/fstab", "# UUID=no / ext4\nUUID=of-data /data ext4\nUUID=of-root / ext4 x 0 1\n");
  root.put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
  root.put("sys/class/net/eth0/address", "02:00:00:00:00:01\n");
  root.put("proc/1/comm", "moetier\n");
  const identity_facts f = probe_identity(root.path());
  EXPECT_EQ(f.root_uuid, "of-root");
  EXPECT_EQ(f.hardware_addresses, 1U);
  EXPECT_TRUE(f.own_pid_namespace);
  root.put("proc/1/comm", "systemd\n");
  EXPECT_FALSE(probe_identity(root.path()).own_pid_namespace);
}

}  // namespace
}  // namespace moetier::doctor
