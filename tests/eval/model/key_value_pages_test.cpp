// Keys and values in pages: the book of pages, the memory that sequences take, and that no page's place is seen.
#include "eval/model/key_value_pages.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <stdexcept>

#include "eval/model/hybrid_cache.h"
#include "eval/model/model.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/model/tiny_nemotron_h.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using Slots = std::vector<std::int32_t>;

std::set<std::int64_t> all_pages(const KeyValuePages& pages, std::int64_t slots) {
  std::set<std::int64_t> all;
  for (std::int64_t slot = 0; slot < slots; ++slot)
    for (const std::int64_t page : pages.of_slot(slot)) {
      EXPECT_GT(page, 0);
      EXPECT_LT(page, pages.pages());
      EXPECT_TRUE(all.insert(page).second) << "page " << page << " belongs to two";
    }
  return all;
}

TEST(KeyValuePages, GrowWithSequencesAndComeBack) {
  KeyValuePages pages(8, 4096, {16});
  EXPECT_EQ(pages.pages(), 1);
  pages.reserve({{3, 33}});
  EXPECT_EQ(pages.of_slot(3).size(), 3U);
  EXPECT_LE(pages.pages(), 1 + 5) << "slots that hold nothing take nothing";
  pages.reserve({{3, 34}, {5, 16}});
  EXPECT_EQ(pages.held(), 4);
  EXPECT_EQ(all_pages(pages, 8).size(), 4U);
  EXPECT_FALSE(pages.reserve({{3, 48}})) << "the third page has room";
  EXPECT_EQ(pages.release(3).size(), 3U);
  EXPECT_EQ(pages.held(), 1);
  const std::int64_t before = pages.pages();
  pages.reserve({{0, 30}});
  EXPECT_EQ(pages.pages(), before) << "pages given back are taken first";
}

TEST(KeyValuePages, MovesKeepWhatWasThere) {
  KeyValuePages pages(3, 640, {16});
  std::vector<std::vector<std::int64_t>> before(3);
  for (std::int64_t length = 1; length <= 640; length += 7) {
    for (std::int64_t slot = 0; slot < 3; ++slot) before[slot] = pages.of_slot(slot);
    const std::optional<PageMoves> moves = pages.reserve({{0, length}, {1, (length + 1) / 2}, {2, length}});
    for (std::int64_t slot = 0; slot < 3; ++slot)
      for (std::size_t i = 0; i < before[slot].size(); ++i) {
        std::int64_t now = before[slot][i];
        if (moves) {
          const auto found = std::find(moves->from.begin(), moves->from.end(), now);
          ASSERT_NE(found, moves->from.end());
          now = moves->to[found - moves->from.begin()];
        }
        EXPECT_EQ(pages.of_slot(slot)[i], now);
      }
    all_pages(pages, 3);
  }
}

TEST(KeyValuePages, RowsInStepAreReadInPlace) {
  KeyValuePages pages(4, 1024, {16});
  for (std::int64_t length = 1; length <= 1024; length += 5) {
    pages.reserve({{0, length}, {1, length}, {2, length}, {3, length}});
    const std::optional<PageRun> run = pages.run({0, 1, 2, 3}, length);
    ASSERT_TRUE(run) << length;
    EXPECT_TRUE(pages.run({0, 2}, length));
    EXPECT_TRUE(pages.run({2}, length));
    EXPECT_FALSE(pages.run({2, 1}, length)) << "a view has no negative strides";
    EXPECT_FALSE(pages.run({1, -1}, length));
  }
  EXPECT_EQ(pages.pages(), 1 + 4 * 64) << "no more than all slots can hold";
  pages.release(1);
  EXPECT_FALSE(pages.run({0, 1, 2, 3}, 1024)) << "a row without pages has no place of its own";
  pages.reserve({{1, 100}});
  EXPECT_TRUE(pages.run({0, 1, 2, 3}, 1024)) << "what stands behind the shorter row is free";
}

TEST(KeyValuePages, AnothersPageIsNotReadInPlace) {
  KeyValuePages pages(3, 64, {16, 6});
  pages.reserve({{0, 32}, {1, 16}});
  ASSERT_EQ(pages.of_slot(0).back() + 1, pages.of_slot(1).front());
  EXPECT_TRUE(pages.run({0}, 32));
  EXPECT_FALSE(pages.run({0, 1}, 48)) << "behind row 0 stands row 1";
}

TEST(KeyValuePages, TheLimitHolds) {
  KeyValuePages pages(4, 4096, {16, 6});
  pages.reserve({{0, 64}, {1, 10}});
  testing::expect_error<OutOfPages>(
      [&] {
        pages.reserve({{1, 30}, {2, 1}});
      },
      {"2 more pages of 16", "the 5 held", "limit of 6"});
  EXPECT_EQ(pages.held(), 5) << "nothing was taken";
  EXPECT_EQ(pages.of_slot(1).size(), 1U);
  pages.reserve({{1, 30}});
  EXPECT_LE(pages.pages(), 1 + 6);
  pages.release(0);
  pages.reserve({{2, 60}});
  EXPECT_EQ(pages.held(), 6);
  for (const KeyValuePageOptions& options : {KeyValuePageOptions{0}, KeyValuePageOptions{16, 0}})
    testing::expect_error<std::invalid_argument>([&] { KeyValuePages(1, 16, options); }, {"pages of", "at least one"});
}

class PagedCacheTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    at::manual_seed(0);
    testing::TinyNemotronH tiny;
    model_ = load_model(tiny.open(), {GetParam(), Dtype::float32});
    arms_ = {testing::exact_arm("exact"), testing::replay_arm("replay", Dtype::float32, Dtype::bfloat16)};
  }
  at::Tensor random_ids(std::int64_t batch, std::int64_t tokens) const {
    return at::randint(model_->vocab_size(), {batch, tokens}, at::TensorOptions().dtype(at::kLong));
  }
  at::Tensor decode(DecodeCache& cache, const at::Tensor& ids, const Slots& slots,
                    Mode mode = Mode::teacher_forced) const {
    return model_->forward(ids, cache, mode, nullptr, nullptr, slots).cpu();
  }

  std::unique_ptr<Model> model_;
  std::vector<Arm> arms_;
};

TEST_P(PagedCacheTest, MemoryFollowsTheTokensHeld) {
  const auto cache = model_->make_cache(arms_, 64, 1 << 20, {16});
  decode(*cache, random_ids(1, 20), {7});
  const std::int64_t two_pages = cache->key_value_bytes().held;
  EXPECT_GT(two_pages, 0);
  EXPECT_LE(cache->key_value_bytes().reserved, 4 * two_pages);
  decode(*cache, random_ids(2, 12), {7, 9});
  EXPECT_EQ(cache->key_value_bytes().held, two_pages / 2 * 3);
  cache->reset_slot(7);
  EXPECT_EQ(cache->key_value_bytes().held, two_pages / 2);
  const auto copy = model_->make_cache(arms_, 2, 1 << 20, {16});
  copy->copy_slot(1, *cache, 9);
  EXPECT_EQ(copy->key_value_bytes().held, two_pages / 2);
  cache->reset();
  EXPECT_EQ(cache->key_value_bytes().held, 0);
}

// The same calls with pages of several lengths: rows that come, go, grow apart and are read in place or through tables.
TEST_P(PagedCacheTest, WherePagesStandChangesNoBit) {
  const at::Tensor first = random_ids(4, 21), second = random_ids(2, 37), third = random_ids(3, 9);
  std::vector<at::Tensor> expected;
  for (const std::int64_t page_length : {512, 1, 3, 16, 64}) {
    const auto cache = model_->make_cache(arms_, 4, 200, {page_length});
    std::vector<at::Tensor> found;
    found.push_back(decode(*cache, first, {}));
    cache->reset_slot(1);
    found.push_back(decode(*cache, second, {3, 1}));
    cache->reset_slot(2);
    found.push_back(decode(*cache, third, {1, 2, 0}, Mode::stepwise));
    cache->copy_slot(2, *cache, 3);
    found.push_back(decode(*cache, third, {2, -1, 3}));
    found.push_back(decode(*cache, first, {}, Mode::stepwise));
    if (expected.empty()) expected = found;
    for (std::size_t i = 0; i < found.size(); ++i)
      for (std::int64_t row = 0; row < found[i].size(1); ++row)
        EXPECT_TRUE((i == 3 && row == 1) ||  // the padded one
                    at::equal(found[i].select(1, row), expected[i].select(1, row)))
            << page_length << ", call " << i << ", row " << row;
  }
}

TEST_P(PagedCacheTest, OutOfPagesChangesNothing) {
  const at::Tensor ids = random_ids(2, 30), more = random_ids(2, 4);
  const auto cache = model_->make_cache(arms_, 2, 64, {16, 4}), other = model_->make_cache(arms_, 2, 64, {16});
  decode(*cache, ids, {});
  decode(*other, ids, {});
  testing::expect_error<OutOfPages>([&] { decode(*cache, more, {}); }, {"2 more pages", "limit of 4"});
  EXPECT_EQ(cache->position(0), 30);
  EXPECT_TRUE(at::equal(decode(*cache, more.narrow(1, 0, 2), {}), decode(*other, more.narrow(1, 0, 2), {})));
  cache->reset_slot(1);
  decode(*cache, more.narrow(0, 0, 1), {0});
  EXPECT_EQ(cache->position(0), 36);
  testing::expect_error<OutOfPages>([&] { cache->copy_slot(1, *other, 0); }, {"2 more pages", "the 3 held"});
}

TEST_P(PagedCacheTest, WhatOneSequenceBreaksStaysItsOwn) {
  const auto cache = model_->make_cache(arms_, 3, 64, {4});
  decode(*cache, random_ids(3, 5), {});
  auto& caches = dynamic_cast<HybridCache&>(*cache);
  for (std::int64_t arm = 0; arm < 2; ++arm)
    for (const KeyValueCache& pools : caches.of(arm).attention)
      for (const std::int64_t page : caches.pages().of_slot(1))
        pools.values.narrow(1, page * 4, 4).fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(at::isfinite(decode(*cache, random_ids(1, 1), {1})).all().item<bool>());
  EXPECT_TRUE(at::isfinite(decode(*cache, random_ids(1, 30), {2})).all().item<bool>());
  EXPECT_TRUE(at::isfinite(decode(*cache, random_ids(2, 3), {0, 2}).select(1, 0)).all().item<bool>());
  cache->reset_slot(1);
  EXPECT_TRUE(at::isfinite(decode(*cache, random_ids(3, 4), {})).all().item<bool>());
}

REPLAYEVAL_ON_EACH_DEVICE(PagedCacheTest);

}  // namespace
}  // namespace replayeval
