// Regular expressions of tokenizer.json, written for Oniguruma, in PCRE2's syntax.
//
// What differs, and is put into words that both understand (Oniguruma's doc/RE against pcre2pattern(3)):
//   \s \w \d \h \v  PCRE2's \s takes U+180E, its \w lacks marks, its \h and \v are other sets: spelt out as classes
//   \b \B           follow \w: look-arounds
//   ^ $             always at line ends
//   X{n,m}+         a repeated interval, not a possessive one; X{n}? an optional one, not a lazy one; {,m} from 0
//   \p{Name}        long names of categories; a script's name is its Script, not PCRE2's Script_Extensions
//   [a[b]] [a&&b]   nested classes and intersections: refused
// Properties are PCRE2's (Unicode 14.0 in Debian 12); Oniguruma in tokenizers 0.23 also knows letters and digits that
// came later (e.g. U+1C89, U+10D40, the ideographs from U+31350 on), which count as unassigned here.
// Refused as well, as they are unknown in published tokenizers: captures' uses (back references, names, \K), comments,
// options other than i, octal and control escapes, \X \R \G \N \O \y, POSIX brackets, and in case-insensitive parts
// what could match one character for several (ss for ß) or a class that a fold would widen.
#pragma once

#include <string>
#include <string_view>

namespace replayeval::datasets {

// Throws DataError "PLACE: pattern '...': byte N: ..." on what cannot be translated or is not a pattern.
std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& place);

}  // namespace replayeval::datasets
