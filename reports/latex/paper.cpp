#include "reports/latex/paper.h"

#include <fmt/format.h>

#include "reports/atomic_file.h"
#include "reports/consistency.h"
#include "reports/findings.h"
#include "reports/latex/paper_tables.h"
#include "reports/markdown_blocks.h"
#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

namespace fs = std::filesystem;

std::string markdown_twin(const latex::PaperTable& table) {
  return markdown::blocks({table.twin(), Paragraph{table.caption}});
}

std::string findings_list(const Results& results, const fs::path& folder) {
  std::string items;
  for (const Finding& finding : findings({run_of(results, folder)})) {
    const Text who = finding.arm.empty() ? Text("all arms") : code(finding.arm);
    items += fmt::format("\\item {}, {}: {}\n", latex::escaped(finding.workload), latex::text_of(who),
                         latex::escaped(finding.verdict.text));
  }
  return items.empty() ? "" : "\\begin{itemize}\n" + items + "\\end{itemize}\n";
}

std::string figure(const Figure& drawn) {
  const std::string pdf = fs::path(drawn.file).replace_extension(".pdf").string();
  return fmt::format(
      "\\begin{{figure}}\n\\centering\n\\includegraphics[width=\\linewidth]{{../"
      "{}}}\n\\caption{{{}}}\n\\end{{figure}}\n",
      pdf, latex::escaped(drawn.title));
}

std::string document(const Results& results, const std::vector<latex::PaperTable>& tables, const Figures& drawn,
                     const fs::path& folder) {
  std::string body;
  for (const latex::PaperTable& table : tables) body += fmt::format("\\input{{{}}}\n", table.name);
  for (const Figure& one : drawn.drawn) body += figure(one);
  return fmt::format(
      "\\documentclass[twocolumn]{{article}}\n\\usepackage{{booktabs}}\n\\usepackage{{graphicx}}\n"
      "\\usepackage[margin=2cm]{{geometry}}\n\\extrafloats{{100}}\n"
      "\\maxdeadcycles=1000\\renewcommand{{\\topfraction}}{{0.95}}\\renewcommand{{\\dbltopfraction}}{{0.95}}\n"
      "\\emergencystretch=3em\n"
      "\\title{{ReplayEval: "
      "{}}}\n\\author{{}}\n\\date{{{}}}\n\\begin{{document}}\n\\maketitle\n{}{}\\end{{document}}\n",
      latex::escaped(results.config.value("name", "results")),
      latex::escaped(results.environment.value("date", "").substr(0, 10)), findings_list(results, folder), body);
}

}  // namespace

void write_latex(const Results& results, const Figures& drawn, const fs::path& folder) {
  const fs::path latex_folder = folder / "latex";
  std::error_code failure;
  fs::create_directories(latex_folder, failure);
  if (failure) throw ResultsError(fmt::format("{}: cannot be made: {}", latex_folder.string(), failure.message()));
  std::vector<latex::PaperTable> tables = latex::paper_tables(results);
  if (const std::string found = contradiction_in(results, "results.json"); !found.empty())
    for (latex::PaperTable& table : tables) table.caption += " Do not rely on these numbers. " + found + ".";
  for (const latex::PaperTable& table : tables) {
    write_file_atomically(latex_folder / (table.name + ".tex"), latex::fragment(table));
    write_file_atomically(latex_folder / (table.name + ".md"), markdown_twin(table));
    write_file_atomically(latex_folder / (table.name + ".csv"), latex::csv(table.twin()));
  }
  write_file_atomically(latex_folder / "paper.tex", document(results, tables, drawn, folder));
}

}  // namespace replayeval::reports
