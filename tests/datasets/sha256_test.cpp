#include "datasets/sha256.h"

#include <gmock/gmock.h>

#include "datasets/error.h"
#include "tests/temporary_folder.h"

namespace replayeval::datasets {
namespace {

// Digests from FIPS 180-4's examples.
constexpr const char* digest_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* digest_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex("abc"), digest_of_abc);
  EXPECT_EQ(sha256_hex(""), digest_of_nothing);
}

TEST(Sha256, PiecesMakeTheWhole) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  EXPECT_EQ(hash.hex(), digest_of_abc);
}

TEST(Sha256, OfFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(sha256_file(folder.write("abc", "abc")), digest_of_abc);
  EXPECT_THAT(message_of([&] { sha256_file(folder.path() / "absent"); }),
              testing::HasSubstr("absent: cannot be opened"));
  EXPECT_EQ(message_of([&] { sha256_file(folder.path()); }), folder.path().string() + ": is a folder; expected a file");
}

}  // namespace
}  // namespace replayeval::datasets
