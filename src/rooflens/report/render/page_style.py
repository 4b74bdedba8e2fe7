"""The style of every page: light and dark, paper, narrow screens. Colours are Okabe and Ito's, lighter ones on dark."""

CSS = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1b1b;--minor:#595959;--line:#c4c4c4;--shade:#f3f3f3;
--value:#0072b2;--level:#1b1b1b;--up:#b34700;--down:#00618f;--warn:#8a5a00}
@media (prefers-color-scheme:dark){:root{--paper:#161616;--ink:#ececec;--minor:#b0b0b0;--line:#4d4d4d;--shade:#242424;
--value:#56b4e9;--level:#ececec;--up:#ff9d5c;--down:#7cc8f5;--warn:#f0c050}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:64rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.2rem;line-height:1.3;margin-top:2.2rem;border-bottom:1px solid var(--line)}
h1,h2,p,li,figcaption{overflow-wrap:anywhere}
a{color:inherit}
:focus-visible{outline:3px solid var(--value);outline-offset:2px}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.875rem;margin:.75rem 0}
th,td{padding:.2rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);unicode-bidi:isolate;
max-width:40ch;overflow-wrap:break-word}
thead th{background:var(--shade);vertical-align:bottom}tbody th{font-weight:inherit}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}thead .n{white-space:normal}
.minor,summary{color:var(--minor);font-size:.875rem}
.warning{border-left:4px solid var(--warn);padding-left:.75rem}
pre{overflow-x:auto;background:var(--shade);padding:.75rem;font-size:.8125rem;line-height:1.25}
blockquote{margin:1rem 0;padding-left:.75rem;border-left:4px solid var(--line);white-space:pre-wrap;overflow-wrap:anywhere}
figure{margin:1rem 0}figcaption{font-weight:600}
svg{display:block;width:100%;min-width:30rem;max-width:60rem;height:auto}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--minor)}
svg .grid{stroke:var(--line);stroke-width:.75}svg .axis{fill:none;stroke:var(--minor);stroke-width:1}
svg .path{fill:none;stroke:var(--value);stroke-width:1;opacity:.45}svg .bar{stroke:var(--value);stroke-width:1.5;opacity:.7}
svg .dot{fill:var(--value)}svg .level{stroke:var(--level);stroke-width:2}
svg .step{stroke-width:1.5;stroke-dasharray:5 3}svg .guess{stroke-dasharray:1 4}
svg .up{stroke:var(--up)}svg .down{stroke:var(--down)}
svg text.up{fill:var(--up);stroke:none;font-weight:700}svg text.down{fill:var(--down);stroke:none;font-weight:700}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--minor:#444;--line:#999;--shade:#fff;--value:#0072b2;
--level:#000;--up:#b34700;--down:#00618f;--warn:#8a5a00}
body{max-width:none;padding:0;font-size:10pt}nav{display:none}.scroll,pre{overflow:visible}pre{white-space:pre-wrap}
svg{min-width:0}figure,tr{break-inside:avoid}h1,h2,figcaption{break-after:avoid}thead{display:table-header-group}}
"""
