// What a tier would open: ports, certificates, the model's files and their bill, the state
// directory. Every verdict by facts; the probes on sockets, certificates and folders made here.

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include "actors/doctor/certificates.hpp"
#include "actors/doctor/model_files.hpp"
#include "actors/doctor/ports.hpp"
#include "actors/doctor/state_directory.hpp"
#include "tests/actors/doctor/fake_root.hpp"

namespace moetier::doctor {
namespace {

void expect(const finding& f, verdict what, const char* seen) {
  EXPECT_EQ(f.what, what) << f.check << ": " << f.seen;
  EXPECT_NE(f.seen.find(seen), std::string::npos) << f.seen;
  EXPECT_EQ(f.remedy.empty(), what == verdict::pass || what == verdict::skip) << f.remedy;
}

TEST(doctor_ports, each_errno_has_its_remedy) {
  port_facts f{"http.listen", "127.0.0.1:7402", false, 0};
  expect(judge_port(f), verdict::pass, "is free");
  f.bind_error = EADDRINUSE;
  expect(judge_port(f), verdict::fail, "in use");
  f.bind_error = EACCES;
  expect(judge_port(f), verdict::fail, "Permission denied");
  f.bind_error = EADDRNOTAVAIL;
  expect(judge_port(f), verdict::fail, "127.0.0.1:7402");
  f.free_one = true;
  expect(judge_port(f), verdict::pass, "any free port");
}

TEST(doctor_ports, the_probe_meets_a_busy_port_and_a_foreign_address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), bytes), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  const std::uint16_t port = ntohs(at.sin_port);
  EXPECT_EQ(probe_port("x", {"127.0.0.1", port}).bind_error, EADDRINUSE);
  ::close(fd);
  EXPECT_EQ(probe_port("x", {"127.0.0.1", port}).bind_error, 0);
  EXPECT_EQ(probe_port("x", {"192.0.2.1", port}).bind_error, EADDRNOTAVAIL);
  EXPECT_TRUE(probe_port("x", {"127.0.0.1", 0}).free_one);
}

certificate_facts good_certificate() {
  return {.zone = "rpc",
          .paths = {"a.pem", "a.key", "ca.pem"},
          .problem = {},
          .common_name = "tier",
          .begins = 1000,
          .ends = 1000 + 100 * 86400,
          .now = 1000 + 86400,
          .key_matches = true,
          .key_mode = 0600,
          .chain_problem = {}};
}

TEST(doctor_certificates, each_fault_is_a_line_of_its_own) {
  certificate_facts f = good_certificate();
  auto all = judge_certificates(f);
  expect(all[0], verdict::pass, "tier, valid for 99 days");
  expect(all[1], verdict::pass, "mode 0600");
  expect(all[2], verdict::pass, "signed by ca.pem");
  f.now = f.ends - 10 * 86400;
  expect(judge_certificates(f)[0], verdict::warn, "valid for 10 days");
  f.now = f.ends + 86400;
  expect(judge_certificates(f)[0], verdict::fail, "expired 1 days ago");
  f.now = f.begins - 3600;
  expect(judge_certificates(f)[0], verdict::fail, "valid in 2 hours only");
  f = good_certificate();
  f.common_name.clear();
  expect(judge_certificates(f)[0], verdict::fail, "without a common name");
  f = good_certificate();
  f.key_mode = 0644;
  expect(judge_certificates(f)[1], verdict::fail, "mode 0644");
  f.key_matches = false;
  expect(judge_certificates(f)[1], verdict::fail, "another certificate's key");
  f.chain_problem = "the zone's authority did not issue it";
  expect(judge_certificates(f)[2], verdict::fail, "not of ca.pem: the zone's authority did not");
  f = good_certificate();
  f.problem = "a.pem cannot be read";
  all = judge_certificates(f);
  expect(all[0], verdict::fail, "a.pem cannot be read");
  expect(all[1], verdict::skip, "not all three files can be read");
  f.paths.key.clear();
  expect(judge_certificates(f)[0], verdict::fail, "key no");
  f.paths = {};
  expect(judge_certificates(f)[2], verdict::skip, "no certificate is set");
}

using pkey = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using x509 = std::unique_ptr<X509, void (*)(X509*)>;

pkey make_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

x509 sign(const char* name, EVP_PKEY* key, EVP_PKEY* by, const char* issuer, long from,
          long until) {
  x509 c(X509_new(), &X509_free);
  ASN1_INTEGER_set(X509_get_serialNumber(c.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(c.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(c.get()), until);
  X509_set_pubkey(c.get(), key);
  const auto text = [](const char* t) { return reinterpret_cast<const unsigned char*>(t); };
  X509_NAME_add_entry_by_txt(X509_get_subject_name(c.get()), "CN", MBSTRING_ASC, text(name), -1, -1,
                             0);
  X509_NAME* const from_whom = X509_NAME_new();
  X509_NAME_add_entry_by_txt(from_whom, "CN", MBSTRING_ASC, text(issuer), -1, -1, 0);
  X509_set_issuer_name(c.get(), from_whom);
  X509_NAME_free(from_whom);
  X509_sign(c.get(), by, EVP_sha256());
  return c;
}

void save(const std::filesystem::path& at, const std::function<int(std::FILE*)>& write) {
  std::FILE* const out = std::fopen(at.c_str(), "w");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(write(out), 1);
  std::fclose(out);
  ::chmod(at.c_str(), 0600);
}

TEST(doctor_certificates, the_probe_reads_pairs_authorities_and_times) {
  const fake_root folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  const pkey authority = make_key();
  const pkey own = make_key();
  const pkey other = make_key();
  const auto save_certificate = [&](const char* file, const x509& c) {
    save(at(file), [&](std::FILE* out) { return PEM_write_X509(out, c.get()); });
  };
  const auto save_key = [&](const char* file, const pkey& k) {
    save(at(file), [&](std::FILE* out) {
      return PEM_write_PrivateKey(out, k.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  };
  constexpr long k_day = 86400;
  save_certificate("ca", sign("ca", authority.get(), authority.get(), "ca", 0, 900 * k_day));
  save_certificate("other-ca", sign("ca2", other.get(), other.get(), "ca2", 0, 900 * k_day));
  save_certificate("good", sign("tier", own.get(), authority.get(), "ca", 0, 90 * k_day - 60));
  save_certificate("old", sign("tier", own.get(), authority.get(), "ca", -9 * k_day, -k_day));
  const x509 short_ca = sign("ca", authority.get(), authority.get(), "ca", 0, 10 * k_day - 60);
  const x509 old_ca = sign("ca", authority.get(), authority.get(), "ca", -9 * k_day, -k_day);
  const x509 new_ca = sign("ca", authority.get(), authority.get(), "ca", 0, 900 * k_day);
  save_certificate("short-ca", short_ca);
  save_certificate("old-ca", old_ca);
  save(at("both-cas"), [&](std::FILE* out) {
    return PEM_write_X509(out, old_ca.get()) & PEM_write_X509(out, new_ca.get());
  });
  save_key("key", own);
  save_key("other-key", other);
  folder.put("noise", "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n");

  auto all = judge_certificates(probe_certificates("rpc", {at("good"), at("key"), at("ca")}));
  expect(all[0], verdict::pass, "common name tier, valid for ");
  expect(all[1], verdict::pass, "0600");
  expect(all[2], verdict::pass, "signed");
  all = judge_certificates(probe_certificates("rpc", {at("old"), at("other-key"), at("other-ca")}));
  expect(all[0], verdict::fail, "expired");
  expect(all[1], verdict::fail, "another certificate's key");
  expect(all[2], verdict::fail, "the zone's authority did not issue it");
  all = judge_certificates(probe_certificates("rpc", {at("good"), at("key"), at("short-ca")}));
  expect(all[0], verdict::warn, "valid for 9 days");
  all = judge_certificates(probe_certificates("rpc", {at("good"), at("key"), at("old-ca")}));
  expect(all[0], verdict::fail, "expired 1 days ago");
  expect(all[2], verdict::pass, "signed");
  all = judge_certificates(probe_certificates("rpc", {at("good"), at("key"), at("both-cas")}));
  expect(all[0], verdict::pass, "valid for 89 days");
  ::chmod(at("key").c_str(), 0640);
  all = judge_certificates(probe_certificates("rpc", {at("good"), at("key"), at("ca")}));
  expect(all[0], verdict::pass, "common name tier");
  expect(all[1], verdict::fail, "mode 0640");

  const auto problem = [&](const char* certificate, const char* key, const char* ca) {
    return probe_certificates("rpc", {at(certificate), at(key), at(ca)}).problem;
  };
  const std::string named = "certificate file ";
  EXPECT_EQ(problem("noise", "key", "ca"),
            named + at("noise") + ": it is no PEM file of certificates");
  EXPECT_EQ(problem("good", "good", "ca"),
            named + at("good") + ": it is no PEM file of a private key");
  EXPECT_EQ(problem("good", "key", "gone"), named + at("gone") + ": there is no such file");
}

TEST(doctor_model, a_start_that_would_refuse_is_a_failure) {
  const std::string model = std::string(MOETIER_SOURCE_DIR) + "/deploy/demo/model";
  expect(judge_model(probe_model("")), verdict::skip, "none is given");
  expect(judge_model(probe_model(model)), verdict::pass, "qwen3_moe: 32 experts");
  expect(judge_model(probe_model("/nowhere")), verdict::fail, "/nowhere/config.json");
  const fake_root cut;
  std::filesystem::copy(model + "/config.json", cut.path() / "config.json");
  std::filesystem::copy(model + "/model.safetensors", cut.path() / "model.safetensors");
  std::filesystem::resize_file(cut.path() / "model.safetensors", 1 << 20);
  expect(judge_model(probe_model(cut.path().string())), verdict::fail, "model.safetensors");
}

TEST(doctor_model, the_bill_of_all_workers_here_is_compared_with_what_is_free) {
  const std::string model = std::string(MOETIER_SOURCE_DIR) + "/deploy/demo/model";
  config::settings s;
  s.coordinator.workers = 2;
  const bill_facts f = probe_bill(probe_model(model), s, std::uint64_t{1} << 40);
  EXPECT_EQ(f.unknown, "");
  EXPECT_EQ(f.slots, 16U);
  EXPECT_GT(f.worker_bytes, std::uint64_t{1} << 20);
  expect(judge_bill(f), verdict::pass, "2 workers of 16 slots");
  bill_facts tight = f;
  tight.available_bytes = 2 * f.worker_bytes;
  expect(judge_bill(tight), verdict::warn, "less than 512 MiB");
  tight.available_bytes -= 1;
  expect(judge_bill(tight), verdict::fail, "2 workers");
  bill_facts limited = f;
  limited.allowed_bytes = 1 << 20;
  expect(judge_bill(limited), verdict::fail, "worker.memory allows 1.0 MiB");
  expect(judge_bill(probe_bill(probe_model(""), s, 1)), verdict::skip, "no model");
  s.worker.device = "cuda";
  expect(judge_bill(probe_bill(probe_model(model), s, 1)), verdict::skip, "GPU worker");
}

TEST(doctor_model, more_slots_and_a_narrow_format_change_the_bill) {
  const std::string model = std::string(MOETIER_SOURCE_DIR) + "/deploy/demo/model";
  config::settings s;
  const auto bytes = [&] { return probe_bill(probe_model(model), s, 0).worker_bytes; };
  const std::uint64_t plain = bytes();
  s.worker.slots = 64;
  EXPECT_GT(bytes(), plain * 3 / 2);
  s.worker.slots = 0;
  s.model.quantise = "fp8_tensor";
  EXPECT_LT(bytes(), plain * 3 / 4);
}

TEST(doctor_model, available_memory_is_the_least_of_machine_and_groups) {
  const fake_root root;
  root.put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4096 kB\n");
  EXPECT_EQ(probe_available_memory(root.path()), 4096U * 1024);
  root.put("proc/self/cgroup", "0::/a\n");
  root.put("sys/fs/cgroup/a/memory.max", "max\n");
  root.put("sys/fs/cgroup/a/memory.current", "1\n");
  EXPECT_EQ(probe_available_memory(root.path()), 4096U * 1024);
  root.put("sys/fs/cgroup/a/memory.max", "3000000\n");
  root.put("sys/fs/cgroup/a/memory.current", "1000000\n");
  EXPECT_EQ(probe_available_memory(root.path()), 2000000U);
  root.put("sys/fs/cgroup/a/memory.current", "3000001\n");
  EXPECT_EQ(probe_available_memory(root.path()), 0U);
  const fake_root one;
  one.put("proc/meminfo", "MemAvailable:    4096 kB\n");
  one.put("proc/self/cgroup", "3:memory:/x\n");
  one.put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1000\n");
  one.put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "400\n");
  EXPECT_EQ(probe_available_memory(one.path()), 600U);
}

state_facts good_state() {
  return {.path = "/s",
          .given = true,
          .there = true,
          .directory = true,
          .own = true,
          .mode = 0700,
          .parent_writable = false,
          .write_error = 0,
          .flush = k_millisecond};
}

TEST(doctor_state, the_directory_must_be_ours_alone_and_its_disk_must_flush) {
  expect(judge_state(good_state()), verdict::pass, "slowest of 5 flushes 1.0 ms");
  state_facts f = good_state();
  f.flush = 101 * k_millisecond;
  expect(judge_state(f), verdict::warn, "101.0 ms");
  f.write_error = EROFS;
  expect(judge_state(f), verdict::fail, "Read-only");
  f.mode = 0750;
  expect(judge_state(f), verdict::fail, "mode 0750");
  f.own = false;
  expect(judge_state(f), verdict::fail, "another user");
  f.directory = false;
  expect(judge_state(f), verdict::fail, "no directory");
  f.there = false;
  expect(judge_state(f), verdict::fail, "cannot make it");
  f.given = false;
  expect(judge_state(f), verdict::warn, "cannot make it");
  f.parent_writable = true;
  expect(judge_state(f), verdict::pass, "a start makes it");
}

TEST(doctor_state, the_probe_writes_flushes_and_leaves_nothing) {
  const fake_root folder;
  ::chmod(folder.path().c_str(), 0700);
  state_facts f = probe_state(folder.path().string(), true);
  EXPECT_EQ(f.write_error, 0);
  EXPECT_GT(f.flush, 0U);
  f.flush = k_millisecond;  // a busy disk is no fault of the probe
  expect(judge_state(f), verdict::pass, "mode 0700");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ::chmod(folder.path().c_str(), 0755);
  expect(judge_state(probe_state(folder.path().string(), true)), verdict::fail, "mode 0755");
  folder.put("file", "");
  expect(judge_state(probe_state((folder.path() / "file").string(), true)), verdict::fail,
         "no directory");
  expect(judge_state(probe_state((folder.path() / "new").string(), true)), verdict::pass,
         "a start makes it");
}

TEST(doctor_findings, a_line_has_its_remedy_and_stays_a_line) {
  const findings all{pass("a", "x"), skip("bb", "y"), warn("c", "two\nlines", "do"),
                     failure("d", "z", "mend")};
  EXPECT_EQ(findings_text(all),
            "PASS  a   x\nSKIP  bb  y\nWARN  c   two?lines; remedy: do\n"
            "FAIL  d   z; remedy: mend\n\n1 passed, 1 warned, 1 failed, 1 skipped\n");
  EXPECT_EQ(worst_of(all), verdict::fail);
  EXPECT_EQ(worst_of({pass("a", "x"), skip("b", "y")}), verdict::skip);
  EXPECT_NE(findings_json(all).find("\"schema\": \"moetier.doctor/1\""), std::string::npos);
}

}  // namespace
}  // namespace moetier::doctor
