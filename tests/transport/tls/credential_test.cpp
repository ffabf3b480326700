// Every way in which files cannot serve, by its sentence; and that what can serve does.

#include "transport/tls/credential.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/transport/tls/toy_authority.hpp"

namespace moetier::tls {
namespace {

class credential_files : public testing::Test {
 protected:
  // The text after "certificate file PATH: ", or "" for a credential.
  std::string why(const file_names& files, role as = role::server) const {
    const auto loaded = credential::load(files, as, unix_now_s());
    if (loaded) return "";
    EXPECT_EQ(loaded.error().why, reason::certificate_unusable);
    const std::string& text = loaded.error().text;
    EXPECT_EQ(text.rfind("certificate file ", 0), 0u) << text;
    return text.substr(text.find(": ") + 2);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
    ::chmod(folder.file(name).c_str(), 0600);
  }

  scratch_folder folder;
  toy::authority zone{folder, "zone"};
  toy::authority other{folder, "other"};
};

toy::wish named(const std::string& name) {
  toy::wish w;
  w.common_name = name;
  return w;
}
toy::wish valid(long from_s, long to_s) {
  toy::wish w;
  w.from_s = from_s;
  w.to_s = to_s;
  return w;
}

TEST_F(credential_files, that_fit_each_other_make_a_credential) {
  const auto loaded = credential::load(zone.issue("a", named("blue")), role::both, unix_now_s());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ((*loaded)->common_name(), "blue");
  EXPECT_NEAR(static_cast<double>((*loaded)->not_after_s() - unix_now_s()), 3600, 5);
}

TEST_F(credential_files, that_lack_or_are_something_else_are_named) {
  const auto good = zone.issue("a");
  EXPECT_EQ(why({folder.file("none"), good.key, good.authority}), "there is no such file");
  EXPECT_EQ(why({folder.file(""), good.key, good.authority}), "it is not a plain file");
  EXPECT_EQ(why({good.key, good.key, good.authority}), "it is no PEM file of certificates");
  EXPECT_NE(why({good.certificate, good.certificate, good.authority}).find("others may read"),
            std::string::npos);
  write("text", "no key");
  EXPECT_EQ(why({good.certificate, folder.file("text"), good.authority}),
            "it is no PEM file of a private key");
  EXPECT_EQ(why({good.certificate, good.key, folder.file("text")}),
            "it is no PEM file of certificates");
  write("large", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(why({folder.file("large"), good.key, good.authority}), "it is larger than 1 MiB");
}

TEST_F(credential_files, a_key_that_others_may_read_is_refused) {
  const auto files = zone.issue("a");
  for (const mode_t mode : {0640, 0604, 0620}) {
    ::chmod(files.key.c_str(), mode);
    EXPECT_NE(why(files).find("others may read the key"), std::string::npos);
  }
  ::chmod(files.key.c_str(), 0400);
  EXPECT_EQ(why(files), "");
}

TEST_F(credential_files, another_certificates_key_is_refused) {
  const auto a = zone.issue("a");
  const auto b = zone.issue("b");
  EXPECT_EQ(why({a.certificate, b.key, a.authority}),
            "the key does not belong to the certificate " + a.certificate);
}

TEST_F(credential_files, of_another_authority_or_time_are_refused) {
  const auto a = zone.issue("a");
  const auto o = other.issue("o");
  EXPECT_EQ(why({a.certificate, a.key, o.authority}), "the zone's authority did not issue it");
  EXPECT_EQ(why(zone.issue("old", valid(-7200, -60))), "it has expired");
  EXPECT_EQ(why(zone.issue("new", valid(3600, 7200))), "it is not valid yet");
  EXPECT_EQ(why({a.certificate, a.key, a.certificate}),
            "it holds a certificate that may not issue others");
}

TEST_F(credential_files, meant_for_the_other_side_are_refused) {
  toy::wish w;
  w.usage = "clientAuth";
  const auto client = zone.issue("c", w);
  EXPECT_EQ(why(client, role::client), "");
  EXPECT_EQ(why(client, role::server), "it is not meant for this side of a link");
  EXPECT_EQ(why(client, role::both), "it is not meant for this side of a link");
}

TEST_F(credential_files, without_a_name_are_refused) {
  EXPECT_EQ(why(zone.issue("a", named(""))),
            "it has no common name of 1 to 64 printable characters");
}

TEST_F(credential_files, tell_whether_two_zones_are_one) {
  const auto load = [](const file_names& f) {
    return *credential::load(f, role::both, unix_now_s());
  };
  const auto a = load(zone.issue("a"));
  EXPECT_TRUE(a->shares_authority(*load(zone.issue("b"))));
  EXPECT_FALSE(a->shares_authority(*load(other.issue("o"))));
}

}  // namespace
}  // namespace moetier::tls
