/* SPDX-License-Identifier: Apache-2.0 */
// page.js - the script of `swsim render -o timeline.html`: a run on a canvas, to be zoomed, searched and asked.
//
// The data are those of page.c: for each run its agents, names, iterations, and columns of numbers in base64 for the
// spans, agent by agent in the order of their starts. Nothing is fetched, and texts reach the page as texts only.
//
// A lane keeps a tree over its spans: a node stands for FAN nodes below it and knows how long each name was busy in it.
// Zoomed out, nodes are drawn instead of spans, each name as high as its share of the time, so that a frame costs as
// much as the window has points, whatever the size of the run.
'use strict';

const FAN = 16, GUTTER = 130, AXIS = 26, HEADING = 18, STREAM = 24, THREAD = 13, GAP = 5, STEP_ROW = 7;
const data = JSON.parse(document.getElementById('data').textContent);
const canvas = document.getElementById('canvas'), paint = canvas.getContext('2d');
const tip = document.getElementById('tip');
const view = { start: 0, end: 1, top: 0, dark: false, path: false, steps: false, rank: 0, search: '', matches: null };
let lanes = [], rows = [], drawn = 0, waiting = false, hits = [], hit = -1;

// ---- data ---------------------------------------------------------------------------------------

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes.buffer;
}

// What a name takes of the time, largest first, of the children from..to of a level.
function sumOf(children, from, to) {
  const times = new Map();
  let busy = 0;
  for (let i = from; i < to; i++)
    for (const [name, time] of children[i].parts) {
      times.set(name, (times.get(name) || 0) + time);
      busy += time;
    }
  const parts = [...times].sort((a, b) => a[0] - b[0]);
  return { start: children[from].start, end: Math.max(...children.slice(from, to).map((c) => c.end)), parts, busy };
}

function leaf(run, span) {
  const end = run.start[span] + run.length[span];
  const color = run.cause[span] > 0 ? -run.look[run.cause[span] - 1] - 1 : run.color[run.name[span]];
  return { start: run.start[span], end, parts: [[color, run.length[span]]], busy: run.length[span] };
}

// Levels of a lane above its spans, made when they are first needed.
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
  run.start = new Float64Array(bytesOf(run.starts));
  run.length = new Float64Array(bytesOf(run.lengths));
  run.name = new Int32Array(bytesOf(run.names_of));
  run.iteration = new Int32Array(bytesOf(run.iterations_of));
  run.cause = new Int32Array(bytesOf(run.causes_of)); // 0: work; else 1 + the place among run.causes
  run.from = new Int32Array(bytesOf(run.edges_from));
  run.to = new Int32Array(bytesOf(run.edges_to));
  run.onPath = new Uint8Array(run.start.length);
  for (const span of run.path) run.onPath[span] = 1;
  run.needs = new Map();
  for (let i = 0; i < run.to.length; i++) {
    if (!run.needs.has(run.to[i])) run.needs.set(run.to[i], []);
    run.needs.get(run.to[i]).push(run.from[i]);
  }
  run.lanes = run.agents.map((agent, i) => ({
    run, agent, first: agent.first, last: i + 1 < run.agents.length ? run.agents[i + 1].first : run.start.length,
    levels: [], height: agent.kind === 'stream' ? STREAM : THREAD,
  }));
}

const laneOf = (run, span) => run.lanes.findLast((lane) => lane.first <= span);

// The first span of a lane that ends behind a time.
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

function time(ns) {
  const size = Math.abs(ns);
  const [unit, by] = size >= 1e9 ? ['s', 1e9] : size >= 1e6 ? ['ms', 1e6] : size >= 1e3 ? ['us', 1e3] : ['ns', 1];
  return parseFloat((ns / by).toPrecision(7)) + ' ' + unit;
}

const label = (run, span) =>
  (run.name[span] < 0 ? '' : run.names[run.name[span]]) + (run.iteration[span] < 0 ? '' : ' ' + run.iteration[span]);
const place = (lane) => (lane.agent.ranks ? lane.agent.ranks.replace(/ alike:/, '') : 'rank ' + lane.agent.rank) + ' ' + lane.agent.kind + ' ' + lane.agent.name;

// Of what a span needed, that which was over last.
function lastNeed(run, span) {
  let best = -1;
  for (const from of run.needs.get(span) || [])
    if (best < 0 || run.start[from] + run.length[from] > run.start[best] + run.length[best]) best = from;
  return best;
}

function needWords(run, span) {
  const need = lastNeed(run, span);
  if (need < 0) return '';
  const early = run.start[span] - run.start[need] - run.length[need];
  return '\nneeded last: ' + label(run, need) + ' (' + place(laneOf(run, need)) + '), over ' +
    (early >= 0 ? time(early) + ' before' : time(-early) + ' after it began');
}

function spanWords(lane, span) {
  const run = lane.run, start = run.start[span], what = label(run, span);
  const when = '\n' + place(lane) + '\n' + time(start) + ' to ' + time(start + run.length[span]) + ', ' + time(run.length[span]);
  if (run.cause[span] > 0) {
    const next = nextWork(lane, span);
    return (what ? what + ' ' : '') + 'waits for ' + run.causes[run.cause[span] - 1] + when + (next < 0 ? '' : '\nnext: ' + label(run, next) + needWords(run, next));
  }
  return what + when + needWords(run, span) + (run.onPath[span] ? '\non the critical path' : '');
}

function nextWork(lane, span) {
  for (let i = span; i < lane.last; i++) if (lane.run.cause[i] === 0) return i;
  return -1;
}

function gapWords(lane, span) {
  const run = lane.run, from = span > lane.first ? run.start[span - 1] + run.length[span - 1] : 0;
  if (span >= lane.last) return 'idle: no more work\n' + place(lane);
  const next = nextWork(lane, span);
  return 'idle for ' + time(run.start[span] - from) + '\n' + place(lane) +
    (next < 0 ? '' : '\nnext: ' + label(run, next) + needWords(run, next));
}

// ---- colours ------------------------------------------------------------------------------------

// Names by their number, waits by -1 - their look.
function fillOf(color) {
  const theme = view.dark ? data.onDark : data.onLight;
  return color >= 0 ? theme.fills[color] : theme.waits[-color - 1];
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// ---- drawing ------------------------------------------------------------------------------------

const width = () => canvas.clientWidth - GUTTER - 12;
const xOf = (at) => GUTTER + ((at - view.start) / (view.end - view.start)) * width();
const timeAt = (x) => view.start + ((x - GUTTER) / width()) * (view.end - view.start);

function box(x, y, w, h, fill) {
  paint.fillStyle = fill;
  paint.fillRect(x, y, w, h);
  drawn++;
}

function drawSpan(lane, span, y) {
  const run = lane.run, x = Math.max(xOf(run.start[span]), GUTTER), end = xOf(run.start[span] + run.length[span]);
  const w = Math.min(end, GUTTER + width()) - x, wait = run.cause[span] > 0;
  if (w <= 0) return;
  const dim = (view.matches && !view.matches[run.number][span]) || (view.path && !run.onPath[span]);
  paint.globalAlpha = dim ? 0.25 : 1;
  box(x, y, Math.max(w, 0.5), lane.height, fillOf(wait ? -run.look[run.cause[span] - 1] - 1 : run.color[run.name[span]]));
  if (!wait && w > 3) {
    paint.strokeStyle = view.path && run.onPath[span] ? css('--mark') : 'rgba(0,0,0,.28)';
    paint.strokeRect(x + 0.5, y + 0.5, w - 1, lane.height - 1);
  }
  const words = wait ? run.causes[run.cause[span] - 1] : label(run, span);
  if (w > 14 && lane.height > 9) {
    paint.font = (wait ? 9 : 11) + 'px Helvetica, Arial, sans-serif';
    const short = paint.measureText(words).width < w - 4 ? words : run.iteration[span] < 0 ? '' : String(run.iteration[span]);
    if (!wait || short === words) {
      paint.fillStyle = wait ? css('--grey') : css('--ink');
      if (short && paint.measureText(short).width < w - 2) paint.fillText(short, x + w / 2, y + lane.height / 2);
    }
  }
  paint.globalAlpha = 1;
}

// Shares from the bottom up; waits, with negative numbers, stand last.
function drawNode(node, y, height) {
  const x = Math.max(xOf(node.start), GUTTER), w = Math.max(Math.min(xOf(node.end), GUTTER + width()) - x, 0.6);
  const all = Math.max(node.end - node.start, node.busy);
  let base = y + height;
  const parts = node.parts.filter((p) => p[0] >= 0).concat(node.parts.filter((p) => p[0] < 0));
  for (const [color, busy] of parts) {
    const share = (busy / all) * height;
    box(x, base - share, w, share, fillOf(color));
    base -= share;
  }
}

function drawLane(lane) {
  const y = lane.y - view.top;
  if (y + lane.height < AXIS || y > canvas.clientHeight) return;
  box(GUTTER, y, width(), lane.height, css('--lane'));
  paint.fillStyle = css('--ink');
  paint.font = (lane.agent.kind === 'stream' ? 12 : 10) + 'px Helvetica, Arial, sans-serif';
  paint.textAlign = 'right';
  paint.fillText(lane.agent.name.slice(0, 20), GUTTER - 8, y + lane.height / 2);
  paint.textAlign = 'center';
  const first = find(lane, view.start), last = Math.min(find(lane, view.end) + 1, lane.last);
  let level = -1, count = last - first;
  const across = last > first ? Math.min(xOf(lane.run.start[last - 1] + lane.run.length[last - 1]), GUTTER + width()) -
    Math.max(xOf(lane.run.start[first]), GUTTER) : 0;
  while (count > 1.2 * Math.max(across, 1) && count > 1) { count /= FAN; level++; }
  if (level < 0 || (view.matches && last - first < 200000)) {
    for (let i = first; i < last; i++) if (lane.run.start[i] < view.end) drawSpan(lane, i, y);
    return;
  }
  const nodes = levelOf(lane, level), size = FAN ** (level + 1);
  for (let i = Math.floor((first - lane.first) / size); i < nodes.length && nodes[i].start < view.end; i++)
    drawNode(nodes[i], y, lane.height);
}

function drawAxis() {
  const least = ((view.end - view.start) / width()) * 90, decade = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((f) => f * decade).find((s) => s >= least);
  box(0, 0, canvas.clientWidth, AXIS, css('--ground'));
  paint.font = '11px Helvetica, Arial, sans-serif';
  for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) {
    const x = xOf(at);
    box(x, AXIS - 5, 1, canvas.clientHeight, css('--line'));
    paint.fillStyle = css('--grey');
    paint.fillText(time(at), Math.min(x, canvas.clientWidth - 30), AXIS / 2 - 2);
  }
}

function drawPath() {
  paint.save();
  paint.beginPath();
  paint.rect(GUTTER, AXIS, width(), canvas.clientHeight);
  paint.clip();
  paint.strokeStyle = css('--mark');
  paint.lineWidth = 2;
  for (const run of data.runs) {
    paint.beginPath();
    run.path.forEach((span, i) => {
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
  paint.fillStyle = css('--grey');
  paint.font = '10px Helvetica, Arial, sans-serif';
  for (const heading of rows) paint.fillText(heading.text, 12, heading.y - view.top + HEADING / 2 + 2);
  paint.textAlign = 'center';
}

// A row for each iteration, from its own start: the streams of the rank, one thin line each.
function drawSteps() {
  const run = data.runs[0], streams = run.lanes.filter((l) => l.agent.rank === view.rank && l.agent.kind === 'stream');
  const high = STEP_ROW * streams.length + 8;
  const steps = run.iterations.filter((step) => step[0] === view.rank);
  steps.forEach(([, number, start, end], i) => {
    const y = AXIS + 6 + i * high - view.top;
    if (y + high < AXIS || y > canvas.clientHeight) return;
    paint.fillStyle = css('--grey');
    paint.textAlign = 'right';
    paint.fillText('iteration ' + number, GUTTER - 8, y + high / 2 - 4);
    paint.textAlign = 'center';
    streams.forEach((lane, k) => {
      for (let s = find(lane, start); s < lane.last && run.start[s] < end; s++) {
        if (run.iteration[s] !== number || run.cause[s] > 0) continue;
        const x = xOf(run.start[s] - start), w = xOf(run.start[s] + run.length[s] - start) - x;
        if (x + w > GUTTER) box(Math.max(x, GUTTER), y + k * STEP_ROW, Math.max(w, 0.5), STEP_ROW - 1, fillOf(run.color[run.name[s]]));
      }
    });
  });
}

function draw() {
  waiting = false;
  drawn = 0;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  paint.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  paint.textBaseline = 'middle';
  paint.textAlign = 'center';
  drawAxis();
  paint.save();
  paint.beginPath();
  paint.rect(0, AXIS, canvas.clientWidth, canvas.clientHeight);
  paint.clip();
  if (view.steps) drawSteps();
  else {
    lanes.forEach(drawLane);
    drawHeadings();
    if (view.path) drawPath();
  }
  paint.restore();
  Object.assign(document.body.dataset, { drawn, found: hits.length, start: view.start, end: view.end });
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(draw);
}

// ---- layout -------------------------------------------------------------------------------------

function layOut() {
  let y = AXIS;
  lanes = [];
  rows = [];
  for (const run of data.runs) {
    let before = '';
    if (data.runs.length > 1) { rows.push({ text: run.title + ': ' + run.about, y }); y += HEADING; }
    const order = (l) => l.agent.rank * 4 + ['stream', 'thread', 'driver', 'schedule'].indexOf(l.agent.kind);
    for (const lane of [...run.lanes].sort((a, b) => order(a) - order(b))) {
      const group = (lane.agent.ranks || 'rank ' + lane.agent.rank) + ' ' + lane.agent.kind + 's';
      if (group !== before) { rows.push({ text: group, y }); y += HEADING; }
      before = group;
      lane.y = y;
      y += lane.height + GAP;
      lanes.push(lane);
    }
    y += 2 * GAP;
  }
  view.height = y;
}

function fit() {
  view.start = 0;
  view.end = 1;
  for (const run of data.runs) {
    if (view.steps) for (const [, , start, end] of run.iterations) view.end = Math.max(view.end, end - start);
    else view.end = Math.max(view.end, run.end);
  }
  redraw();
}

function zoom(at, factor) {
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
  const high = view.steps ? data.runs[0].iterations.length * 60 : view.height;
  view.top = Math.max(0, Math.min(view.top + by, high - canvas.clientHeight / 2));
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
    const [, name, number] = text.toLowerCase().match(/^(.*?)(?:\s+(\d+))?$/);
    const named = run.names.map((n) => n.toLowerCase().includes(name) || n.toLowerCase().includes(text.toLowerCase()));
    for (let i = 0; i < run.start.length; i++) {
      if (run.name[i] < 0 || run.cause[i] > 0 || !named[run.name[i]] || (number !== undefined && run.iteration[i] >= 0 && run.iteration[i] !== +number)) continue;
      view.matches[run.number][i] = 1;
      hits.push([run, i]);
      total += run.length[i];
    }
  }
  document.getElementById('found').textContent = text ? hits.length + ' found, ' + time(total) : '';
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
  view.top = Math.max(0, lane.y - canvas.clientHeight / 2);
  redraw();
}

// ---- what is under the pointer ------------------------------------------------------------------

function under(x, y) {
  const lane = lanes.find((l) => y + view.top >= l.y && y + view.top < l.y + l.height);
  if (!lane || x < GUTTER || view.steps) return null;
  const at = timeAt(x), span = find(lane, at);
  return { lane, span, inside: span < lane.last && lane.run.start[span] <= at };
}

function wordsUnder(x, y) {
  const it = under(x, y);
  return !it ? '' : it.inside ? spanWords(it.lane, it.span) : gapWords(it.lane, it.span);
}

function hover(event) {
  const words = wordsUnder(event.offsetX, event.offsetY);
  tip.style.display = words ? 'block' : 'none';
  tip.textContent = words;
  tip.style.left = Math.min(event.offsetX + 14, canvas.clientWidth - tip.offsetWidth - 6) + 'px';
  tip.style.top = Math.min(event.offsetY + 14, canvas.clientHeight - tip.offsetHeight - 6) + 'px';
}

// ---- controls -----------------------------------------------------------------------------------

function press(name, on) {
  view[name] = on;
  document.getElementById(name).setAttribute('aria-pressed', on);
  document.documentElement.classList.toggle('dark', view.dark);
  document.getElementById('rank').hidden = !view.steps;
  if (name === 'steps') { view.top = 0; fit(); }
  if (name === 'path') document.getElementById('foot').textContent = on ? pathWords(data.runs[0]) : '';
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
  return 'critical path: ' + run.path.length + ' works, ' + time(all) + ' of ' + time(run.end) + ': ' +
    shares.map(([name, ns]) => name + ' ' + Math.round((100 * ns) / run.end) + '%').join(', ');
}

function listen() {
  let drag = null;
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    if (event.shiftKey) scroll(event.deltaY || event.deltaX);
    else zoom(timeAt(event.offsetX), Math.exp(event.deltaY * 0.0015));
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => { drag = event; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener('pointerup', () => { drag = null; });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) { hover(event); return; }
    move((drag.offsetX - event.offsetX) / width());
    scroll(drag.offsetY - event.offsetY);
    drag = event;
  });
  canvas.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
  canvas.addEventListener('dblclick', (event) => {
    const it = under(event.offsetX, event.offsetY);
    if (it && it.inside) show(it.lane.run, it.span);
  });
  for (const name of ['path', 'steps', 'dark'])
    document.getElementById(name).addEventListener('click', () => press(name, !view[name]));
  document.getElementById('fit').addEventListener('click', fit);
  const box_ = document.getElementById('search');
  box_.addEventListener('input', () => search(box_.value.trim()));
  box_.addEventListener('keydown', (event) => { if (event.key === 'Enter') nextHit(); event.stopPropagation(); });
  document.getElementById('rank').addEventListener('change', (event) => { view.rank = +event.target.value; redraw(); });
  document.addEventListener('keydown', (event) => {
    const middle = (view.start + view.end) / 2;
    const keys = { a: () => move(-0.15), d: () => move(0.15), w: () => zoom(middle, 0.7), s: () => zoom(middle, 1.4), '/': () => { box_.focus(); event.preventDefault(); }, f: fit,
      ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), ArrowUp: () => scroll(-40), ArrowDown: () => scroll(40) };
    if (keys[event.key]) keys[event.key]();
  });
  window.addEventListener('resize', redraw);
}

// #q=Forward&path&dark&steps&from=1e6&to=2e6&at=x,y: a link to what is seen, and to what the pointer would tell.
function follow(hash) {
  const wanted = new URLSearchParams(hash.slice(1));
  for (const name of ['path', 'steps', 'dark']) if (wanted.has(name)) press(name, true);
  if (wanted.has('q')) search(document.getElementById('search').value = wanted.get('q'));
  if (wanted.has('from')) view.start = +wanted.get('from');
  if (wanted.has('to')) view.end = +wanted.get('to');
  draw();
  if (wanted.has('at')) {
    const [lane, at] = wanted.get('at').split(',').map(Number);
    document.body.dataset.words = wordsUnder(xOf(at), lanes[lane].y - view.top + 1);
  }
}

function begin() {
  data.runs.forEach(openRun);
  const run = data.runs[0], ranks = [...new Set(run.agents.map((agent) => agent.rank))];
  document.title = document.getElementById('title').textContent = run.title;
  document.getElementById('about').textContent = run.about;
  for (const rank of ranks) document.getElementById('rank').add(new Option(run.agents.find((agent) => agent.rank === rank).ranks?.replace(/ alike:/, '') || 'rank ' + rank, rank));
  view.rank = ranks[0] || 0;
  view.dark = data.dark || (!data.light && matchMedia('(prefers-color-scheme: dark)').matches);
  press('dark', view.dark);
  layOut();
  fit();
  listen();
  document.body.dataset.boxes = data.runs.reduce((sum, r) => sum + r.start.length, 0);
  document.body.dataset.lanes = lanes.length;
  follow(location.hash);
}

begin();
