// Errors are read by people: one line that names file, place and expectation.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace replayeval::testing {

// Runs `act`, expects an Error, and that its message is one line holding every one of `parts`.
template <typename Error, typename Act>
void expect_error(Act act, const std::vector<std::string>& parts) {
  try {
    act();
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const std::string& part : parts) EXPECT_THAT(message, ::testing::HasSubstr(part));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return;
  }
  ADD_FAILURE() << "no error; expected one that says: " << ::testing::PrintToString(parts);
}

}  // namespace replayeval::testing
