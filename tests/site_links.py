# SPDX-License-Identifier: Apache-2.0
# site_links.py FOLDER - the links of a folder of HTML pages: a line for each that leads nowhere, or that a page would load
# from the network. Exit status 1 if there is one.
import html.parser, pathlib, sys, urllib.parse

LOADS = {"link": "href", "script": "src", "img": "src", "iframe": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if attributes.get(LOADS.get(tag)):
            self.loads.append(attributes[LOADS[tag]])


top = pathlib.Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in top.rglob("*.html")}
bad = 0
for path, page in sorted(pages.items()):
    for link in page.loads + page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            wrong = link in page.loads and parts.scheme != "data"
        else:
            target = (path.parent / parts.path).resolve() if parts.path else path
            wrong = not target.exists() or parts.fragment and target in pages and parts.fragment not in pages[target].ids
        if wrong:
            bad += 1
            print(f"{path.relative_to(top)}: {link}")
print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {bad} bad")
sys.exit(bad > 0)
