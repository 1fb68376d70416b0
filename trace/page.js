/* SPDX-License-Identifier: Apache-2.0 */
// page.js - the script of `swsim render -o x.html`: a run, a schedule or a counterexample on a canvas, to be zoomed,
// searched and asked; or a picture that is only zoomed.
//
// The data are those of page.c: for each run its lanes, names, and columns of numbers in base64 for the boxes, lane by lane
// in the order of their starts. Nothing is fetched, and texts reach the page as texts only.
//
// A lane keeps a tree over its boxes: a node stands for FAN nodes below it and knows how long each colour was busy in it.
// Zoomed out, nodes are drawn instead of boxes, each colour as high as its share of the time, so that a frame costs as
// much as the window has points, whatever the size of the run.
'use strict';

const FAN = 4, GUTTER = 130, OVERVIEW = 7, AXIS = 33, HEADING = 18, STREAM = 24, THREAD = 13, GAP = 5, STEP_ROW = 7;
const NARROW = 6, FOLDED = 3, LOW = 5, WITH_NAME = 9, MEMORY = 96, GROUP = 8, MANY_RANKS = 16, MOST_LEGEND = 18, MOST_CURVES = 9, HATCHED = 96;
const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const canvas = byId('canvas'), paint = canvas.getContext('2d', { alpha: false }), tip = byId('tip'), bar = byId('bar'), foot = byId('foot');
const view = { start: 0, end: 1, top: 0, dark: false, path: false, steps: false, rank: 0, search: '', matches: null, folded: new Set(), at: -1, tall: 0 };
let lanes = [], scale = 1, rows = [], strip = null, drawn = 0, waiting = false, hits = [], hit = -1, pointer = null, colors = {}, widths = new Map(), ready = false;

// ---- data ---------------------------------------------------------------------------------------

// A column: the bytes of a number, a colon, the numbers.
function column(text) {
  const colon = text.indexOf(':'), raw = atob(text.slice(colon + 1)), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const Kind = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array }[text.slice(0, colon)];
  return new Kind(bytes.buffer);
}

// What a colour takes of the time, of the children from..to of a level; waits, with negative numbers, stand last.
function sumOf(children, from, to) {
  const times = new Map();
  let busy = 0, end = 0;
  for (let i = from; i < to; i++) {
    end = Math.max(end, children[i].end);
    for (const [color, time] of children[i].parts) {
      times.set(color, (times.get(color) || 0) + time);
      busy += time;
    }
  }
  return { start: children[from].start, end, parts: [...times].sort((a, b) => (a[0] < 0) - (b[0] < 0) || a[0] - b[0]), busy };
}

const isWait = (run, span) => run.cause !== null && run.cause[span] > 0;
const colorOf = (run, span) => isWait(run, span) ? -run.look[run.cause[span] - 1] - 1 : run.color[run.name[span]];

function leaf(run, span) {
  return { start: run.start[span], end: run.start[span] + run.length[span], parts: [[colorOf(run, span), run.length[span]]], busy: run.length[span] };
}

// Levels of a lane above its boxes, made when they are first needed.
function levelOf(lane, level) {
  while (lane.levels.length <= level) {
    const below = lane.levels[lane.levels.length - 1], nodes = [];
    const count = below ? below.length : lane.last - lane.first;
    for (let i = 0; i < count; i += FAN) {
      const to = Math.min(i + FAN, count);
      if (below) nodes.push(sumOf(below, i, to));
      else {
        const leaves = [];
        for (let k = i; k < to; k++) leaves.push(leaf(lane.run, lane.first + k));
        nodes.push(sumOf(leaves, 0, leaves.length));
      }
    }
    lane.levels.push(nodes);
  }
  return lane.levels[level];
}

function openRun(run, number) {
  run.number = number;
  run.start = column(run.starts);
  run.length = column(run.lengths);
  run.name = column(run.names_of);
  run.iteration = column(run.iterations_of); // 0: none, else 1 + the number
  run.cause = run.causes_of ? column(run.causes_of) : null; // 0: work; else 1 + the place among run.causes
  run.other = run.others_of ? column(run.others_of) : null; // of an overlapped pair: 1 + the second number
  run.from = column(run.edges_from);
  run.to = column(run.edges_to);
  run.begin = run.form === 'timeline' ? run.start.reduce((a, b) => Math.min(a, b), run.end) : 0; // a window of a run begins later
  run.onPath = new Uint8Array(run.start.length);
  for (const span of run.path) run.onPath[span] = 1;
  run.needs = new Map();
  for (let i = 0; i < run.to.length; i++) {
    if (!run.needs.has(run.to[i])) run.needs.set(run.to[i], []);
    run.needs.get(run.to[i]).push(run.from[i]);
  }
  run.lanes = run.agents.map((agent, i) => ({
    run, agent, first: agent.first, last: i + 1 < run.agents.length ? run.agents[i + 1].first : run.start.length, levels: [],
    usual: run.form === 'schedule' ? 11 : run.form === 'story' ? STREAM : agent.kind === 'stream' ? STREAM : THREAD,
  }));
  if (run.memory) run.levels = { time: column(run.memory.times), bytes: column(run.memory.bytes) };
  if (run.memory) run.memory.peak = run.levels.bytes.reduce((a, b) => Math.max(a, b), 0);
}

const laneOf = (run, span) => run.lanes.findLast((lane) => lane.first <= span);

// The first box of a lane that ends behind a time.
function find(lane, time) {
  let low = lane.first, high = lane.last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.run.start[middle] + lane.run.length[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ---- words --------------------------------------------------------------------------------------

// Steps of a counterexample are counted; where a schedule has no times, what an F lasts is the unit.
function time(ns) {
  const run = data.runs[0];
  if (run.form === 'story') {
    const at = Math.round(ns), last = run.story.steps.length;
    return at < last ? 'step ' + (at + 1) : at === last ? 'the end' : '';
  }
  if (run.unit) return parseFloat((ns / run.unit).toPrecision(5)) + ' F';
  const size = Math.abs(ns);
  const [unit, by] = size >= 1e9 ? ['s', 1e9] : size >= 1e6 ? ['ms', 1e6] : size >= 1e3 ? ['us', 1e3] : ['ns', 1];
  return parseFloat((ns / by).toPrecision(7)) + ' ' + unit;
}

function amount(run, bytes) {
  if (run.memory.activation) return parseFloat((bytes / run.memory.activation).toPrecision(4)) + ' activations';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (bytes >= 1024 && i < units.length - 1) { bytes /= 1024; i++; }
  return parseFloat(bytes.toPrecision(3)) + ' ' + units[i];
}

const number = (run, span) => run.iteration[span] === 0 ? '' : String(run.iteration[span] - 1) +
  (run.other && run.other[span] ? '+' + (run.other[span] - 1) : '');
const label = (run, span) => (run.names[run.name[span]] + ' ' + number(run, span)).trim();
const place = (lane) => lane.run.form === 'schedule' ? lane.agent.name
  : (lane.agent.ranks ? lane.agent.ranks.replace(/ alike:/, '') : lane.agent.rank < 0 ? '' : 'rank ' + lane.agent.rank) + ' ' + lane.agent.kind + ' ' + lane.agent.name;

// Of what a box needed, that which was over last.
function lastNeed(run, span) {
  let best = -1;
  for (const from of run.needs.get(span) || [])
    if (best < 0 || run.start[from] + run.length[from] > run.start[best] + run.length[best]) best = from;
  return best;
}

function needWords(run, span) {
  const need = run.form === 'timeline' ? lastNeed(run, span) : -1;
  if (need < 0) return '';
  const early = run.start[span] - run.start[need] - run.length[need];
  return '\nneeded last: ' + label(run, need) + ' (' + place(laneOf(run, need)) + '), over ' +
    (early >= 0 ? time(early) + ' before' : time(-early) + ' after it began');
}

function spanWords(lane, span) {
  const run = lane.run, start = run.start[span], what = label(run, span);
  if (run.form === 'story')
    return isWait(run, span) ? place(lane) + ' ' + run.causes[run.cause[span] - 1] : time(start) + ': ' + (run.story.steps[start] || place(lane) + ' ' + what);
  const when = '\n' + place(lane) + '\n' + time(start) + ' to ' + time(start + run.length[span]) + ', ' + time(run.length[span]);
  if (isWait(run, span)) {
    const next = nextWork(lane, span);
    return (what ? what + ' ' : '') + 'waits for ' + run.causes[run.cause[span] - 1] + when + (next < 0 ? '' : '\nnext: ' + label(run, next) + needWords(run, next));
  }
  return (run.form === 'schedule' ? what.replace(/ (\d+)\+(\d+)$/, ' of microbatches $1 and $2').replace(/ (\d+)$/, ' of microbatch $1') : what) +
    when + needWords(run, span) + (run.onPath[span] ? '\non the critical path' : '');
}

function nextWork(lane, span) {
  for (let i = span; i < lane.last; i++) if (!isWait(lane.run, i)) return i;
  return -1;
}

function gapWords(lane, span) {
  const run = lane.run, from = span > lane.first ? run.start[span - 1] + run.length[span - 1] : 0;
  if (run.form === 'story') return place(lane);
  if (span >= lane.last) return 'idle: no more work\n' + place(lane);
  const next = nextWork(lane, span);
  return (run.form === 'schedule' ? 'bubble of ' : 'idle for ') + time(run.start[span] - from) + '\n' + place(lane) +
    (next < 0 ? '' : '\nnext: ' + label(run, next) + needWords(run, next));
}

// ---- colours ------------------------------------------------------------------------------------

// Of a run with paints of its own, else of the theme: names by their number, waits by -1 - their look.
function fillOf(run, color) {
  if (color < 0) return colors.theme.waits[-color - 1];
  return run.paints ? run.paints[color] : colors.theme.fills[color];
}

function takeColors() {
  const style = getComputedStyle(document.documentElement);
  colors = { theme: view.dark ? data.onDark : data.onLight };
  for (const name of ['ground', 'ink', 'grey', 'line', 'lane', 'bar', 'mark', 'hatch']) colors[name] = style.getPropertyValue('--' + name).trim();
  colors.bubble = null;
}

// A hatched strip as wide as the window, made once: copying it costs a tenth of filling with a pattern.
function hatched() {
  const w = Math.ceil(width()) + 1;
  if (colors.bubble?.width === w) return colors.bubble;
  const strip = document.createElement('canvas'), pen = strip.getContext('2d', { alpha: false });
  strip.width = w;
  strip.height = HATCHED;
  pen.fillStyle = colors.ground;
  pen.fillRect(0, 0, w, HATCHED);
  pen.strokeStyle = colors.hatch;
  for (let at = -HATCHED; at < w; at += 6) { pen.moveTo(at, 0); pen.lineTo(at + HATCHED, HATCHED); }
  pen.stroke();
  return colors.bubble = strip;
}

// Black or white, whichever is easier to read on a colour.
const inks = new Map();
function inkOn(fill) {
  if (!inks.has(fill)) {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(fill.slice(i, i + 2), 16));
    inks.set(fill, 0.299 * r + 0.587 * g + 0.114 * b < 130 ? '#ffffff' : '#1a1a1a');
  }
  return inks.get(fill);
}

// The names that take most of the time, and how waits look.
function legend() {
  const list = byId('legend'), times = new Map(), looks = new Map();
  let bubbles = false;
  for (const run of data.runs) {
    bubbles ||= run.form === 'schedule';
    for (let i = 0; i < run.start.length; i++) {
      if (!isWait(run, i)) times.set(run.names[run.name[i]], [(times.get(run.names[run.name[i]])?.[0] || 0) + run.length[i], run, run.name[i]]);
      else if (!looks.has(run.look[run.cause[i] - 1])) looks.set(run.look[run.cause[i] - 1], run.causes[run.cause[i] - 1]);
    }
  }
  list.replaceChildren();
  const add = (fill, words, kind) => {
    const item = document.createElement('span'), swatch = document.createElement('i');
    if (kind) swatch.className = kind;
    else swatch.style.background = fill;
    item.append(swatch, words);
    list.append(item);
  };
  const names = data.runs[0].form === 'schedule' ? [...times] : [...times].sort((a, b) => b[1][0] - a[1][0]);
  if (data.runs[0].form === 'story') names.length = 0; // its boxes have words
  for (const [name, [, run, color]] of names.slice(0, MOST_LEGEND)) if (name) add(fillOf(run, run.color[color]), name);
  if (names.length > MOST_LEGEND) list.append('and ' + (names.length - MOST_LEGEND) + ' more');
  for (const [look, words] of looks) add(colors.theme.waits[look], data.runs[0].form === 'story' ? 'blocked' : data.waits[look]);
  if (bubbles) add('', 'bubble', 'bubble');
  if (data.runs[0].note) list.append(data.runs[0].note);
}

// ---- drawing ------------------------------------------------------------------------------------

const memoryHeight = () => data.runs.some((run) => run.memory) ? MEMORY : 0;
// The size of the canvas, asked for once a frame: to ask may lay out the whole page again.
let sheetWidth = 0, sheetHeight = 0;
function measure() {
  sheetWidth = canvas.clientWidth;
  sheetHeight = canvas.clientHeight;
}
const width = () => sheetWidth - GUTTER - 20;
const xOf = (at) => GUTTER + ((at - view.start) / (view.end - view.start)) * width();
const timeAt = (x) => view.start + ((x - GUTTER) / width()) * (view.end - view.start);

function box(x, y, w, h, fill) {
  paint.fillStyle = fill;
  paint.fillRect(x, y, w, h);
  drawn++;
}

// Colours above each other, from x to end, each as high as its time times `scale`. What follows with the same shares makes
// the strip longer, as to fill one long box costs no more than to fill a short one.
function addStrip(run, x, end, y, high, parts, scale) {
  if (strip && strip.run === run && strip.y === y && x < strip.end + 0.8 && parts.length === strip.parts.length &&
    parts.every(([color, busy], i) => color === strip.parts[i][0] && Math.abs(busy * scale - strip.parts[i][1] * strip.scale) < 0.5)) {
    strip.end = end;
    return;
  }
  endStrip();
  strip = { run, x, end, y, high, parts, scale };
}

function endStrip() {
  if (!strip) return;
  let base = strip.y + strip.high;
  for (const [color, busy] of strip.parts)
    box(strip.x, base -= busy * strip.scale, Math.max(strip.end - strip.x, 0.6), busy * strip.scale, fillOf(strip.run, color));
  strip = null;
}

// A font that is set already costs nothing: to parse one takes longer than to write a number with it.
let fontNow = '';
function setFont(font) {
  if (font !== fontNow) paint.font = fontNow = font;
}

function widthOf(words) {
  let known = widths.get(fontNow);
  if (!known || known.size > 20000) widths.set(fontNow, known = new Map());
  let w = known.get(words);
  if (w === undefined) known.set(words, w = paint.measureText(words).width);
  return w;
}

function drawSpan(lane, span, y) {
  const run = lane.run, x = Math.max(xOf(run.start[span]), GUTTER), end = xOf(run.start[span] + run.length[span]);
  const w = Math.min(end, GUTTER + width()) - x, wait = isWait(run, span), high = lane.height;
  if (w <= 0) return;
  const dim = (view.matches && !view.matches[run.number][span]) || (view.path && !run.onPath[span]) || (view.at >= 0 && run.start[span] > view.at);
  if (dim) paint.globalAlpha = 0.2;
  const fill = fillOf(run, colorOf(run, span)), pair = run.pairs?.[run.name[span]];
  if (!dim && !pair && (wait ? w <= 8 : w <= 5 || high <= WITH_NAME)) {
    addStrip(run, x, x + w, y, high, [[colorOf(run, span), 1]], high);
    return;
  }
  endStrip();
  box(x, y, Math.max(w, 0.5), pair ? high / 2 : high, pair ? fillOf(run, pair[0]) : fill);
  if (pair) box(x, y + high / 2, Math.max(w, 0.5), high / 2, fillOf(run, pair[1]));
  if (!wait && w > 5 && w <= 12 && view.at < 0 && !view.path && !pair) box(x + w - 1, y, 1, high, 'rgba(0,0,0,.28)');
  else if (!wait && w > 5 && high > 5) {
    const now = view.at >= 0 && run.start[span] <= view.at && view.at < run.start[span] + run.length[span];
    paint.strokeStyle = now || (view.path && run.onPath[span]) ? colors.mark : pair ? '#1a1a1a' : 'rgba(0,0,0,.28)';
    paint.lineWidth = now ? 2 : 1;
    paint.strokeRect(x + 0.5, y + 0.5, w - 1, high - 1);
  }
  if (w > 8 && high > 9) {
    const words = wait ? run.causes[run.cause[span] - 1] : run.form === 'schedule' ? number(run, span) || 'opt' : run.form === 'story' ? storyLabel(run, span) : label(run, span);
    setFont((wait ? 9 : Math.min(12, Math.round(high * 0.75))) + 'px Helvetica, Arial, sans-serif');
    if (run.form === 'story') {
      paint.fillStyle = wait ? colors.mark : colors.ink;
      drawLines(words, x + w / 2, y, w - 6, high);
      paint.globalAlpha = 1;
      return;
    }
    const short = widthOf(words) < w - 4 ? words : number(run, span);
    if (short && (!wait || short === words) && widthOf(short) < w - 2) {
      paint.fillStyle = wait ? colors.grey : run.paints ? inkOn(fill) : colors.ink;
      paint.fillText(short, x + w / 2, y + high / 2 + 0.5);
    }
  }
  paint.globalAlpha = 1;
}

const storyLabel = (run, span) => (run.story.short[run.start[span]] || label(run, span));

// Words in as many lines as the box has room for.
function drawLines(words, x, y, room, high) {
  const lines = [''], most = Math.max(1, Math.floor(high / 12));
  for (const word of words.split(' ')) {
    const longer = (lines[lines.length - 1] + ' ' + word).trim();
    if (widthOf(longer) <= room || lines[lines.length - 1] === '') lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  if (lines.length > most) lines.splice(most - 1, lines.length, lines.slice(most - 1).join(' '));
  lines.forEach((line, i) => paint.fillText(widthOf(line) > room ? cut(line, room) : line, x, y + high / 2 + (i - (lines.length - 1) / 2) * 12));
}

function cut(words, room) {
  let kept = words;
  while (kept.length > 3 && widthOf(kept + '...') > room) kept = kept.slice(0, -2);
  return kept.length > 3 ? kept + '...' : '';
}

function drawNode(run, node, y, height) {
  const x = Math.max(xOf(node.start), GUTTER), w = Math.max(Math.min(xOf(node.end), GUTTER + width()) - x, 0.6);
  addStrip(run, x, x + w, y, height, node.parts, height / Math.max(node.end - node.start, node.busy));
}

function drawLane(lane) {
  const y = lane.y - view.top, run = lane.run;
  if (y + lane.height < AXIS || y > sheetHeight) return;
  if (run.form === 'schedule') {
    const x = Math.max(xOf(0), GUTTER), end = Math.min(xOf(run.end), GUTTER + width());
    const from = Math.round(x), w = Math.round(end) - from, top = Math.round(y), high = Math.round(lane.height);
    if (w > 0) paint.drawImage(hatched(), 0, 0, w, high, from, top, w, high);
  } else box(GUTTER, y, width(), lane.height, colors.lane);
  if (lane.height >= WITH_NAME) {
    paint.fillStyle = colors.ink;
    setFont(Math.min(12, Math.max(9, Math.round(lane.height * 0.7))) + 'px Helvetica, Arial, sans-serif');
    paint.textAlign = 'right';
    paint.fillText(cutName(lane.agent.name), GUTTER - 8, y + lane.height / 2);
    paint.textAlign = 'center';
  }
  const first = find(lane, view.start), last = Math.min(find(lane, view.end) + 1, lane.last);
  let level = -1, count = last - first;
  const across = last > first ? Math.min(xOf(run.start[last - 1] + run.length[last - 1]), GUTTER + width()) -
    Math.max(xOf(run.start[first]), GUTTER) : 0;
  while (count > Math.max(across, 1) / NARROW && count > 1) { count /= FAN; level++; }
  if (level < 0 || (view.matches && last - first < 20000) || run.form === 'story') {
    for (let i = first; i < last; i++) if (run.start[i] < view.end) drawSpan(lane, i, y);
    endStrip();
    return;
  }
  const nodes = levelOf(lane, level), size = FAN ** (level + 1);
  for (let i = Math.floor((first - lane.first) / size); i < nodes.length && nodes[i].start < view.end; i++)
    drawTree(lane, level, i, y);
  endStrip();
}

// A node with long gaps is drawn by its parts, so that the gaps stay.
function drawTree(lane, level, at, y) {
  const node = levelOf(lane, level)[at], across = xOf(node.end) - xOf(node.start);
  const wide = across > 6 * NARROW || (across > NARROW && node.busy < 0.75 * (node.end - node.start));
  if (node.end < view.start || node.start > view.end) return;
  if (!wide) drawNode(lane.run, node, y, lane.height);
  else if (level > 0)
    for (let i = at * FAN; i < Math.min((at + 1) * FAN, levelOf(lane, level - 1).length); i++) drawTree(lane, level - 1, i, y);
  else
    for (let i = lane.first + at * FAN; i < Math.min(lane.first + (at + 1) * FAN, lane.last); i++) drawSpan(lane, i, y);
}

const cutName = (name) => name.length > 20 ? name.slice(0, 19) + '\u2026' : name;

// The whole, and the part of it that is seen.
function drawOverview() {
  const from = beginning(), all = extent(), part = (at) => GUTTER + (Math.min(Math.max(at - from, 0) / (all - from), 1)) * width();
  box(GUTTER, 0, width(), OVERVIEW, colors.lane);
  box(part(view.start), 0, Math.max(part(view.end) - part(view.start), 2), OVERVIEW, colors.grey);
}

function drawAxis() {
  const run = data.runs[0], unit = run.unit || 1, least = Math.max(((view.end - view.start) / width()) * 90 / unit, run.form === 'story' || run.unit ? 1 : 0);
  const decade = 10 ** Math.floor(Math.log10(least));
  const step = unit * [1, 2, 5, 10].map((f) => f * decade).find((s) => s >= least * 0.999);
  setFont('11px Helvetica, Arial, sans-serif');
  for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) {
    const x = xOf(at);
    box(x, AXIS - 5, 1, sheetHeight, colors.line);
    paint.fillStyle = colors.grey;
    paint.fillText(time(at), Math.min(x, sheetWidth - 34), OVERVIEW + (AXIS - OVERVIEW) / 2 - 2);
  }
}

function drawPath() {
  paint.save();
  paint.beginPath();
  paint.rect(GUTTER, AXIS, width(), sheetHeight);
  paint.clip();
  paint.strokeStyle = colors.mark;
  paint.lineWidth = 2;
  for (const run of data.runs) {
    paint.beginPath();
    run.path.forEach((span) => {
      const lane = laneOf(run, span), y = lane.y - view.top + lane.height - 1;
      paint.lineTo(xOf(run.start[span]), y);
      paint.lineTo(xOf(run.start[span] + run.length[span]), y);
    });
    paint.stroke();
  }
  paint.restore();
}

function drawHeadings() {
  paint.textAlign = 'left';
  paint.fillStyle = colors.grey;
  setFont('10px Helvetica, Arial, sans-serif');
  for (const heading of rows)
    paint.fillText((heading.key === undefined ? '' : view.folded.has(heading.key) ? '\u25b8 ' : '\u25be ') + heading.text, 12, heading.y - view.top + HEADING / 2 + 2);
  paint.textAlign = 'center';
}

// Arrows around the cycle of a counterexample, from box to box, when its end is seen.
function drawCycle(run) {
  if (view.at >= 0 && view.at < run.story.steps.length) return;
  paint.strokeStyle = paint.fillStyle = colors.mark;
  paint.lineWidth = 1.5;
  run.story.cycle.forEach(([from, to]) => {
    const a = laneOf(run, from), b = laneOf(run, to), x = xOf(run.start[from] + run.length[from]) + 3;
    const y = a.y - view.top + a.height / 2, end = b.y - view.top + b.height / 2;
    paint.beginPath();
    paint.moveTo(x, y);
    if (a === b) paint.arc(x + 5, y, 5, Math.PI, 3 * Math.PI);
    else paint.quadraticCurveTo(x + 16, (y + end) / 2, x + 2, end);
    paint.stroke();
    paint.beginPath();
    paint.moveTo(x, end); paint.lineTo(x + 6, end - 3); paint.lineTo(x + 6, end + 3);
    paint.fill();
  });
}

// The first level of a rank from a time on, or one before it.
function levelAt(run, from, to, time) {
  let low = from, high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (run.levels.time[middle] < time) low = middle + 1;
    else high = middle;
  }
  return Math.max(from, low - (time === view.start ? 1 : 0)) + (time === view.end && low < to ? 1 : 0);
}

// What ranks hold over time, of many some, its limit and its peak; the rank under the pointer stands out.
function drawMemory() {
  const run = data.runs.find((r) => r.memory), top = sheetHeight - MEMORY + 14, high = MEMORY - 24;
  const peak = run.memory.peak, most = Math.max(run.memory.limit || 0, peak) || 1;
  const y = (bytes) => top + high * (1 - bytes / most), over = pointer && under(pointer.x, pointer.y)?.lane;
  box(0, sheetHeight - MEMORY, sheetWidth, MEMORY, colors.ground);
  paint.save();
  paint.beginPath();
  paint.rect(GUTTER, top - 2, width(), high + 4);
  paint.clip();
  const every = Math.ceil(run.lanes.length / MOST_CURVES);
  run.lanes.forEach((lane, rank) => {
    if (rank % every !== 0 && rank !== run.lanes.length - 1 && lane !== over) return;
    const from = run.memory.first[rank], to = rank + 1 < run.memory.first.length ? run.memory.first[rank + 1] : run.levels.time.length;
    const [first, last] = [view.start, view.end].map((at) => levelAt(run, from, to, at)), stride = Math.max(1, Math.ceil((last - first) / width()));
    paint.globalAlpha = over ? (lane === over ? 1 : 0.12) : 0.6;
    paint.strokeStyle = lane === over ? colors.mark : colors.ink;
    paint.lineWidth = lane === over ? 2 : 1;
    paint.beginPath();
    let held = first > from ? run.levels.bytes[first - 1] : 0;
    for (let i = first; i < last; i += stride) {
      let bytes = 0; // the highest of those that one point stands for
      for (let k = i; k < Math.min(i + stride, last); k++) bytes = Math.max(bytes, run.levels.bytes[k]);
      const x = xOf(run.levels.time[i]);
      paint.lineTo(x, y(held));
      paint.lineTo(x, y(bytes));
      held = bytes;
    }
    if (last >= to) paint.lineTo(xOf(run.end), y(held));
    else paint.lineTo(GUTTER + width(), y(held));
    paint.stroke();
  });
  paint.globalAlpha = 1;
  if (run.memory.limit) box(GUTTER, y(run.memory.limit), width(), 1, colors.mark);
  paint.restore();
  paint.fillStyle = colors.grey;
  setFont('11px Helvetica, Arial, sans-serif');
  paint.textAlign = 'right';
  paint.fillText(over ? 'memory of ' + over.agent.name : 'memory of a rank', GUTTER - 8, top + 6);
  paint.fillText('peak ' + amount(run, peak), GUTTER - 8, top + 22);
  if (run.memory.limit) paint.fillText('limit ' + amount(run, run.memory.limit), GUTTER - 8, top + 38);
  paint.textAlign = 'center';
}

// A row for each iteration, from its own start: the streams of the rank, one thin line each.
function stepRows() {
  const run = data.runs[0], streams = run.lanes.filter((l) => l.agent.rank === view.rank && l.agent.kind === 'stream');
  return { run, streams, high: STEP_ROW * streams.length + 8, steps: run.iterations.filter((step) => step[0] === view.rank) };
}

function drawSteps() {
  const { run, streams, high, steps } = stepRows();
  steps.forEach(([, number, start, end], i) => {
    const y = AXIS + 6 + i * high - view.top;
    if (y + high < AXIS || y > sheetHeight) return;
    paint.fillStyle = colors.grey;
    setFont('11px Helvetica, Arial, sans-serif');
    paint.textAlign = 'right';
    paint.fillText('iteration ' + number, GUTTER - 8, y + high / 2 - 4);
    paint.textAlign = 'center';
    streams.forEach((lane, k) => {
      for (let s = find(lane, start); s < lane.last && run.start[s] < end; s++) {
        if (run.iteration[s] !== number + 1 || isWait(run, s)) continue;
        const x = xOf(run.start[s] - start), w = xOf(run.start[s] + run.length[s] - start) - x;
        if (x + w > GUTTER) box(Math.max(x, GUTTER), y + k * STEP_ROW, Math.max(w, 0.5), STEP_ROW - 1, fillOf(run, run.color[run.name[s]]));
      }
    });
  });
}

function draw() {
  waiting = false;
  drawn = 0;
  measure();
  const ratio = window.devicePixelRatio || 1, w = sheetWidth * ratio, h = sheetHeight * ratio;
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; fontNow = ''; }
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  box(0, 0, sheetWidth, sheetHeight, colors.ground);
  paint.textBaseline = 'middle';
  paint.textAlign = 'center';
  paint.lineWidth = 1;
  drawAxis();
  paint.save();
  paint.beginPath();
  paint.rect(0, AXIS, sheetWidth, sheetHeight - AXIS - memoryHeight());
  paint.clip();
  if (view.steps) drawSteps();
  else {
    lanes.forEach(drawLane);
    drawHeadings();
    if (view.path) drawPath();
    for (const run of data.runs) if (run.form === 'story') drawCycle(run);
  }
  paint.restore();
  drawOverview();
  if (memoryHeight()) drawMemory();
  Object.assign(document.body.dataset, { drawn, found: hits.length, start: view.start, end: view.end });
  if (pointer) tell();
  remember();
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(draw);
}

// ---- layout -------------------------------------------------------------------------------------

// Groups of lanes that fold: the agents of one kind of a rank; of many ranks of a schedule eight each.
function groupOf(run, lane, place) {
  if (run.form === 'story') return { key: undefined, text: run.agents.some((a) => a.rank > 0) ? 'rank ' + lane.agent.rank : '' };
  if (run.form !== 'schedule')
    return { key: run.number + '.' + lane.agent.rank + lane.agent.kind[0], text: (lane.agent.ranks || 'rank ' + lane.agent.rank) + ' ' + lane.agent.kind + 's' };
  if (run.lanes.length <= MANY_RANKS) return { key: undefined, text: '' };
  const first = Math.floor(place / GROUP) * GROUP, last = Math.min(first + GROUP, run.lanes.length) - 1;
  return { key: run.number + '.' + first, text: 'ranks ' + first + '\u2013' + last };
}

function placeLanes(run, scale, y) {
  const order = (l) => l.agent.rank * 8 + ['rank', 'stream', 'thread', 'driver', 'schedule'].indexOf(l.agent.kind);
  let before = '';
  // The ranks of a counterexample have their streams in one order; in a timeline an empty lane has nothing to show.
  const name = (a, b) => (run.form === 'story' ? a.agent.name.localeCompare(b.agent.name) : 0);
  const shown = run.lanes.filter((l) => run.form !== 'timeline' || l.last > l.first);
  shown.sort((a, b) => order(a) - order(b) || name(a, b)).forEach((lane, i) => {
    const group = groupOf(run, lane, i), folded = view.folded.has(group.key);
    const many = run.form === 'schedule' && run.lanes.length > MANY_RANKS, low = many && lane.usual * scale < WITH_NAME;
    if (group.text !== before) { // beside low lanes, which have no names, there is room for it
      if (low && before) y += GAP;
      rows.push({ ...group, y: low ? y - 2 : y });
      if (!low) y += HEADING;
    }
    before = group.text;
    lane.y = y;
    lane.height = folded ? FOLDED : lane.usual * scale;
    y += lane.height + (folded || low ? 1 : many ? 2 : GAP);
    lanes.push(lane);
  });
  return y;
}

// Lanes are as high as the window allows, up to some times their usual height; those of schedules become lower, too, so
// that all ranks are seen, but no lower than can be told apart.
function layOut() {
  measure();
  scale = view.tall || 1;
  for (let pass = 0; pass < 3; pass++) {
    let y = AXIS + 2, high = 0;
    lanes = [];
    rows = [];
    for (const run of data.runs) {
      if (data.runs.length > 1) { rows.push({ text: run.title + ': ' + run.about, y }); y += HEADING; }
      y = placeLanes(run, scale, y) + 2 * GAP;
    }
    for (const lane of lanes) high += lane.height > FOLDED ? lane.usual : 0;
    view.height = y;
    const room = sheetHeight - memoryHeight() - y, schedule = data.runs[0].form === 'schedule';
    if (view.tall || high === 0 || pass === 2) break;
    if (room > 0 && pass === 0) scale = Math.min(1 + room / high, 8);
    else if (room < 0 && schedule) scale = Math.max(scale + room / high, LOW / lanes[0].usual);
    else if (room > 0 && schedule && pass === 1) scale = Math.min(scale + room / high, (WITH_NAME - 0.1) / lanes[0].usual);
  }
  fitBar();
}

function makeTaller(factor) {
  view.tall = Math.max(LOW / lanes[0].usual, Math.min(scale * factor, 12));
  layOut();
  redraw();
}

// How far down there is something to see.
function allHeight() {
  if (!view.steps) return view.height + memoryHeight();
  const { high, steps } = stepRows();
  return AXIS + steps.length * high + 20;
}

// The scrollbar is as long as the part below the axis.
function fitBar() {
  const room = sheetHeight - AXIS - memoryHeight(), all = allHeight() - AXIS - memoryHeight();
  bar.hidden = all <= room + 1;
  bar.style.height = room + 'px';
  bar.style.bottom = memoryHeight() + 'px';
  byId('inner').style.height = all + 'px';
  view.top = bar.hidden ? 0 : Math.max(0, Math.min(view.top, all - room));
}

function extent() {
  let end = 1;
  for (const run of data.runs) {
    if (view.steps) for (const [, , start, stop] of run.iterations) end = Math.max(end, stop - start);
    else end = Math.max(end, run.end);
  }
  return end;
}

const beginning = () => view.steps ? 0 : Math.min(...data.runs.map((run) => run.begin));

function fit() {
  view.start = beginning();
  view.end = extent() * (data.runs[0].form === 'story' ? 1.04 : 1); // with room for the arrows of its cycle
  redraw();
}

// In both directions.
function fitAll() {
  view.tall = 0;
  layOut();
  fit();
}

function zoom(at, factor) {
  const least = data.runs[0].form === 'story' ? 2 : 1;
  if ((view.end - view.start) * factor < least || (view.end - view.start) * factor > 20 * extent()) return;
  view.start = at - (at - view.start) * factor;
  view.end = at + (view.end - at) * factor;
  redraw();
}

function move(part) {
  const by = (view.end - view.start) * part;
  view.start += by;
  view.end += by;
  redraw();
}

function scroll(by) {
  view.top += by;
  fitBar();
  bar.scrollTop = view.top;
  redraw();
}

function fold(key) {
  if (!view.folded.delete(key)) view.folded.add(key);
  layOut();
  redraw();
}

// ---- search -------------------------------------------------------------------------------------

function search(text) {
  view.search = text;
  hits = [];
  hit = -1;
  view.matches = text ? data.runs.map((run) => new Uint8Array(run.start.length)) : null;
  let total = 0;
  for (const run of text ? data.runs : []) {
    const [, name, wanted] = text.toLowerCase().match(/^(.*?)(?:\s+(\d+))?$/);
    const named = run.names.map((n) => n.toLowerCase().includes(name) || n.toLowerCase().includes(text.toLowerCase()));
    for (let i = 0; i < run.start.length; i++) {
      if (isWait(run, i) || !named[run.name[i]] || (wanted !== undefined && run.iteration[i] > 0 && run.iteration[i] !== +wanted + 1)) continue;
      view.matches[run.number][i] = 1;
      hits.push([run, i]);
      total += run.length[i];
    }
  }
  byId('found').textContent = text ? hits.length + ' found' + (data.runs[0].form === 'story' ? '' : ', ' + time(total)) : '';
  redraw();
}

function nextHit() {
  if (!hits.length) return;
  hit = (hit + 1) % hits.length;
  show(...hits[hit]);
}

function show(run, span) {
  const lane = laneOf(run, span), around = Math.max(run.length[span] * 6, 1);
  view.start = run.start[span] + run.length[span] / 2 - around;
  view.end = view.start + 2 * around;
  view.top = lane.y - sheetHeight / 2;
  scroll(0);
}

// ---- what is under the pointer ------------------------------------------------------------------

function under(x, y) {
  if (y < AXIS || y > sheetHeight - memoryHeight()) return null;
  const lane = lanes.find((l) => y + view.top >= l.y && y + view.top < l.y + l.height);
  if (!lane || x < GUTTER || view.steps) return null;
  const at = timeAt(x), span = find(lane, at);
  return { lane, span, inside: span < lane.last && lane.run.start[span] <= at };
}

function wordsUnder(x, y) {
  const it = under(x, y);
  return !it ? '' : it.inside ? spanWords(it.lane, it.span) : gapWords(it.lane, it.span);
}

// After each frame, too: what is under a resting pointer changes with the view.
function tell() {
  const words = wordsUnder(pointer.x, pointer.y);
  if (words === tip.textContent && !words === (tip.style.display === 'none')) return;
  tip.style.display = words ? 'block' : 'none';
  tip.textContent = words;
  placeTip();
}

function placeTip() {
  tip.style.left = Math.min(pointer.x + 14, sheetWidth - tip.offsetWidth - 6) + 'px';
  tip.style.top = Math.min(pointer.y + 14, sheetHeight - tip.offsetHeight - 6) + 'px';
}

function hover(event) {
  const before = pointer && memoryHeight() ? under(pointer.x, pointer.y)?.lane : null;
  pointer = { x: event.offsetX, y: event.offsetY };
  tell();
  placeTip();
  if (memoryHeight() && under(pointer.x, pointer.y)?.lane !== before) redraw();
}

// ---- a counterexample, step by step -------------------------------------------------------------

// Step `at`, counted from 0; behind the last one the end, with what is blocked.
function stepTo(at) {
  const story = data.runs[0].story, last = story.steps.length;
  view.at = Math.max(0, Math.min(at, last));
  byId('at').textContent = view.at < last ? 'step ' + (view.at + 1) + ' of ' + last : 'the end';
  foot.textContent = view.at < last ? story.steps[view.at] : story.sentence;
  if (view.at < view.start || view.at + 1 > view.end) {
    const span = view.end - view.start;
    view.start = Math.max(0, view.at + 0.5 - span / 2);
    view.end = view.start + span;
  }
  redraw();
}

// ---- controls -----------------------------------------------------------------------------------

function press(name, on) {
  view[name] = on;
  byId(name).setAttribute('aria-pressed', on);
  document.documentElement.classList.toggle('dark', view.dark);
  byId('rank').hidden = !view.steps || byId('rank').length < 2;
  if (name === 'dark') { takeColors(); legend(); }
  if (name === 'steps') { view.top = 0; fitBar(); fit(); }
  if (name === 'path') foot.textContent = on ? pathWords(data.runs[0]) : '';
  redraw();
}

// Shares of the names on the path.
function pathWords(run) {
  const times = new Map();
  let all = 0;
  for (const span of run.path) {
    const name = run.names[run.name[span]] || '';
    times.set(name, (times.get(name) || 0) + run.length[span]);
    all += run.length[span];
  }
  const shares = [...times].sort((a, b) => b[1] - a[1]).slice(0, 8);
  return 'critical path: ' + run.path.length + ' operations, ' + time(all) + ' of ' + time(run.end) + ': ' +
    shares.map(([name, ns]) => name + ' ' + Math.round((100 * ns) / run.end) + '%').join(', ');
}

function help(on) {
  byId('help').hidden = !on;
  byId('keys').setAttribute('aria-pressed', on);
}

function focus() {
  const it = pointer && under(pointer.x, pointer.y);
  if (it && it.inside) show(it.lane.run, it.span);
  else fit();
}

// A click on the overview goes there, one on a heading folds its group.
function click(event) {
  if (event.offsetY < OVERVIEW && event.offsetX > GUTTER) {
    const span = view.end - view.start, at = beginning() + ((event.offsetX - GUTTER) / width()) * (extent() - beginning());
    view.start = at - span / 2;
    view.end = at + span / 2;
    redraw();
  }
  const y = event.offsetY + view.top, heading = rows.find((row) => row.key !== undefined && y >= row.y && y < row.y + HEADING);
  if (heading && event.offsetX < GUTTER && event.offsetY > AXIS) fold(heading.key);
}

function listen() {
  let drag = null, moved = false;
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    if (event.shiftKey) scroll(event.deltaY || event.deltaX);
    else zoom(timeAt(event.offsetX), Math.exp(event.deltaY * 0.0015));
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => { drag = event; moved = false; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener('pointerup', (event) => { drag = null; if (!moved) click(event); });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) { hover(event); return; }
    moved ||= Math.abs(event.offsetX - drag.offsetX) + Math.abs(event.offsetY - drag.offsetY) > 3;
    if (!moved) return;
    move((drag.offsetX - event.offsetX) / width());
    scroll(drag.offsetY - event.offsetY);
    drag = event;
  });
  canvas.addEventListener('pointerleave', () => { tip.style.display = 'none'; pointer = null; redraw(); });
  canvas.addEventListener('dblclick', focus);
  bar.addEventListener('scroll', () => { view.top = bar.scrollTop; redraw(); });
  for (const name of ['path', 'steps', 'dark']) byId(name).addEventListener('click', () => press(name, !view[name]));
  byId('fit').addEventListener('click', fitAll);
  byId('first').addEventListener('click', () => stepTo(0));
  byId('back').addEventListener('click', () => stepTo(view.at - 1));
  byId('next').addEventListener('click', () => stepTo(view.at + 1));
  byId('last').addEventListener('click', () => stepTo(Infinity));
  const entry = byId('search');
  entry.addEventListener('input', () => search(entry.value.trim()));
  entry.addEventListener('keydown', (event) => { if (event.key === 'Enter') nextHit(); event.stopPropagation(); });
  byId('rank').addEventListener('change', (event) => { view.rank = +event.target.value; fitBar(); redraw(); });
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const story = data.runs[0].form === 'story', at = pointer ? timeAt(pointer.x) : (view.start + view.end) / 2;
    const keys = { a: () => move(-0.15), d: () => move(0.15), w: () => zoom(at, 0.7), s: () => zoom(at, 1 / 0.7), f: focus, 0: fitAll, '+': () => makeTaller(1.3), '-': () => makeTaller(1 / 1.3),
      '/': () => { entry.focus(); event.preventDefault(); },
      ArrowLeft: () => story ? stepTo(view.at - 1) : move(-0.15), ArrowRight: () => story ? stepTo(view.at + 1) : move(0.15),
      ArrowUp: () => scroll(-40), ArrowDown: () => scroll(40) };
    (keys[event.key] || keys[event.key.toLowerCase()])?.();
  });
  window.addEventListener('resize', () => { layOut(); redraw(); });
}

// ---- the address --------------------------------------------------------------------------------

// What a browser is asked to keep does not change more often than a few times a second.
let remembering = 0;
function remember() {
  if (!ready || remembering) return;
  remembering = setTimeout(() => {
    remembering = 0;
    const parts = [];
    if (view.search) parts.push('q=' + encodeURIComponent(view.search));
    for (const name of ['path', 'steps']) if (view[name]) parts.push(name);
    if (view.dark !== data.preferred) parts.push('dark=' + (view.dark ? 1 : 0));
    if (view.steps) parts.push('rank=' + view.rank);
    if (view.at >= 0) parts.push('step=' + (view.at + 1));
    if (view.start !== beginning() || (view.end !== extent() && data.runs[0].form !== 'story') || view.end > 1.05 * extent()) parts.push('from=' + Math.round(view.start), 'to=' + Math.round(view.end));
    if (view.tall) parts.push('tall=' + view.tall.toFixed(2));
    if (view.top > 0) parts.push('top=' + Math.round(view.top));
    if (view.folded.size) parts.push('fold=' + [...view.folded].join(','));
    history.replaceState(null, '', parts.length ? '#' + parts.join('&') : location.href.split('#')[0]);
  }, 250);
}

// #q=Forward&path&dark&steps&rank=1&step=4&from=1e6&to=2e6&tall=2&top=90&fold=0.1s: what is seen. at=lane,time: what the pointer
// would tell there. A part that is not understood is told below the picture.
function follow(hash) {
  const wrong = [], isNumber = (text) => text !== '' && Number.isFinite(+text);
  const taken = {
    q: (text) => { search(byId('search').value = text); return true; },
    path: () => !byId('path').hidden && (press('path', true), true),
    steps: () => !byId('steps').hidden && (press('steps', true), true),
    dark: (text) => (press('dark', text !== '0'), true),
    rank: (text) => [...byId('rank').options].some((o) => o.value === text) && ((byId('rank').value = text), (view.rank = +text), true),
    step: (text) => isNumber(text) && data.runs[0].form === 'story' && (stepTo(+text - 1), true),
    from: (text) => isNumber(text) && ((view.start = +text), true),
    to: (text) => isNumber(text) && +text > view.start && ((view.end = +text), true),
    tall: (text) => +text > 0 && +text <= 12 && ((view.tall = +text), true),
    top: (text) => isNumber(text) && ((view.top = +text), true),
    fold: (text) => text.split(',').every((key) => rows.some((row) => row.key === key) && view.folded.add(key)),
    at: (text) => {
      const [lane, at] = text.split(',').map(Number);
      return !!lanes[lane] && Number.isFinite(at) && ((document.body.dataset.words = wordsUnder(xOf(at), lanes[lane].y - view.top + 1)), true);
    },
  };
  const parts = [...new URLSearchParams(hash.slice(1))].filter(([key]) => key !== '');
  const rank = (part) => Object.keys(taken).indexOf(part[0]);
  for (const [key, text] of parts.sort((a, b) => rank(a) - rank(b)))
    if (!Object.hasOwn(taken, key) || !taken[key](text)) wrong.push(key + (text ? '=' + text : ''));
  if (wrong.length) foot.textContent = 'The address has ' + wrong.join(', ') + ', which this page does not understand; the rest is shown.';
  document.body.dataset.wrong = wrong.length;
  layOut();
  scroll(0);
  draw();
}

// ---- a picture ----------------------------------------------------------------------------------

// The graph of a plan: its SVG, zoomed and moved by its viewBox.
function beginPicture() {
  const svg = byId('picture').querySelector('svg'), [x, y, w, h] = svg.getAttribute('viewBox').split(/[ ,]+/).map(Number), sheet = byId('picture');
  let seen = [x, y, w, h], drag = null;
  const apply = () => { svg.setAttribute('viewBox', seen.join(' ')); document.body.dataset.seen = seen.join(' '); };
  const scaleTo = () => Math.max(seen[2] / sheet.clientWidth, seen[3] / sheet.clientHeight);
  const zoomBy = (factor, px = sheet.clientWidth / 2, py = sheet.clientHeight / 2) => {
    const fx = px / sheet.clientWidth, fy = py / sheet.clientHeight;
    seen = [seen[0] + seen[2] * fx * (1 - factor), seen[1] + seen[3] * fy * (1 - factor), seen[2] * factor, seen[3] * factor];
    apply();
  };
  const moveBy = (dx, dy) => { seen[0] += dx; seen[1] += dy; apply(); };
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  sheet.hidden = false;
  canvas.hidden = true;
  for (const name of ['search', 'found', 'path', 'steps', 'legend', 'dark']) byId(name).hidden = true;
  sheet.addEventListener('wheel', (event) => { event.preventDefault(); zoomBy(Math.exp(event.deltaY * 0.0015), event.clientX - sheet.getBoundingClientRect().x, event.clientY - sheet.getBoundingClientRect().y); }, { passive: false });
  sheet.addEventListener('pointerdown', (event) => { drag = event; });
  window.addEventListener('pointerup', () => { drag = null; });
  sheet.addEventListener('pointermove', (event) => {
    if (!drag) return;
    moveBy((drag.clientX - event.clientX) * scaleTo(), (drag.clientY - event.clientY) * scaleTo());
    drag = event;
  });
  const whole = () => { seen = [x, y, w, h]; apply(); };
  byId('fit').addEventListener('click', whole);
  document.addEventListener('keydown', (event) => {
    const by = 60 * scaleTo();
    const keys = { w: () => zoomBy(0.7), s: () => zoomBy(1 / 0.7), a: () => moveBy(-by, 0), d: () => moveBy(by, 0), 0: whole, f: whole,
      ArrowLeft: () => moveBy(-by, 0), ArrowRight: () => moveBy(by, 0), ArrowUp: () => moveBy(0, -by), ArrowDown: () => moveBy(0, by) };
    keys[event.key]?.();
  });
  apply();
}

// ---- begin --------------------------------------------------------------------------------------

function beginRuns() {
  data.runs.forEach(openRun);
  const run = data.runs[0], ranks = [...new Set(run.agents.map((agent) => agent.rank))], story = run.form === 'story';
  byId('steps').hidden = data.runs.length > 1 || !run.iterations.some(([, , start, end]) => end > start);
  byId('path').hidden = !data.runs.some((r) => r.path.length);
  byId('player').hidden = !story;
  for (const rank of ranks) byId('rank').add(new Option(run.agents.find((agent) => agent.rank === rank).ranks?.replace(/ alike:/, '') || 'rank ' + rank, rank));
  view.rank = ranks[0] || 0;
  data.preferred = data.dark || (!data.light && matchMedia('(prefers-color-scheme: dark)').matches);
  press('dark', data.preferred);
  layOut();
  fit();
  if (story) stepTo(Infinity);
  if (lanes[0].height < WITH_NAME) foot.textContent = 'All ' + lanes.length + ' ranks are shown. + makes them higher, with their names and the numbers of microbatches; ? shows all keys.';
  listen();
  document.body.dataset.boxes = data.runs.reduce((sum, r) => sum + r.start.length, 0);
  document.body.dataset.lanes = lanes.length;
  document.body.dataset.form = run.form;
  follow(location.hash);
  window.addEventListener('hashchange', () => follow(location.hash));
  ready = true;
}

function begin() {
  document.title = byId('title').textContent = data.title;
  byId('about').textContent = data.runs.length ? data.runs[0].about : data.about;
  byId('keys').addEventListener('click', () => help(byId('help').hidden));
  document.addEventListener('keydown', (event) => {
    if (event.key === '?' && event.target.tagName !== 'INPUT') help(byId('help').hidden);
    if (event.key === 'Escape') help(false);
  });
  if (data.runs.length) beginRuns();
  else beginPicture();
}

begin();
