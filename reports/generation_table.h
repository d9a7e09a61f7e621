// Generated sequences as tables: signs of degeneration, and agreement with the baseline.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/document.h"
#include "reports/results.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace replayeval::reports {

// For a page's width: an arm a row; length, truncated, looped, repeated 3-grams and compression, each with its delta.
Table degeneration_by_arm(const Results& results, const Workload& workload);

// A row an arm: its signs of degeneration, and how far its sequences are the baseline's.
TextTable generation_table(const Results& results, const Workload& workload);

// The signs of degeneration that are shares and bad where they grow, but for what is constant: metric and title.
std::vector<std::pair<std::string, std::string>> share_signs(const Workload& workload);

// Whether texts were generated: in a generation workload, and in a task of that type.
bool has_generated(const Workload& workload);

// Whether no token and no text ends a sequence (`ignore_eos`): then all are as long as the limit, whatever the arm, and
// length and the share of truncated ones say nothing.
bool runs_to_the_limit(const Workload& workload);
// Whether it says nothing in such a workload: "length", "truncated".
bool is_constant(const Workload& workload, std::string_view metric);

// "512 sequences of at most 1,024 tokens (512 prompts, temperature 1)".
std::string generation_line(const Workload& workload);

// Identical: every sequence is the baseline's, token for token. Otherwise by the five signs that are bad where they
// grow (truncated, looped, looped to the end, repeated 3-grams, compression ratio): one of them must differ from zero
// by Holm's adjusted p-value of all of an arm's deltas. Where they disagree, the text names both.
Verdict generation_verdict(const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
