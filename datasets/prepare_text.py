#!/usr/bin/env python3
"""Turn files of installed Debian packages into plain UTF-8 text, one file a document.

    prepare_text.py [--train] [--out DIR] [--root DIR]    write the held-out documents (and the training ones)
    prepare_text.py --list-packages heldout|train         the apt packages that this needs, one a line
    prepare_text.py --pin                                 rewrite the pins in packages.json (for maintainers)

`packages.json` beside this file says which packages, which of their files, how they are read, and which documents are
held out. Held-out documents are pinned by the sha256 of the extracted text, so that two people who compare a perplexity
have scored the same bytes; they come only from packages whose text does not change with updates of the distribution.
Every other document of a source is training text. Only the standard library is used, and the HTML reader is our own:
the text must not depend on which Python happens to run this.

Exit codes: 0 fine, 2 usage, 3 a package, a file or a hash is not what packages.json says (one line on stderr).
"""

import argparse
import fnmatch
import gzip
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class PrepareError(Exception):
    """Something on this system is not what packages.json says; the message is one line."""


# ---------------------------------------------------------------------------------------------------------------------
# Small text helpers
# ---------------------------------------------------------------------------------------------------------------------

# Written out rather than \s, whose meaning follows the Unicode tables of the running Python.
SPACES = re.compile("[ \t\r\f\v\u00a0\u2002\u2003\u2009\u200b]+")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufeff]")


def decode(data):
    """UTF-8 if it is, otherwise Windows-1252, the usual other case in old documents."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def squeeze(text):
    return SPACES.sub(" ", CONTROL.sub(" ", text)).strip(" ")


def finish(paragraphs):
    """One paragraph a line. Blank lines would only add tokens that every model predicts."""
    lines = [line for line in (squeeze(p.replace("\n", " ")) for p in paragraphs) if line]
    return "\n".join(lines) + "\n" if lines else ""


def blocks_of(text):
    """Runs of non-blank lines, each as a list of lines."""
    block = []
    for line in text.split("\n"):
        if line.strip(" \t\r"):
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


# ---------------------------------------------------------------------------------------------------------------------
# Extractors: (the source's entry of packages.json, [(file name, bytes)]) -> iterable of (document name, text)
# ---------------------------------------------------------------------------------------------------------------------

DROPPED = re.compile(r"<(script|style|head|nav|svg|table\s+class=\"navigation)\b.*?</\1\s*>", re.S | re.I)
COMMENT = re.compile(r"<!--.*?-->", re.S)
BLOCK_TAG = re.compile(
    r"</?(?:p|div|br|hr|h[1-6]|li|ul|ol|dl|dt|dd|tr|td|th|table|blockquote|pre|section|article|center|title|body)\b[^>]*>",
    re.I)
TAG = re.compile(r"<[^>]*>")


def html_to_text(source):
    text = DROPPED.sub("\n", COMMENT.sub("", source))
    text = text.replace("\n", " ")
    text = BLOCK_TAG.sub("\n", text)
    text = TAG.sub("", text)
    return finish(html.unescape(text).split("\n"))


def document_name(path, keep_folders=0):
    parts = path.split("/")
    name = "-".join(parts[-1 - keep_folders:])
    for ending in (".html", ".rst.txt", ".txt", ".u8", ".gz"):
        if name.endswith(ending):
            name = name[:-len(ending)]
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def extract_html(source, files):
    for path, data in files:
        yield document_name(path, source.get("keep_folders", 0)), html_to_text(decode(data))


def extract_rst(source, files):
    """reStructuredText, read lightly: prose is unwrapped, directives and underlines go, code stays as it is."""
    for path, data in files:
        paragraphs = []
        for block in blocks_of(decode(data)):
            if block[0].startswith(".. "):
                continue
            block = [line for line in block if not re.fullmatch(r"\s*([=\-~^\"'*#.+`])\1{2,}\s*", line)]
            if any(line.startswith((" ", "\t", "*", "-", "|", "+", ":")) for line in block[1:]):
                paragraphs.extend(block)
            else:
                paragraphs.append(" ".join(block))
        yield document_name(path, source.get("keep_folders", 0)), finish(paragraphs)


def extract_fortunes(source, files):
    """Epigrams between lines of a single %; their own line breaks (verse, dialogue) are kept."""
    for path, data in files:
        yield document_name(path), finish(line for line in decode(data).split("\n") if line.strip() != "%")


def extract_wordnet(source, files):
    """One line a synset, "word, other word: gloss"; a fixed number of synsets is a document."""
    per_document = source["entries_per_document"]
    for path, data in files:
        lines = []
        for line in decode(data).split("\n"):
            if not line or line.startswith(" ") or "|" not in line:
                continue  # the licence header is indented
            fields, gloss = line.split("|", 1)
            fields = fields.split(" ")
            words = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
            words = [re.sub(r"\((?:a|p|ip)\)$", "", word) for word in words]
            lines.append(", ".join(words) + ": " + gloss.strip())
        part = path.rsplit(".", 1)[1]
        for index in range(0, len(lines), per_document):
            yield f"{part}-{index // per_document:04d}", finish(lines[index:index + per_document])


def extract_dictd(source, files):
    """A dictd database: headwords start in column 0. Whole entries are gathered up to a size; that is a document."""
    size = source["bytes_per_document"]
    remove = re.compile(source["remove"]) if "remove" in source else None
    skip = re.compile(source["skip_paragraphs"]) if "skip_paragraphs" in source else None
    for path, data in files:
        name, paragraphs, held, number = document_name(path).split(".")[0], [], 0, 0
        for block in blocks_of(decode(data)):
            if block[0][0] not in " \t" and held >= size:
                yield f"{name}-{number:04d}", finish(paragraphs)
                paragraphs, held, number = [], 0, number + 1
            text = " ".join(block)
            if skip and skip.search(text):
                continue
            if remove:
                text = remove.sub(" ", text)
            text = text.replace("{", "").replace("}", "")
            paragraphs.append(text)
            held += len(text)
        if paragraphs:
            yield f"{name}-{number:04d}", finish(paragraphs)


def extract_command(source, files):
    """Text that only the package's own program can print (training text alone: output of programs is not pinned)."""
    try:
        printed = subprocess.run(source["command"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise PrepareError(f"package {source['package']}: {source['command'][0]} failed: {error}") from None
    paragraphs, size, number = [], 0, 0
    for block in blocks_of(decode(printed)):
        text = re.sub(r"(?:^|(?<= ))\d+ (?=[A-Z\[])", "", " ".join(squeeze(line) for line in block))
        paragraphs.append(text)
        size += len(text)
        if size >= source["bytes_per_document"]:
            yield f"part-{number:04d}", finish(paragraphs)
            paragraphs, size, number = [], 0, number + 1
    if paragraphs:
        yield f"part-{number:04d}", finish(paragraphs)


EXTRACTORS = {
    "html": extract_html,
    "rst": extract_rst,
    "fortunes": extract_fortunes,
    "wordnet": extract_wordnet,
    "dictd": extract_dictd,
    "command": extract_command,
}


# ---------------------------------------------------------------------------------------------------------------------
# Installed packages
# ---------------------------------------------------------------------------------------------------------------------

def installed_versions(root):
    """{package: version} from dpkg's own status file, so that --root works and no program is run."""
    path = os.path.join(root, "var/lib/dpkg/status")
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError as error:
        raise PrepareError(f"{path}: {error.strerror}; this script reads packages of a Debian system") from None
    versions = {}
    for stanza in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.split("\n") if ": " in line and not line.startswith(" "))
        if fields.get("Status", "").endswith(" installed"):
            versions[fields["Package"]] = fields.get("Version", "unknown")
    return versions


def read_files(source, root):
    """The source's files as [(path inside the package, bytes)], in a fixed order."""
    if "files" not in source:
        return []
    found = []
    for pattern in source["files"]:
        fixed = pattern.split("*")[0]
        base = os.path.join(root, fixed if fixed.endswith("/") else os.path.dirname(fixed))
        for folder, folders, names in os.walk(base):
            folders.sort()
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), root)
                # fnmatch's * also matches slashes, which is what patterns of whole trees want.
                if fnmatch.fnmatchcase(path, pattern):
                    found.append(path)
    excluded = source.get("exclude", [])
    found = sorted({p for p in found if not any(fnmatch.fnmatchcase(p, pattern) for pattern in excluded)})
    if not found:
        raise PrepareError(f"package {source['package']} is installed but none of its files matches "
                           f"{source['files'][0]} (dpkg may have been told to leave documentation out)")
    files = []
    for path in found:
        full = os.path.join(root, path)
        try:
            with open(full, "rb") as stream:
                data = stream.read()
            if path.endswith((".gz", ".dz")):
                data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise PrepareError(f"package {source['package']}: {full}: {error}") from None
        files.append((path, data))
    return files


def documents_of(source, root):
    """[(document name, text)] of one source, without documents too short to be worth a file."""
    shortest = source.get("shortest", 200)
    documents = {}
    for name, text in EXTRACTORS[source["extract"]](source, read_files(source, root)):
        if len(text) < shortest:
            continue
        if name in documents:
            raise PrepareError(f"package {source['package']}: two documents are called {name}")
        documents[name] = text
    return sorted(documents.items())


def check_installed(source, versions):
    for package in [source["package"]] + source.get("also", []):
        if package not in versions:
            raise PrepareError(f"package {package} is not installed: apt-get install {package}")


def check_pin(source, versions, name, text):
    expected = source["heldout"][name]
    found = hashlib.sha256(text.encode()).hexdigest() if text is not None else "no such document"
    if found != expected:
        package = source["package"]
        raise PrepareError(f"package {package} {versions[package]} (pinned with {source['version']}): held-out document "
                           f"{source['source']}/{name}: sha256 expected {expected}, found {found}")


# ---------------------------------------------------------------------------------------------------------------------
# Commands
# ---------------------------------------------------------------------------------------------------------------------

def list_packages(config, split):
    names = set()
    for source in config["sources"]:
        if split == "train" or source.get("heldout"):
            names.update([source["package"]] + source.get("also", []))
    return sorted(names)


def prepare(config, root, out, train):
    """Everything is written into a folder beside the target and renamed, so a failure leaves what was there before."""
    versions = installed_versions(root)
    splits = ["heldout"] + (["train"] if train else [])
    os.makedirs(out, exist_ok=True)
    counts = {}
    with tempfile.TemporaryDirectory(dir=out, prefix=".prepare-") as work:
        for source in config["sources"]:
            pins = source.get("heldout", {})
            if not pins and not train:
                continue
            check_installed(source, versions)
            documents = documents_of(source, root)
            texts = dict(documents)
            for name in sorted(pins):
                check_pin(source, versions, name, texts.get(name))
            left_out = source.get("neither", [])
            for name, text in documents:
                split = "heldout" if name in pins else "train"
                if split not in splits or (split == "train" and name in left_out):
                    continue
                folder = os.path.join(work, split, source["source"])
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8", newline="\n") as stream:
                    stream.write(text)
                files, size = counts.get((split, source["source"]), (0, 0))
                counts[split, source["source"]] = files + 1, size + len(text.encode())
        os.chmod(work, 0o755)
        for split in splits:
            target = os.path.join(out, split)
            old = os.path.join(work, "old-" + split)
            if os.path.isdir(target):
                os.rename(target, old)
            os.rename(os.path.join(work, split), target)
    return counts


def pin(config, root):
    """Fill in versions and hashes of the documents named as held out."""
    versions = installed_versions(root)
    for source in config["sources"]:
        if not source.get("heldout"):
            continue
        check_installed(source, versions)
        texts = dict(documents_of(source, root))
        source["version"] = versions[source["package"]]
        for name in source["heldout"]:
            if name not in texts:
                raise PrepareError(f"package {source['package']}: no document {name}")
            source["heldout"][name] = hashlib.sha256(texts[name].encode()).hexdigest()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", action="store_true", help="also write the training documents")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(HERE), ".data", "text"), metavar="DIR")
    parser.add_argument("--root", default="/", metavar="DIR", help="where the packages are installed (default /)")
    parser.add_argument("--packages", default=os.path.join(HERE, "packages.json"), metavar="FILE")
    parser.add_argument("--list-packages", choices=["heldout", "train"])
    parser.add_argument("--pin", action="store_true", help="rewrite versions and hashes in the packages file")
    options = parser.parse_args(arguments)
    try:
        with open(options.packages, encoding="utf-8") as stream:
            config = json.load(stream)
        if options.list_packages:
            print("\n".join(list_packages(config, options.list_packages)))
            return 0
        if options.pin:
            pin(config, options.root)
            with open(options.packages + ".new", "w", encoding="utf-8") as stream:
                json.dump(config, stream, indent=2)
                stream.write("\n")
            os.rename(options.packages + ".new", options.packages)
            return 0
        counts = prepare(config, options.root, options.out, options.train)
    except PrepareError as error:
        print(f"prepare_text.py: {error}", file=sys.stderr)
        return 3
    except (OSError, ValueError) as error:
        print(f"prepare_text.py: {error}", file=sys.stderr)
        return 3
    for (split, source), (files, size) in sorted(counts.items()):
        print(f"{split}/{source}: {files} documents, {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
