// The report as a structure, as pages, and as files; report_files_test.py reads the files.
#include "report/run_report.h"

#include <gmock/gmock.h>

#include <array>

#include "core/error.h"
#include "report/html_report.h"
#include "report/page_writer.h"
#include "report/pdf_document.h"
#include "report/placed_canvas.h"
#include "report/recording_canvas.h"
#include "report/report_file.h"
#include "report/report_pages.h"
#include "report/run_folder.h"
#include "report/text.h"

namespace cohort::report {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

RunRecords run_of(const std::string& name, double probability, int workers = 2) {
  RunRecords run;
  run.folder = "runs/" + name;
  run.config = {{"method", "swamp"},  {"model", "mnistnet"},
                {"data", "mnist"},    {"pull-probability", probability},
                {"workers", workers}, {"name", name}};
  run.description = {
      {"command", {"/usr/bin/cohort", "train", "--name", name, "--title", "it's"}},
      {"host", {{"name", "vm"}, {"cpu", "a CPU"}, {"cores", 2}, {"cohort", "1.2.3"}}},
      {"data", {{"train_samples", 60000}, {"test_samples", 10000}}}};
  run.summary = {{"reason", "finished"}, {"seconds", 52.5}};
  for (int i = 1; i <= 20; ++i) {
    for (int rank = 0; rank < workers; ++rank) {
      metrics::StepRecord record;
      record.rank = rank;
      record.step = i * 10;
      record.epoch = i / 20.0;
      record.time_seconds = i * 2.5;
      record.loss = 2.0 / i;
      record.samples = 640;
      record.compute_seconds = 1;
      record.bytes_sent = record.bytes_received = 500000;
      run.steps.push_back(record);
      ScoredDump dump;
      dump.name = {.worker = rank, .batch = i * 10};
      dump.score = {2.0 / i, 1 - 1.0 / i, i * 2.5};
      run.dumps.workers[rank].push_back(dump);
    }
  }
  run.evaluations = {{.time_seconds = 51,
                      .step = 200,
                      .epoch = 1,
                      .split = "test",
                      .loss = 0.1,
                      .top1 = 0.96,
                      .samples = 10000}};
  return run;
}

std::vector<RunRecords> some_runs() {
  return {run_of("p0", 0), run_of("p0.5", 0.5), run_of("p1", 1)};
}

std::vector<std::string> titles_of(const Table& table) {
  std::vector<std::string> titles;
  for (const TableColumn& column : table.columns) titles.push_back(column.title);
  return titles;
}

TEST(Reports, HaveARowAndAFigureForEachRun) {
  const Report report = make_report(some_runs(), {.created = "today"});
  EXPECT_EQ(report.title, "mnistnet on mnist: 3 runs");
  ASSERT_THAT(report.summary.rows, SizeIs(3));
  EXPECT_THAT(titles_of(report.summary),
              ElementsAre("Run", "pull-probability", "Last acc. (%)", "Workers' acc. (%)",
                          "Test loss", "Shocks", "Time (s)", "Samples/s", "Sent (MB)"));
  EXPECT_THAT(report.summary.rows[1],
              ElementsAre("p0.5", "0.5", "96.00", "95.00", "0.100", "0", "52.5", "1280", "20.0"));
  ASSERT_THAT(report.runs, SizeIs(3));
  EXPECT_EQ(report.runs[2].title, "p1");
  EXPECT_THAT(report.runs[2].labels, ElementsAre("worker 0", "worker 1"));
  ASSERT_FALSE(report.comparisons.empty());
  EXPECT_THAT(report.comparisons[0].labels, ElementsAre("p0", "p0.5", "p1"));
  EXPECT_THAT(report.comparisons[0].panels, SizeIs(2)) << "over epochs and over seconds";
  EXPECT_FALSE(report.conclusion.empty());
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST(Reports, TellWhatWasRunOnWhatAndHow) {
  const Report report = make_report(some_runs(), {});
  std::map<std::string, std::string> facts;
  for (const Fact& fact : report.facts) facts[fact.name] = fact.value;
  EXPECT_EQ(facts["Data"], "mnist, 60,000 training samples, 10,000 test samples");
  EXPECT_EQ(facts["Workers"], "2") << "all runs say the same";
  EXPECT_EQ(facts["Machine"], "vm, a CPU, 2 cores");
  EXPECT_EQ(facts["Versions"], "cohort 1.2.3");
  ASSERT_THAT(report.commands, SizeIs(3));
  EXPECT_EQ(report.commands[1].name, "p0.5");
  EXPECT_EQ(report.commands[1].value, "cohort train --name p0.5 --title 'it'\\''s'");
}

TEST(Reports, SayWhichScoresAreNotOfTheWholeSet) {
  RunRecords run = run_of("a", 0);
  EXPECT_THAT(make_report({run}, {}).remarks[0], HasSubstr("are of the test set. "));
  run.dumps.fewest_samples = 300;
  const Report report = make_report({run}, {});
  EXPECT_THAT(report.remarks[0],
              HasSubstr("are of the test set, but for the dumped models' named below. "));
  EXPECT_THAT(report.remarks[1], HasSubstr("a: what its dumped models scored is not of the whole"));
}

TEST(Reports, TellWhatWasKeptApart) {
  RunRecords run = run_of("a", 0);
  run.description["data"] = {
      {"train_samples", 59000}, {"validation_samples", 1000}, {"test_samples", 10000}};
  const Report report = make_report({run}, {});
  const auto data = std::find_if(report.facts.begin(), report.facts.end(),
                                 [](const Fact& fact) { return fact.name == "Data"; });
  EXPECT_EQ(data->value,
            "mnist, 59,000 training samples, 1000 validation samples, 10,000 test samples");
}

TEST(Reports, RunsOfOneCommandShareIt) {
  std::vector<RunRecords> runs = some_runs();
  for (RunRecords& run : runs) run.description["command"] = {"cohort", "swamp", "batch"};
  const Report report = make_report(runs, {});
  ASSERT_THAT(report.commands, SizeIs(1));
  EXPECT_EQ(report.commands[0].name, "p0, p0.5, p1");
}

TEST(Reports, MethodAndWorkersShowWhereTheyDiffer) {
  const Report report = make_report({run_of("a", 0, 1), run_of("b", 0, 4)}, {});
  EXPECT_THAT(titles_of(report.summary), Contains("Workers"));
  EXPECT_THAT(titles_of(report.summary), Not(Contains("Method")));
  EXPECT_THAT(titles_of(make_report({run_of("a", 0)}, {}).summary), Contains("Method"));
}

TEST(Reports, WorkWithHardlyAnythingKnown) {
  RunRecords bare;
  bare.folder = "runs/bare";
  bare.steps = {{.time_seconds = 1, .step = 1, .epoch = 0.1, .loss = 2}};
  bare.description = {{"host", 3}, {"command", "not a list"}, {"data", {{"test_samples", "many"}}}};
  RunRecords empty;
  empty.folder = "runs/empty";
  const Report report = make_report({bare, empty}, {});
  EXPECT_EQ(report.title, "Report of 2 runs");
  EXPECT_THAT(report.runs, SizeIs(1));
  EXPECT_THAT(report.notes, Contains(HasSubstr("runs/empty has no records yet")));
  EXPECT_THAT(report.conclusion, Contains("No run has a test accuracy yet."));
  EXPECT_FALSE(report_pages(report).empty());
}

TEST(Reports, RefuseWhatMakesNoSense) {
  EXPECT_THROW(make_report({}, {}), ConfigError);
  EXPECT_THROW(make_report({RunRecords{}}, {}), ConfigError) << "no records";
  EXPECT_THROW(make_report(some_runs(), {.labels = {"one"}}), ConfigError);
}

TEST(Reports, TakeWhatTheUserAsksFor) {
  const Report report =
      make_report(some_runs(), {.title = "Mine", .labels = {"x", "y", "z"}, .created = ""});
  EXPECT_EQ(report.title, "Mine");
  EXPECT_EQ(report.summary.rows[2][0], "z");
  EXPECT_EQ(report.runs[2].title, "z") << "nothing is added to a label that was given";
}

RecordingCanvas drawn(const Drawing& page) {
  RecordingCanvas canvas;
  page(canvas);
  return canvas;
}

// Where a text stands: left, right and baseline.
Rectangle box_of(const RecordingCanvas::Text& text) {
  const double width = text.style.monospace
                           ? monospace_width(text.text, text.style.size)
                           : text_width(text.text, text.style.size, text.style.bold);
  const double left = text.style.anchor == TextAnchor::kStart ? text.baseline.x
                      : text.style.anchor == TextAnchor::kEnd ? text.baseline.x - width
                                                              : text.baseline.x - width / 2;
  return {left, text.baseline.y - 0.7 * text.style.size, width, 0.7 * text.style.size};
}

std::vector<RunRecords> many_runs(int count) {
  std::vector<RunRecords> runs;
  for (int i = 0; i < count; ++i) {
    runs.push_back(run_of("a-run-with-a-rather-long-name-" + std::to_string(i), i / 100.0, 1));
  }
  return runs;
}

TEST(Pages, KeepEverythingWithinTheirMargins) {
  for (const int count : {1, 3, 40}) {
    const auto pages = report_pages(make_report(many_runs(count), {.created = "today"}));
    EXPECT_GE(pages.size(), 2U);
    for (const Drawing& page : pages) {
      const RecordingCanvas canvas = drawn(page);
      for (const auto& text : canvas.texts) {
        const Rectangle box = box_of(text);
        ASSERT_GE(box.left, 40) << text.text;
        ASSERT_LE(box.right(), kA4.width - 40) << text.text;
        ASSERT_GE(box.top, 40) << text.text;
        ASSERT_LE(box.bottom(), kA4.height - 40) << text.text;
      }
      for (const auto& line : canvas.lines) {
        for (const Point& point : line.points) {
          ASSERT_TRUE(point.x >= 40 && point.x <= kA4.width - 40) << point.x;
          ASSERT_TRUE(point.y >= 40 && point.y <= kA4.height - 40) << point.y;
        }
      }
    }
  }
}

TEST(Pages, ShortenLabelsThatLeaveNoRoomForNumbers) {
  const auto pages =
      report_pages(make_report(some_runs(), {.labels = {std::string(150, 'w'), "b", "c"}}));
  std::size_t shortened_ones = 0;
  for (const auto& text : drawn(pages[0]).texts) {
    EXPECT_LE(box_of(text).right(), kA4.width - 40) << text.text;
    shortened_ones += text.text.ends_with("w\xE2\x80\xA6") ? 1 : 0;
  }
  EXPECT_GE(shortened_ones, 1U);
}

TEST(Pages, NoTextCoversAnother) {
  for (const Drawing& page : report_pages(make_report(many_runs(40), {}))) {
    const RecordingCanvas canvas = drawn(page);
    for (std::size_t i = 0; i < canvas.texts.size(); ++i) {
      const Rectangle a = box_of(canvas.texts[i]);
      for (std::size_t j = i + 1; j < canvas.texts.size(); ++j) {
        const Rectangle b = box_of(canvas.texts[j]);
        const double across = std::min(a.right(), b.right()) - std::max(a.left, b.left);
        const double down = std::min(a.bottom(), b.bottom()) - std::max(a.top, b.top);
        ASSERT_FALSE(across > 1.5 && down > 1.5)
            << canvas.texts[i].text << " / " << canvas.texts[j].text;
      }
    }
  }
}

TEST(Pages, AreNumberedAndShowEveryRow) {
  const auto pages = report_pages(make_report(many_runs(60), {}));
  std::size_t rows = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::vector<std::string> texts;
    for (const auto& text : drawn(pages[i]).texts) texts.push_back(text.text);
    EXPECT_THAT(texts, Contains(std::to_string(i + 1) + " / " + std::to_string(pages.size())));
    const auto headers = std::count(texts.begin(), texts.end(), "Shocks");
    const auto here = std::count(texts.begin(), texts.end(), "52.5");
    EXPECT_EQ(headers, here > 0 ? 1 : 0) << "the header stands above the rows of each page";
    rows += static_cast<std::size_t>(here);
  }
  EXPECT_EQ(rows, 60U);
}

TEST(PlacedCanvas, MovesAndScales) {
  RecordingCanvas canvas;
  PlacedCanvas placed(canvas, {100, 10}, 0.5);
  const std::array<Point, 2> line = {Point{0, 0}, Point{20, 40}};
  placed.polyline(line, {{}, 2, 1, {4, 2}});
  placed.text({2, 4}, "x", {.size = 12, .colour = {}});
  EXPECT_THAT(canvas.lines[0].points, ElementsAre(Point{100, 10}, Point{110, 30}));
  EXPECT_EQ(canvas.lines[0].stroke.width, 1);
  EXPECT_THAT(canvas.lines[0].stroke.dashes, ElementsAre(2, 1));
  EXPECT_EQ(canvas.texts[0].baseline, (Point{101, 12}));
  EXPECT_EQ(canvas.texts[0].style.size, 6);
}

class ReportFiles : public RunFolderTest {
 protected:
  std::string content(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ReportFiles, HtmlEscapesEveryText) {
  std::vector<RunRecords> runs = some_runs();
  runs[0].folder = "runs/<script>alert(1)";
  runs[0].config["model"] = "<b>&\"'";
  runs[0].notes = {"<i>"};
  runs[0].description["command"] = {"cohort", "</pre><script>"};
  write_report(make_report(runs, {}), folder_ / "a.html");
  const std::string html = content("a.html");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<i>")));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
}

TEST_F(ReportFiles, EndingsNameTheFormat) {
  const Report report = make_report(some_runs(), {});
  EXPECT_THROW(write_report(report, folder_ / "a.doc"), ConfigError);
  EXPECT_THROW(write_report(report, folder_ / "a"), ConfigError);
  EXPECT_THROW(write_report(report, folder_ / "absent" / "a.html"), FileError);
  std::filesystem::create_directories(folder_ / "folder.html");
  EXPECT_THROW(write_report(report, folder_ / "folder.html"), FileError);
  if (!can_draw_pdf()) {
    EXPECT_THROW(check_report_path(folder_ / "a.pdf"), ConfigError);
    GTEST_SKIP() << "built without Cairo";
  }
  write_report(report, folder_ / "a.PDF");
  EXPECT_TRUE(content("a.PDF").starts_with("%PDF-"));
}

TEST_F(ReportFiles, FiguresAloneFillPages) {
  const std::vector<Figure> figures = make_report(some_runs(), {}).runs;
  EXPECT_THROW(write_figures_pdf({}, folder_ / "a.pdf", ""), ConfigError);
  EXPECT_THROW(write_figures_pdf(figures, folder_ / "a.html", ""), ConfigError);
  if (!can_draw_pdf()) GTEST_SKIP() << "built without Cairo";
  write_figures_pdf(figures, folder_ / "a.pdf", "metrics");
  EXPECT_TRUE(content("a.pdf").starts_with("%PDF-"));
  EXPECT_THROW(write_figures_pdf(figures, folder_ / "absent" / "a.pdf", ""), FileError);
}

}  // namespace
}  // namespace cohort::report
