#!/usr/bin/env python3
"""datasets/prepare_text.py against a small made-up system under a temporary root. Standard library only."""

import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets"))
import prepare_text  # noqa: E402

STATUS = """Package: essays
Status: install ok installed
Version: 1.0-2

Package: removed
Status: deinstall ok config-files
Version: 3.0

Package: words
Status: install ok installed
Version: 2.1
Description: something
 Status: not a field
"""

PAGE = "<html><head><title>x</title></head><body><h1>One &amp; two</h1>\n<p>A  <b>bold</b>\nword.</p><script>no</script></body></html>"


class PrepareText(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = os.path.join(folder.name, "root"), os.path.join(folder.name, "out")
        self.packages = os.path.join(folder.name, "packages.json")
        self.put("var/lib/dpkg/status", STATUS)
        self.put("usr/share/doc/essays/a.html", PAGE)
        self.put("usr/share/doc/essays/b.html", PAGE.replace("bold", "pale"))
        self.put("usr/share/doc/essays/index.html", PAGE)
        self.sources = [{"source": "essays", "package": "essays", "extract": "html", "shortest": 1,
                         "files": ["usr/share/doc/essays/*.html"], "exclude": ["*/index.html"], "heldout": {"a": ""}}]
        self.write_packages()
        self.assertEqual(self.call("--pin")[0], 0)
        with open(self.packages, encoding="utf-8") as stream:
            self.sources = json.load(stream)["sources"]

    def put(self, path, content):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())

    def write_packages(self):
        with open(self.packages, "w", encoding="utf-8") as stream:
            json.dump({"sources": self.sources}, stream)

    def call(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = prepare_text.main(["--root", self.root, "--out", self.out, "--packages", self.packages, *arguments])
        return code, out.getvalue(), err.getvalue()

    def read(self, path):
        with open(os.path.join(self.out, path), encoding="utf-8") as stream:
            return stream.read()

    def assert_refused(self, *parts):
        code, _, err = self.call()
        self.assertEqual(code, 3)
        self.assertEqual(err.count("\n"), 1, err)
        for part in parts:
            self.assertIn(part, err)

    def test_pins_version_and_hash(self):
        self.assertEqual(self.sources[0]["version"], "1.0-2")
        self.assertEqual(len(self.sources[0]["heldout"]["a"]), 64)

    def test_heldout_only(self):
        self.assertEqual(self.call()[0], 0)
        self.assertEqual(self.read("heldout/essays/a.txt"), "One & two\nA bold word.\n")
        self.assertEqual(os.listdir(self.out), ["heldout"])
        self.assertEqual(os.listdir(os.path.join(self.out, "heldout/essays")), ["a.txt"])

    def test_train_is_the_rest(self):
        self.assertEqual(self.call("--train")[0], 0)
        self.assertEqual(os.listdir(os.path.join(self.out, "train/essays")), ["b.txt"])
        self.assertEqual(self.read("train/essays/b.txt"), "One & two\nA pale word.\n")

    def test_changed_text_is_named_and_nothing_is_left(self):
        self.put("usr/share/doc/essays/a.html", PAGE.replace("bold", "new"))
        self.put("var/lib/dpkg/status", STATUS.replace("1.0-2", "1.0-3"))
        self.assert_refused("package essays 1.0-3", "pinned with 1.0-2", "essays/a", self.sources[0]["heldout"]["a"])
        self.assertEqual(os.listdir(self.out), [])

    def test_failure_keeps_what_was_there(self):
        self.assertEqual(self.call()[0], 0)
        self.put("usr/share/doc/essays/a.html", PAGE.replace("bold", "new"))
        self.assertEqual(self.call()[0], 3)
        self.assertEqual(self.read("heldout/essays/a.txt"), "One & two\nA bold word.\n")
        self.assertEqual(os.listdir(self.out), ["heldout"])

    def test_again_replaces(self):
        self.assertEqual(self.call()[0], 0)
        with open(os.path.join(self.out, "heldout/essays/stray.txt"), "w", encoding="utf-8"):
            pass
        self.assertEqual(self.call()[0], 0)
        self.assertEqual(os.listdir(os.path.join(self.out, "heldout/essays")), ["a.txt"])

    def test_missing_package_names_the_command(self):
        self.put("var/lib/dpkg/status", STATUS.replace("Package: essays", "Package: other"))
        self.assert_refused("package essays is not installed", "apt-get install essays")

    def test_removed_package_counts_as_missing(self):
        self.sources[0]["also"] = ["removed"]
        self.write_packages()
        self.assert_refused("apt-get install removed")

    def test_missing_document(self):
        os.remove(os.path.join(self.root, "usr/share/doc/essays/a.html"))
        self.assert_refused("essays/a", "no such document")

    def test_no_files_at_all(self):
        for name in ("a", "b", "index"):
            os.remove(os.path.join(self.root, f"usr/share/doc/essays/{name}.html"))
        self.assert_refused("package essays", "usr/share/doc/essays/*.html")

    def test_no_dpkg(self):
        os.remove(os.path.join(self.root, "var/lib/dpkg/status"))
        self.assert_refused("var/lib/dpkg/status")

    def test_damaged_gzip(self):
        self.put("usr/share/dictd/d.dict.dz", b"\x1f\x8b nonsense")
        self.sources.append({"source": "d", "package": "words", "extract": "dictd", "bytes_per_document": 10,
                             "files": ["usr/share/dictd/d.dict.dz"], "heldout": {"d-0000": "0"}})
        self.write_packages()
        self.assert_refused("package words", "d.dict.dz")

    def test_lists_packages(self):
        self.sources.append({"source": "w", "package": "words", "also": ["more"], "extract": "html", "files": []})
        self.write_packages()
        self.assertEqual(self.call("--list-packages", "heldout")[1], "essays\n")
        self.assertEqual(self.call("--list-packages", "train")[1], "essays\nmore\nwords\n")

    def test_real_packages_file(self):
        with open(os.path.join(os.path.dirname(prepare_text.__file__), "packages.json"), encoding="utf-8") as stream:
            config = json.load(stream)
        for source in config["sources"]:
            self.assertIn(source["extract"], prepare_text.EXTRACTORS)
            for name, pin in source.get("heldout", {}).items():
                self.assertRegex(pin, "^[0-9a-f]{64}$", name)
                self.assertIn("version", source)
        self.assertEqual(prepare_text.list_packages(config, "heldout"),
                         ["anarchism", "fortunes", "fortunes-min", "wordnet-base"])


class Extractors(unittest.TestCase):
    def test_html(self):
        text = prepare_text.html_to_text("<p>a<br/>b &quot;c&quot; &eacute;<!-- <p>hidden</p> --></p>\n<ul><li>x<li>y</ul>")
        self.assertEqual(text, 'a\nb "c" \u00e9\nx\ny\n')

    def test_cp1252_is_read(self):
        self.assertEqual(prepare_text.decode(b"\x93quoted\x94"), "\u201cquoted\u201d")

    def test_fortunes_keep_their_lines(self):
        files = [("usr/share/games/fortunes/law", b"one\n\t\ttwo\n%\nthree\n")]
        self.assertEqual(list(prepare_text.extract_fortunes({}, files)), [("law", "one\ntwo\nthree\n")])

    def test_wordnet(self):
        line = "00002452 03 n 02 thing 0 some_thing 0 001 @ 00001930 n 0000 | a separate entity  \n"
        files = [("usr/share/wordnet/data.noun", b"  1 licence | text\n" + line.encode() * 3)]
        documents = list(prepare_text.extract_wordnet({"entries_per_document": 2}, files))
        self.assertEqual([name for name, _ in documents], ["noun-0000", "noun-0001"])
        self.assertEqual(documents[1][1], "thing, some thing: a separate entity\n")

    def test_dictd(self):
        text = "00-database-info\n   skip me\n\nAbound \\A*bound\"\\, v. i.\n   To be {plentiful}.\n   [1913 Webster]\n\nBe\n   x\n"
        source = {"bytes_per_document": 10, "remove": r"\\[^\\]*\\,?|\[1913 Webster\]", "skip_paragraphs": "^00-"}
        files = [("usr/share/dictd/d.dict.dz", gzip.decompress(gzip.compress(text.encode())))]
        self.assertEqual(list(prepare_text.extract_dictd(source, files)),
                         [("d-0000", "Abound v. i. To be plentiful.\n"), ("d-0001", "Be x\n")])

    def test_rst(self):
        text = ".. directive::\n\nTitle\n=====\n\nSome prose\nwrapped.\n\n* one\n* two\n"
        documents = list(prepare_text.extract_rst({}, [("x/y.rst.txt", text.encode())]))
        self.assertEqual(documents, [("y", "Title\nSome prose wrapped.\n* one\n* two\n")])


if __name__ == "__main__":
    unittest.main()
