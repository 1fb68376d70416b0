/* SPDX-License-Identifier: Apache-2.0 */
/* t_whole.c - complete and cut files of pictures (trace/whole.h). */
#include <string.h>

#include "trace/whole.h"
#include "tests/tap.h"

/* A PNG of one pixel, a PDF of no pages. */
static const char png[] =
    "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\001"
    "\000\000\000\001\010\006\000\000\000\037\025\304\211\000\000\000\015\111\104\101"
    "\124\170\332\143\020\120\060\370\017\000\002\004\001\140\122\342\251\141\000\000"
    "\000\000\111\105\116\104\256\102\140\202";
static const char pdf[] = "%PDF-1.5\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"
                          "xref\n0 2\n0000000000 65535 f \n0000000009 00000 n \n"
                          "trailer\n<< /Size 2 /Root 1 0 R >>\nstartxref\n45\n%%EOF\n";
static const char svg[] = "<svg>\n<g/>\n</svg>\n";

int main(void)
{
    char bytes[256];
    size_t cut = 0, changed = 0, cut_pdf = 0;
    tap_ok(whole_png(png, sizeof png - 1), "a PNG");
    for (size_t i = 0; i < sizeof png - 1; i++) {
        memcpy(bytes, png, sizeof png);
        bytes[i] ^= 1;
        cut += whole_png(png, i);
        changed += whole_png(bytes, sizeof png - 1);
    }
    tap_is_int((long long)cut, 0, "none that is cut");
    tap_is_int((long long)changed, 0, "none with a byte that is changed");
    tap_ok(!whole_png(png, sizeof png), "none with more bytes behind it");
    tap_ok(whole_pdf(pdf, sizeof pdf - 1), "a PDF");
    for (size_t i = 0; i < sizeof pdf - 2; i++)
        cut_pdf += whole_pdf(pdf, i);
    tap_is_int((long long)cut_pdf, 0, "none that is cut");
    memcpy(bytes, pdf, sizeof pdf);
    *strstr(bytes, "45\n%%EOF") = '9';
    tap_ok(!whole_pdf(bytes, sizeof pdf - 1), "none whose table is somewhere else");
    tap_ok(whole_svg(svg, sizeof svg - 1) && !whole_svg(svg, sizeof svg - 4), "an SVG");
    return tap_done();
}
