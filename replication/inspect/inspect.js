// Instruments for replication: panels(element, source, options) draws what an Inspector of package inspect measures.
//
//	import { panels, from } from "/debug/replication/inspect.js";
//	const p = panels(document.getElementById("net"), from("/debug/replication/"));
//
// A source is a function (since, peer) that returns what Inspector.AppendJSON does, as an object or a promise of one.
// from(url) makes one of an inspector's address; combine makes one of a client's and its server's. A source may add to
// the object:
//
//	compare: [{name: "JSON", kbits: 9840}]          what else the same would cost
//	lamp: {state: "equal", text: "Worlds equal", detail: "at tick 48 302"}   or "unknown", "differs"
//	set: {loss: 2}                                   what the user has set, drawn dashed
//
// panels returns {mark(label), peer(number), stop()}: mark draws a dotted line through all plots at this moment.

const KEPT = 240, SECONDS = 60, PER_SECOND = 4;
const TEXT = "#f1f5f7", SOFT = "#b4c0ca", MUTE = "#8c9aa6", LINE = "#a9c9e6", HAIR = "#232c34", YOU = "#ffbe3d", ALERT = "#ff7c98";
const PANEL = "#0d1115", AREA = "#26323c";
const STACK = ["#3d8fe0", "#a5dcf7", "#f2d75c", "#d96c24", "#b87be6"], OTHERS = "#d3dbe1", HEADERS = "#66727d";
const REASONS = [
	["hidden", "hidden", "#5a6873"], ["room", "budget", "#8fa6ba"], ["turn", "turn", "#d6e2ec"],
];
const NONE = "–";

// ---------------------------------------------------------------- numbers

export function number(v, decimals = 0) {
	if (v === null || v === undefined || !isFinite(v)) return NONE;
	const [digits, rest] = Math.abs(v).toFixed(decimals).split(".");
	const sign = v < 0 && Number(v.toFixed(decimals)) !== 0 ? "−" : "";
	return sign + digits.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (rest ? "." + rest : "");
}

// saved returns which share of what something would cost is saved; a dash where nothing, or next to nothing, is sent.
export function saved(kbits, of) {
	const percent = of > 0 && kbits >= 0.5 ? 100 * (1 - kbits / of) : null;
	return percent === null || percent >= 99.95 ? NONE : `${number(percent, 1)}\u00a0% saved`;
}

function withUnit(v, decimals, unit) {
	const n = number(v, decimals);
	return n === NONE || !unit ? n : n + "\u00a0" + unit;
}

const steps = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

function roundUp(v, least) {
	v = Math.max(v, least);
	const ten = 10 ** Math.floor(Math.log10(v));
	return steps.find(s => s * ten >= v * 0.9999) * ten;
}

// A Scale goes up at once, and down after 5 seconds.
class Scale {
	top = 0; lower = 0; waiting = 0;
	fit(v, least, now) {
		const wanted = roundUp(v, least);
		if (wanted >= this.top) { this.top = wanted; this.waiting = 0; return this.top; }
		if (!this.waiting) { this.waiting = now; this.lower = wanted; }
		this.lower = Math.max(this.lower, wanted);
		if (now - this.waiting > 5) { this.top = this.lower; this.waiting = 0; }
		return this.top;
	}
}

// ---------------------------------------------------------------- sources

export function from(url) {
	const base = new URL(url.endsWith("/") ? url : url + "/", document.baseURI);
	return async (since = 0, peer = -1) => {
		const answer = await fetch(new URL(`json?since=${since}&peer=${peer}`, base), { cache: "no-store" });
		if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
		return answer.json();
	};
}

// combine is what one client sees: its own source, and of its server, where it is peer number(), the components, what
// was held back and the time to encode. The server counts components of all peers together, so this client's are a
// share of them.
export function combine(client, server, number) {
	const theirs = new Record(), mine = new Record();
	return async since => {
		const [s, c] = await Promise.all([server(theirs.data ? theirs.next : 0, number()).catch(() => null), client(since)]);
		if (s) theirs.take(s);
		if (s?.peer) mine.take(s.peer);
		if (!theirs.data) return c;
		const n = c.samples.time.length;
		const tail = values => { // nothing while the server does not answer
			const last = n && s ? (values || []).slice(-n) : [];
			return [...Array(n - last.length).fill(null), ...last];
		};
		const all = tail(theirs.samples.bandwidth);
		c.stack = theirs.stack.map(part => tail(part).map((v, i) =>
			v === null || !all[i] ? null : v / all[i] * c.samples.bandwidth[i]));
		c.components = theirs.data.components;
		c.samples.messages = tail(theirs.samples.messages).map((v, i) =>
			v === null || !all[i] ? null : v / all[i] * c.samples.bandwidth[i]);
		for (const key of ["sent", "hidden", "room", "turn", "full"]) c.samples[key] = tail(mine.samples[key]);
		c.samples.encode = tail(theirs.samples.work);
		c.counters.Entries = theirs.data.counters.Entries;
		c.mtu = mine.data?.mtu; // of this client's path
		return c;
	};
}

// A Record has the samples of the last 60 seconds.
class Record {
	constructor() { this.clear(); }
	clear() { this.next = 0; this.samples = {}; this.stack = []; this.data = null; }
	take(data, fresh) {
		if (fresh || data.from !== this.next || (this.data && data.stack?.length !== this.data.stack?.length)) {
			this.samples = {};
			this.stack = [];
		}
		for (const [key, values] of Object.entries(data.samples)) this.samples[key] = join(this.samples[key], values);
		(data.stack || []).forEach((values, i) => { this.stack[i] = join(this.stack[i], values); });
		this.next = data.next;
		this.data = data;
	}
	// over returns the known values of the last seconds.
	over(key, seconds) {
		return (this.samples[key] || []).slice(-seconds * PER_SECOND).filter(v => v !== null);
	}
	mean(key, seconds = 1) { return mean(this.over(key, seconds)); }
	max(key, seconds = 1) { const v = this.over(key, seconds); return v.length ? Math.max(...v) : null; }
	sum(key, seconds = SECONDS) { const v = this.over(key, seconds); return v.length ? v.reduce((a, b) => a + b, 0) : null; }
	last(key) { return (this.samples[key] || []).at(-1) ?? null; }
	has(key) { return this.samples[key] !== undefined; }
}

const join = (old, values) => (old || []).concat(values).slice(-KEPT);
// smooth returns the mean of the last second at each sample, as the figures beside the plots have it.
const smooth = values => values.map((_, i) => mean(values.slice(Math.max(0, i - PER_SECOND + 1), i + 1).map(v => v || 0)));
const mean = v => v.length ? v.reduce((a, b) => a + b, 0) / v.length : null;

// ---------------------------------------------------------------- what the strips show

// A strip has a label and a value, another one below, lines (the first is the main one), and the least scale.
// Several may have the same id: the first that has its key is shown.
// On low screens, what is tall is left out.
const predicts = r => r.over("rollbacks", SECONDS).length > 0;
const strips = [
	{
		id: "size", key: "size", label: "Packet size", value: r => withUnit(r.mean("size"), 0, "B"),
		below: r => r.has("largest") ? "largest" : "",
		second: r => r.has("largest") ? withUnit(r.max("largest"), 0, "B") : "",
		lines: ["size", "largest"], area: true, limit: d => d.mtu, least: 100,
		alarmBelow: (r, d) => r.max("largest") > d.mtu,
	},
	{
		id: "roundTrip", key: "roundTrip", label: "Round trip", value: r => withUnit(r.mean("roundTrip"), 0, "ms"),
		below: r => r.has("jitter") ? "jitter" : r.has("worst") ? "slowest peer" : "",
		second: r => r.has("jitter") ? (r.mean("jitter") === null ? NONE : "± " + withUnit(r.mean("jitter"), 0, "ms"))
			: r.has("worst") ? withUnit(r.mean("worst"), 0, "ms") : "",
		lines: ["roundTrip", "worst"], least: 20,
	},
	{
		id: "loss", key: "loss", label: "Loss seen", value: r => withUnit(r.last("loss"), 1, "%"),
		below: (r, d) => d.set?.loss === undefined ? "over 10 s" : "set",
		second: (r, d) => d.set?.loss === undefined ? "" : withUnit(d.set.loss, 1, "%"),
		lines: ["loss"], least: 5, dashed: "set",
		alarm: r => r.last("loss") >= 10,
	},
	{
		id: "age", key: "age", label: "Baseline age", value: r => withUnit(r.max("age"), 0, "ticks"),
		below: r => r.has("full") ? "full states" : "", second: r => r.has("full") ? counted(r.sum("full")) : "",
		lines: ["age"], area: true, least: 10,
	},
	{
		id: "delay", key: "delay", label: "Play-out delay", value: r => withUnit(r.mean("delay"), 0, "ms"),
		below: "starved frames", second: r => counted(r.sum("starved")), lines: ["delay"], bars: "starved", least: 50,
		when: r => r.over("delay", SECONDS).length > 0,
	},
	{
		id: "rollbacks", key: "rollbacks", label: "Rollbacks", value: r => withUnit(r.sum("rollbacks", 1), 0, "/s"),
		below: "corrections", second: r => counted(r.sum("corrections")), lines: [], bars: "rollbacks", least: 5,
		words: (r, d, causes) => causes.slice(0, 3).map(c => `${c.name} ${number(c.count)}`).join("\u2002") || "no cause in 60\u00a0s",
		when: predicts,
	},
	{
		id: "depth", key: "depth", label: "Predicted ahead", tall: predicts, value: r => withUnit(r.mean("depth"), 0, "ticks"),
		below: "simulated again", second: r => withUnit(r.sum("again", 1), 0, "/s"), lines: ["depth"], bars: "missed", least: 10,
		words: r => `inputs missed ${counted(r.sum("missed"))}`,
		when: predicts,
	},
	{
		id: "sent", key: "sent", label: "Entities sent", value: r => withUnit(r.mean("sent"), 0, "/tick"),
		below: "held back", second: r => withUnit(held(r), 0, "/tick"), lines: ["sent"], reasons: true, least: 10,
	},
	{
		id: "backlog", key: "backlog", label: "Backlog", value: r => withUnit(r.mean("backlog"), 0, "B"),
		below: r => "budget", second: (r, d) => d.counters?.Budget ? withUnit(d.counters.Budget / 125, 0, "kbit/s") : "none",
		lines: ["backlog"], area: true, least: 1000,
	},
	{
		id: "work", key: "encode", label: "Encode, server", value: r => withUnit(r.mean("encode"), 0, "µs"),
		below: "decode, here", second: r => withUnit(r.mean("receive"), 0, "µs"), lines: ["encode", "receive"], least: 100,
	},
	{
		id: "work", key: "receive", label: "Frame", value: r => withUnit(r.mean("work"), 0, "µs"),
		below: "decode a packet", second: r => withUnit(r.mean("receive"), 0, "µs"), lines: ["work", "receive"], least: 100,
	},
	{
		id: "work", key: "work", label: "Replicate", value: r => withUnit(r.mean("work"), 0, "µs"),
		below: "longest", second: r => withUnit(r.max("longest"), 0, "µs"), lines: ["work", "longest"], least: 100,
		alarm: (r, d) => r.mean("work", 5) > 1e6 / d.rate, alarmBelow: (r, d) => r.max("longest") > 1e6 / d.rate,
	},
	{
		id: "ticks", key: "ticks", tall: predicts, label: (r, d) => d.kind === "client" ? "Frames" : "Ticks",
		value: r => withUnit(r.mean("ticks"), 1, "/s"),
		below: (r, d) => d.kind === "client" ? "" : "set", second: (r, d) => d.kind === "client" ? "" : withUnit(d.rate, 0, "/s"),
		lines: ["ticks"], least: 10, alarm: (r, d) => d.kind === "server" && r.mean("ticks", 5) < 0.95 * d.rate,
	},
];

const counted = v => v === null ? NONE : `${v < 1e4 ? number(v) : number(v / 1000) + "\u00a0k"} in 60\u00a0s`;

function held(r) {
	const all = REASONS.map(([key]) => r.mean(key));
	return all.every(v => v === null) ? null : all.reduce((a, b) => a + (b || 0), 0);
}

// ---------------------------------------------------------------- elements

function make(tag, name, ...children) {
	const e = document.createElement(tag);
	if (name) e.className = name;
	e.append(...children);
	return e;
}

// put writes text if it has changed.
function put(e, text) {
	if (e.shown !== text) { e.shown = text; e.textContent = text; }
}

function button(name, ...children) {
	const b = make("button", name, ...children);
	b.type = "button";
	return b;
}

// A Plot is a canvas with its scale.
class Plot {
	constructor(name) {
		this.canvas = make("canvas", name);
		this.canvas.setAttribute("aria-hidden", "true"); // its values are beside it
		this.scale = new Scale();
	}
	// begin clears it, and returns the width and height.
	begin() {
		const ratio = Math.min(window.devicePixelRatio || 1, 2);
		const w = this.canvas.clientWidth, h = this.canvas.clientHeight;
		if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
			this.canvas.width = Math.round(w * ratio);
			this.canvas.height = Math.round(h * ratio);
		}
		const c = this.c = this.canvas.getContext("2d");
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, w, h);
		this.w = w; this.h = h;
	}
	y(v) { return this.h - 1 - v / this.scale.top * (this.h - 3); }
	line(xs, values, colour, width = 1.25, dash = []) {
		const c = this.c;
		c.beginPath();
		c.setLineDash(dash);
		let down = false;
		values.forEach((v, i) => {
			if (v === null) { down = false; return; }
			const y = this.y(Math.min(v, this.scale.top));
			if (down) c.lineTo(xs[i], y); else c.moveTo(xs[i], y);
			down = true;
		});
		c.strokeStyle = colour; c.lineWidth = width; c.lineJoin = "round";
		c.stroke();
		c.setLineDash([]);
	}
	// band fills between two rows of values.
	band(xs, low, high, colour) {
		const c = this.c, n = xs.length;
		if (!n) return;
		c.beginPath();
		for (let i = 0; i < n; i++) c.lineTo(xs[i], this.y(Math.min(high[i] || 0, this.scale.top)));
		for (let i = n - 1; i >= 0; i--) c.lineTo(xs[i], this.y(Math.min(low[i] || 0, this.scale.top)));
		c.closePath();
		c.fillStyle = colour;
		c.fill();
	}
	level(v, colour, dash) {
		const c = this.c, y = Math.round(this.y(v)) + 0.5;
		c.beginPath();
		c.setLineDash(dash);
		c.moveTo(0, y); c.lineTo(this.w, y);
		c.strokeStyle = colour; c.lineWidth = 1;
		c.stroke();
		c.setLineDash([]);
	}
	marks(marks, now) {
		const c = this.c;
		c.beginPath();
		for (const m of marks) {
			const x = Math.round(this.w - (now - m.at) / SECONDS * this.w) + 0.5;
			if (x > 0) { c.moveTo(x, 0); c.lineTo(x, this.h); }
		}
		c.setLineDash([2, 3]);
		c.strokeStyle = SOFT; c.lineWidth = 1;
		c.stroke();
		c.setLineDash([]);
	}
}

const style = `
.ri { color: ${TEXT}; background: ${PANEL}; font: 12px/16px Inter, system-ui, sans-serif; font-variant-numeric: tabular-nums;
	container-type: inline-size; -webkit-text-size-adjust: 100% }
.ri * { box-sizing: border-box }
.ri [hidden] { display: none !important }
.ri button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: left }
.ri button:focus-visible { outline: 2px solid ${YOU}; outline-offset: 1px; border-radius: 2px }
.ri canvas { display: block; width: 100% }
.ri-columns { display: grid; grid-template-columns: minmax(0, 1fr) }
.ri-side { min-width: 0 }
.ri section { padding: 12px 20px 8px; border-bottom: 1px solid ${HAIR} }
.ri section.ri-last { border-bottom: 0 }
.ri h2 { font-size: 12px; line-height: 16px; font-weight: 600; margin: 0 }
.ri-soft { color: ${SOFT} } .ri-mute { color: ${MUTE} }
.ri-alert { color: ${ALERT} !important }
.ri-head { display: flex; align-items: center; justify-content: space-between; gap: 16px; min-height: 60px }
.ri-big { font-size: 60px; line-height: 60px; font-weight: 600; letter-spacing: -0.01em; white-space: nowrap }
.ri-big small { font-size: 20px; line-height: 1; font-weight: 400; color: ${MUTE}; letter-spacing: 0; margin-left: 6px }
.ri-lamp { display: flex; align-items: center; gap: 12px; text-align: left }
.ri-lamp b { display: block; font-size: 14px; line-height: 18px; font-weight: 600 }
.ri-lamp i { flex: none; width: 26px; height: 26px; border-radius: 50%; display: grid; place-items: center; font: 700 16px/1 system-ui;
	color: ${MUTE}; border: 2px solid }
.ri-equal i { color: ${PANEL}; background: #35d8ac; border: 0 } .ri-equal b { color: #35d8ac }
.ri-differs i { color: ${PANEL}; background: ${ALERT}; border: 0 } .ri-differs b { color: ${ALERT} }
.ri-compare { display: grid; grid-template-columns: 76px minmax(0, 1fr) auto auto; column-gap: 8px; row-gap: 4px; margin-top: 4px }
.ri-compare > * { white-space: nowrap }
.ri-bar { height: 10px; margin-top: 3px; background: #45525d; min-width: 3px }
.ri-bar.ri-you { background: ${YOU} }
.ri-right { text-align: right }
.ri-strong { font-weight: 600 }
.ri-row { display: grid; grid-template-columns: 160px minmax(0, 1fr) 34px; column-gap: 12px }
.ri-gutter { color: ${MUTE}; font-size: 11px; line-height: 12px; text-align: right; margin-left: -12px; white-space: nowrap; white-space: pre-line }
.ri-title { display: flex; justify-content: space-between; margin-bottom: 4px }
.ri-legend { display: flex; flex-direction: column }
.ri button.ri-part { display: grid; grid-template-columns: 10px minmax(0, 1fr) auto 8px; column-gap: 8px; align-items: center; height: 24px;
	margin: 0 -4px; padding: 0 4px; border: 1px solid transparent; border-radius: 2px }
.ri-part:hover { background: #182027 }
.ri button.ri-part[aria-pressed=true] { border-color: ${YOU} }
.ri-part i, .ri-key i { width: 10px; height: 10px; display: inline-block }
.ri-part span:nth-child(2) { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.ri-part span:last-child { color: ${MUTE} }
.ri-strips { padding: 0 20px }
.ri-strip { min-height: 42px; padding: 4px 0; border-top: 1px solid ${HAIR}; align-items: stretch }
.ri-strip:first-child { border-top: 0 }
.ri-text { display: grid; grid-template-columns: auto minmax(0, 1fr); align-content: start; column-gap: 8px }
.ri-text > :nth-child(even) { text-align: right; white-space: nowrap }
.ri-text > :nth-child(odd) { white-space: nowrap }
.ri-plot { position: relative; min-height: 32px } .ri-stack .ri-plot { min-height: 120px }
.ri-plot canvas { position: absolute; inset: 0; height: 100% }
.ri-key { position: absolute; top: -3px; left: 0; right: -46px; overflow: hidden; font-size: 11px; line-height: 12px; white-space: nowrap; color: #b4c0ca }
.ri-key span { margin-right: 8px } .ri-key i { width: 7px; height: 7px; margin-right: 4px }
.ri-reasons .ri-plot { min-height: 38px }
.ri-reasons canvas { top: 11px; height: calc(100% - 11px) }
.ri-axis { font-size: 11px; color: ${MUTE}; padding: 4px 0 6px; border-top: 1px solid ${HAIR} }
.ri-axis div { grid-column: 2; display: flex; justify-content: space-between; white-space: nowrap }
.ri .ri-button { border: 1px solid #6b7884; border-radius: 2px; padding: 5px 10px; min-height: 28px }
.ri-detail header { display: flex; align-items: center; gap: 8px; margin-bottom: 10px }
.ri-detail header b { font-size: 18px; line-height: 24px; font-weight: 600; flex: 1; overflow: hidden; text-overflow: ellipsis }
.ri-detail header i { width: 12px; height: 12px; flex: none }
.ri-figures { display: flex; justify-content: space-between; gap: 12px; flex-wrap: wrap; margin-bottom: 12px }
.ri-figures b { display: block; font-size: 18px; line-height: 24px; font-weight: 600 }
.ri-field { margin-bottom: 10px }
.ri-field > div:first-child { display: flex; justify-content: space-between; gap: 8px; margin-bottom: 4px }
.ri-field code { display: block; margin-bottom: 3px; font: 12px/16px ui-monospace, "DejaVu Sans Mono", monospace; color: #b4c0ca; overflow-wrap: anywhere }
.ri-bits { height: 14px }
.ri-bits canvas { height: 14px }
.ri-bottom { display: flex; gap: 16px; color: #b4c0ca }
.ri-bottom i { width: 10px; height: 10px; display: inline-block; margin-right: 6px }
.ri-list { display: grid; grid-template-columns: minmax(0, 1fr) auto; row-gap: 6px }
.ri-scroll { overflow-x: auto; margin: 0 -20px; padding: 0 20px 4px }
.ri table { border-collapse: collapse; width: 100%; white-space: nowrap }
.ri th { font-weight: 400; color: ${MUTE}; padding: 0 0 4px 10px; text-align: right; vertical-align: bottom }
.ri td { padding: 0 0 0 10px; text-align: right; border-top: 1px solid ${HAIR}; height: 28px }
.ri th:first-child, .ri td:first-child { text-align: left; padding-left: 0 }
.ri th button { min-height: 24px; text-align: inherit; white-space: nowrap }
.ri th[aria-sort=ascending] button::before { content: "↑ " } .ri th[aria-sort=descending] button::before { content: "↓ " }
.ri th[aria-sort] { color: ${TEXT} }
.ri td button { display: block; max-width: 186px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-height: 26px; text-decoration: underline; text-decoration-color: #45525d; text-underline-offset: 3px }
.ri tr:has([aria-pressed=true]) td { background: #182027 }
.ri td button[aria-pressed=true] { color: ${YOU} }
.ri-note { color: ${ALERT}; padding: 8px 20px; border-bottom: 1px solid ${HAIR} }
@media (max-height: 780px) and (min-width: 721px) { .ri-tall { display: none !important } }
@container (max-width: 430px) {
	.ri section { padding: 12px 16px } .ri-strips { padding: 0 16px }
	.ri-row { grid-template-columns: 140px minmax(0, 1fr) 34px }
	.ri-big { font-size: 44px; line-height: 48px } .ri-head { min-height: 52px }
	.ri button.ri-part { height: 28px }
	.ri-scroll { margin: 0 -16px; padding: 0 16px 4px }
}
@container (min-width: 1000px) {
	.ri-columns.ri-two { grid-template-columns: 440px minmax(0, 1fr) }
	.ri-two .ri-side { border-left: 1px solid ${HAIR}; min-height: 100vh }
	.ri-two .ri-side section { border-bottom: 0 }
}
@container (min-width: 1400px) { .ri td button { max-width: none } }
@container (min-width: 1600px) { .ri-columns.ri-two { grid-template-columns: 520px minmax(0, 1fr) } }
`;

// ---------------------------------------------------------------- panels

export function panels(element, source, options = {}) {
	const panel = new Panel(element, source, options);
	return {
		mark: label => panel.mark(label),
		peer: number => panel.select(number),
		stop: () => panel.stop(),
	};
}

class Panel {
	constructor(element, source, options) {
		this.source = source;
		this.options = options;
		this.all = new Record();
		this.one = new Record(); // of the selected peer
		this.selected = -1;
		this.open = null;        // the part of the stack that is open
		this.marked = [];
		this.history = [];       // counters of the last polls, for bits of fields
		this.causes = [];        // of rollbacks, of the last 60 seconds
		this.build(element);
		this.stopped = new AbortController();
		const on = { signal: this.stopped.signal };
		element.addEventListener("keydown", e => {
			if (e.key === "Escape" && this.open !== null) { this.show(null); e.stopPropagation(); }
		}, on);
		document.addEventListener("visibilitychange", () => this.poll(), on);
		this.resized = new ResizeObserver(() => this.draw());
		this.resized.observe(element);
		this.words = setInterval(() => this.write(), 500);
		this.poll();
	}

	stop() {
		this.stopped.abort();
		this.resized.disconnect();
		clearInterval(this.words);
		clearTimeout(this.timer);
		this.root.remove();
	}

	// poll asks the source four times a second while the page is seen.
	async poll() {
		clearTimeout(this.timer);
		if (this.asking || document.hidden) return;
		this.asking = true;
		const began = performance.now();
		let wait = 1000;
		const fresh = this.fresh;
		this.fresh = false;
		try {
			const data = await this.source(fresh ? 0 : this.all.next, this.selected);
			if (this.stopped.signal.aborted) return;
			this.take(data, fresh);
			wait = Math.max(250 - (performance.now() - began), 50);
			put(this.note, "");
		} catch (e) {
			put(this.note, `▲ No answer: ${e.message}. Asking again.`);
		} finally {
			this.asking = false;
		}
		this.note.hidden = !this.note.textContent;
		if (!this.stopped.signal.aborted) this.timer = setTimeout(() => this.poll(), wait);
	}

	take(data, fresh) {
		const first = !this.all.data, begins = data.samples.time[0];
		const others = !first && data.components.length !== this.all.data.components.length;
		if (data.next < this.all.next || others || !fresh && begins < this.all.last("time")) { // another inspector
			if (this.open !== null) this.show(null);
			this.order = null;
			this.history = [];
			this.causes = [];
			fresh = true;
		}
		const set = data.set?.loss ?? null; // known from now on
		data.samples.set = data.samples.time.map((_, i, all) => first && i < all.length - 1 ? null : set);
		this.all.take(data, fresh);
		if (data.peer?.number === this.selected) {
			this.one.take({ ...data.peer, rate: data.rate, kind: "peer" });
		}
		const now = this.all.last("time");
		this.history.push({ at: now, bits: data.components.map(c => c.fields.map(f => f.bits)), entries: data.counters.Entries });
		while (this.history.length > 1 && now - this.history[1].at >= 1) this.history.shift();
		if (data.causes) this.causes.push({ at: now, counts: data.causes });
		while (this.causes[0]?.at < now - SECONDS) this.causes.shift();
		this.sort();
		if (first) { this.write(); this.options.titled?.(data.name); }
		this.draw();
	}

	// sort gives the largest components the colours, at first and again when there are 15 seconds of them.
	sort() {
		const r = this.all, n = r.samples.time.length;
		if (this.order && (this.final || n < 60)) return;
		this.final = n >= 60;
		const total = r.stack.map(v => v.reduce((a, b) => a + (b || 0), 0));
		this.order = total.map((_, i) => i).sort((a, b) => total[b] - total[a] || a - b);
		this.buildLegend();
	}

	mark(label) {
		this.marked.push({ at: this.all.last("time") ?? 0, label });
		if (this.marked.length > 20) this.marked.shift();
	}

	select(number) {
		this.selected = this.selected === number ? -1 : number;
		this.one.clear();
		this.fresh = true; // to get the peer's past as well
		if (this.open !== null) this.show(null);
		this.buildStrips();
		this.poll();
	}

	// show opens a part of the stack, or nothing.
	show(part) {
		const closed = this.open !== null && part === null ? this.open : null;
		this.open = part;
		for (const p of this.parts) p.button.setAttribute("aria-pressed", String(p.id === part));
		this.detail.hidden = part === null;
		this.strips.hidden = part !== null;
		if (part !== null) this.buildDetail();
		if (closed !== null) this.parts.find(p => p.id === closed)?.button.focus();
		this.write();
		this.draw();
	}

	// -------------------------------------------------------- building

	build(element) {
		if (!document.adoptedStyleSheets.some(s => s.ri)) {
			const sheet = new CSSStyleSheet();
			sheet.replaceSync(style);
			sheet.ri = true;
			document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
		}
		this.note = make("div", "ri-note");
		this.note.setAttribute("role", "status");
		this.note.hidden = true;
		this.figure = document.createTextNode(NONE);
		const unit = make("small", "", "kbit/s");
		this.lamp = make("div", "ri-lamp");
		this.lampSign = make("i"); this.lampText = make("b"); this.lampDetail = make("span", "ri-soft");
		this.lamp.append(this.lampSign, make("div", "", this.lampText, this.lampDetail));
		this.lampText.setAttribute("role", "status");
		this.compare = make("div", "ri-compare");
		const head = make("section", "",
			make("div", "ri-head", make("div", "ri-big", this.figure, unit), this.lamp), this.compare);

		this.legend = make("div", "ri-legend");
		this.stack = new Plot("");
		this.stackTop = make("div", "ri-gutter");
		this.stackTitle = make("h2", "", "Bandwidth by component");
		const stack = make("section", "",
			make("div", "ri-title", this.stackTitle, make("span", "ri-mute", "kbit/s, last 60\u00a0s")),
			make("div", "ri-row ri-stack", this.legend, make("div", "ri-plot", this.stack.canvas), this.stackTop));
		this.parts = [];

		this.strips = make("div", "ri-strips");
		this.detail = make("section", "ri-detail ri-last");
		this.detail.hidden = true;
		this.peers = make("section", "ri-last");
		this.peers.hidden = true;
		const main = make("div", "", this.note, head, stack, this.strips, this.detail);
		main.style.minWidth = "0";
		this.columns = make("div", "ri-columns", main, make("div", "ri-side", this.peers));
		this.root = make("div", "ri", this.columns);
		element.append(this.root);
		this.rows = [];
		this.table = null;
	}

	// buildLegend makes the parts of the stack, top down, in the order in which they are drawn.
	buildLegend() {
		const d = this.all.data, order = this.order;
		const named = order.slice(0, STACK.length), rest = order.slice(STACK.length);
		const messages = this.all.has("messages");
		const parts = named.map((c, i) => ({ id: "c" + c, name: d.components[c].name, colour: STACK[i], of: [c] }));
		if (rest.length || messages) {
			const n = rest.length + (messages ? 1 : 0);
			parts.push({
				id: "others", name: rest.length ? `${n} others` : "Messages", colour: OTHERS, of: rest, messages,
			});
		}
		parts.push({
			id: "rest", name: this.all.has("messages") ? "Headers" : "Messages, rest", colour: HEADERS, of: [], rest: true,
		});
		this.parts = parts;
		this.legend.replaceChildren(...[...parts].reverse().map(p => {
			p.value = make("span", "", NONE);
			const square = make("i");
			square.style.background = p.colour;
			p.button = button("ri-part", square, make("span", "", p.name), p.value, make("span", "", "›"));
			p.button.title = p.name;
			p.button.setAttribute("aria-pressed", String(p.id === this.open));
			p.button.addEventListener("click", () => this.show(this.open === p.id ? null : p.id));
			return p.button;
		}));
	}

	buildStrips() {
		const r = this.record();
		this.rows = [];
		const seen = new Set();
		for (const s of strips) {
			if (!r.has(s.key) || seen.has(s.id) || (s.when && !s.when(r))) continue;
			seen.add(s.id);
			const row = { strip: s, plot: new Plot(""), label: make("span"), value: make("span", "ri-strong"), below: make("span", "ri-mute") };
			row.second = make("span", "ri-mute");
			row.top = make("div", "ri-gutter");
			row.bars = s.bars ? new Scale() : null;
			const plot = make("div", "ri-plot", row.plot.canvas);
			if (s.reasons) {
				row.keys = REASONS.map(([key, name, colour]) => {
					const square = make("i"), words = make("span");
					square.style.background = colour;
					const text = document.createTextNode("");
					words.append(square, text);
					return { key, name, text, words };
				});
				plot.append(make("div", "ri-key", ...row.keys.map(k => k.words)));
			} else if (s.words) plot.append(row.words = make("div", "ri-key"));
			row.element = make("div", "ri-row ri-strip" + (s.reasons || s.words ? " ri-reasons" : "") + (s.tall?.(r) ? " ri-tall" : ""),
				make("div", "ri-text", row.label, row.value, row.below, row.second), plot, row.top);
			this.rows.push(row);
		}
		this.kinds = this.kindsOf(r);
		const axis = make("div", "ri-row ri-axis", make("div", "",
			make("span", "", "60\u00a0s ago"), make("span", "", "30\u00a0s"), make("span", "", "now")));
		const children = [...this.rows.map(row => row.element), axis];
		if (this.selected >= 0) {
			const back = button("ri-button", "Back to all peers");
			back.addEventListener("click", () => this.select(this.selected));
			this.peerName = make("b", "", "");
			children.unshift(make("div", "ri-peer", this.peerName, back));
			children[0].style.cssText = "display:flex;justify-content:space-between;align-items:center;gap:12px;padding:8px 0";
		}
		this.strips.replaceChildren(...children);
	}

	record() { return this.selected >= 0 ? this.one : this.all; }

	// kindsOf names the strips that a record has.
	kindsOf(r) {
		return strips.filter(s => r.has(s.key) && (!s.when || s.when(r))).map(s => s.key).join();
	}

	buildDetail() {
		const part = this.parts.find(p => p.id === this.open), d = this.all.data;
		const square = make("i");
		square.style.background = part.colour;
		const back = button("ri-button", "Back to graphs");
		back.addEventListener("click", () => this.show(null));
		const header = make("header", "", square, make("b", "", part.name), back);
		this.figures = [];
		const figure = (words, value) => {
			const b = make("b", "", NONE);
			this.figures.push(() => put(b, value()));
			return make("div", "", b, make("span", "ri-soft", words));
		};
		const share = () => {
			const all = this.all.mean("bandwidth");
			return all ? withUnit(100 * this.partMean(part) / all, 0, "%") : NONE;
		};
		const figures = make("div", "ri-figures",
			figure("kbit/s", () => number(this.partMean(part), 1)), figure("of bandwidth", share));
		this.detail.replaceChildren(header, figures);
		if (part.of.length === 1 && d.components[part.of[0]].fields.length) {
			this.buildFields(part, part.of[0], figure, figures);
			return;
		}
		if (part.rest) {
			figures.append(
				figure("packets /s", () => number(this.all.mean("packets"))),
				figure("B a packet", () => {
					const n = this.all.mean("packets");
					return n ? number(this.partMean(part) * 125 / n) : NONE;
				}));
			if (this.all.has("messages")) {
				this.detail.append(make("div", "ri-soft", "Headers of packets, numbers of entities, baselines, and what belongs to sessions."));
			}
			return;
		}
		const list = make("div", "ri-list");
		const line = (name, value) => {
			const v = make("span", "ri-right", NONE);
			this.figures.push(() => put(v, withUnit(value(), 1, "kbit/s")));
			list.append(make("span", "", name), v);
		};
		for (const c of part.of) line(d.components[c].name, () => mean(this.lastStack(c)));
		if (part.messages) line("Messages and inputs", () => this.all.mean("messages"));
		this.detail.append(list);
	}

	buildFields(part, c, figure, figures) {
		const component = this.all.data.components[c];
		const raw = component.fields.reduce((sum, f) => sum + f.raw, 0);
		figures.append(figure(`bits an entity sent, raw ${raw}`, () => {
			const bits = component.fields.map((_, i) => this.fieldBits(part, i).each);
			return bits.some(b => b === null) ? NONE : number(bits.reduce((a, b) => a + b, 0), 1);
		}));
		const most = Math.max(32, ...component.fields.map(f => Math.max(f.raw, f.fixed)));
		this.bits = [];
		component.fields.forEach((f, i) => {
			const plot = new Plot("");
			const value = make("span", "ri-soft ri-right");
			const bold = make("b"), rest = document.createTextNode("");
			value.append(bold, rest);
			const name = f.name || (component.fields.length > 1 ? "which changed" : "value");
			const label = make("div", "", make("span", "", make("b", "", i === component.fields.length - 1 ? "Changes" : name)), value);
			const row = make("div", "ri-field", label);
			if (f.codec) row.append(make("code", "", f.codec));
			const bar = make("div", "ri-bits", plot.canvas);
			row.append(bar);
			this.detail.append(row);
			this.figures.push(() => {
				const b = this.fieldBits(part, i);
				put(bold, withUnit(b.each, 1, "bits"));
				const words = b.each === null ? "" : ` sent, ${number(b.kbits, 1)} kbit/s`;
				if (rest.data !== words) rest.data = words;
			});
			this.bits.push(() => bitsBar(plot, this.fieldBits(part, i).each, f.fixed, f.raw, most, part.colour));
		});
		const key = (colour, words) => {
			const i = make("i");
			i.style.background = colour;
			return make("span", "", i, words);
		};
		this.detail.append(make("div", "ri-bottom", key(part.colour, "sent"), key("#5a6873", "fixed width"), key("#1f2830", "raw struct")),
			make("p", "ri-mute", "Bits are means over all entities that were sent, also those without a change here. " +
				"Changes are the bits that name which components changed."));
	}

	// fieldBits returns the bits of a field per entity sent, and its bandwidth, of the last second. The bandwidth is a share
	// of the component's, so that fields add up to it.
	fieldBits(part, i) {
		const a = this.history[0], b = this.history.at(-1), [c] = part.of;
		if (!a || b.at - a.at < 0.5) return { each: null, kbits: null };
		const bits = b.bits[c].map((v, k) => v - a.bits[c][k]), all = bits.reduce((x, y) => x + y, 0);
		const entries = b.entries - a.entries;
		return { each: entries ? bits[i] / entries : null, kbits: all ? bits[i] / all * this.partMean(part) : 0 };
	}

	// -------------------------------------------------------- words, twice a second

	write() {
		const r = this.all, d = r.data;
		if (!d) return;
		const total = r.mean("bandwidth");
		const figure = number(total);
		if (this.figure.data !== figure) this.figure.data = figure;
		this.writeLamp(d);
		this.writeCompare(d, total);
		for (const p of this.parts) put(p.value, number(this.partMean(p), 1));
		if (this.open !== null) this.figures.forEach(f => f());
		const s = this.record();
		if (s.data) {
			if (this.kinds !== this.kindsOf(s)) { this.buildStrips(); this.draw(); }
			for (const row of this.rows) this.writeRow(row, s);
		}
		if (this.selected >= 0) {
			const p = d.peers?.find(p => p.number === this.selected);
			put(this.peerName, p ? p.remote || "peer " + p.number : "This peer has left");
		}
		this.writePeers(d);
	}

	writeLamp(d) {
		const lamp = d.lamp || (d.kind === "server"
			? { text: d.name || "Server", detail: `${counts(this.all.last("peers"), "peer")}, ${counts(d.counters.Entities, "entity", "entities")}`, plain: true }
			: { text: d.name || "Client", detail: `${d.status ?? ""}, tick ${number(d.tick)}`, plain: true });
		// To "differs" at once, to "equal" after a second.
		const now = performance.now();
		if (lamp.state !== this.lampWanted) { this.lampWanted = lamp.state; this.lampSince = now; }
		if (lamp.state === "equal" && this.lampShown && this.lampShown !== "equal" && now - this.lampSince < 1000) return;
		this.lampShown = lamp.state;
		this.lamp.className = "ri-lamp" + (lamp.state ? " ri-" + lamp.state : "");
		this.lampSign.hidden = !!lamp.plain;
		put(this.lampSign, { equal: "✓", differs: "✕" }[lamp.state] ?? "–");
		put(this.lampText, lamp.text);
		put(this.lampDetail, lamp.detail ?? "");
	}

	writeCompare(d, total) {
		let rows = d.compare;
		if (!rows && d.kind === "server" && d.counters.RawBits && d.counters.Peers) {
			// In the same packets, with the same messages.
			const others = this.partMean({ of: [], rest: true }) + (this.all.mean("messages") || 0);
			rows = [{ name: "Full states", kbits: d.counters.RawBits * d.rate * d.counters.Peers / 1000 + others }];
		}
		this.compare.hidden = !rows;
		if (!rows) return;
		const off = d.kind === "client" && d.status !== "connected";
		const most = Math.max(total || 0, ...rows.map(row => row.kbits));
		const shown = [...rows.map(row => [row.name, row.kbits, false]), [d.kind === "client" ? "Received" : "Sent", total, true]];
		if (this.compare.childElementCount !== 4 * shown.length) {
			this.compare.replaceChildren(...shown.flatMap(([, , you]) => [make("span", "ri-soft"),
				make("div", "", make("div", "ri-bar" + (you ? " ri-you" : ""))), make("span", "ri-right ri-soft"), make("span", "ri-right ri-strong")]));
		}
		shown.forEach(([name, kbits, you], i) => {
			const [label, bar, value, share] = [...this.compare.children].slice(4 * i, 4 * i + 4);
			put(label, name);
			const width = `${most ? Math.round(1000 * (kbits || 0) / most) / 10 : 0}%`;
			if (bar.firstChild.style.width !== width) bar.firstChild.style.width = width;
			put(value, withUnit(kbits, 0, "kbit/s"));
			put(share, you ? "" : saved(off ? null : total, kbits));
		});
	}

	writeRow(row, r) {
		const s = row.strip, d = r.data, of = v => typeof v === "function" ? v(r, d) : v;
		const alarm = s.alarm?.(r, d) ?? false;
		put(row.label, of(s.label));
		put(row.value, (alarm ? "▲ " : "") + s.value(r, d));
		row.value.classList.toggle("ri-alert", alarm);
		put(row.below, of(s.below));
		const below = s.alarmBelow?.(r, d) ?? false;
		put(row.second, (below ? "▲ " : "") + s.second(r, d));
		row.second.classList.toggle("ri-alert", below);
		if (s.words) put(row.words, s.words(r, d, this.causesOf()));
		for (const k of row.keys || []) {
			const words = `${k.name} ${number(r.mean(k.key))}`;
			if (k.text.data !== words) k.text.data = words;
		}
	}

	// causesOf returns what made rollbacks necessary in the last 60 seconds, the most frequent first.
	causesOf() {
		const a = this.causes[0]?.counts, b = this.causes.at(-1)?.counts;
		return (b || []).map((c, i) => ({ name: c.name, count: c.count - (a[i]?.count ?? 0) })).filter(c => c.count > 0)
			.sort((x, y) => y.count - x.count);
	}

	// partMean returns the bandwidth of a part of the stack in the last second.
	partMean(p) {
		const parts = this.all.stack.map((_, i) => mean(this.lastStack(i)) || 0);
		if (p.rest) {
			const all = this.all.mean("bandwidth");
			return all === null ? null : Math.max(0, all - parts.reduce((a, b) => a + b, 0) - (this.all.mean("messages") || 0));
		}
		return p.of.reduce((sum, c) => sum + parts[c], 0) + (p.messages ? this.all.mean("messages") || 0 : 0);
	}

	lastStack(i) { return this.all.stack[i].slice(-PER_SECOND).filter(v => v !== null); }

	// -------------------------------------------------------- plots, four times a second

	draw() {
		if (!this.all.data || !this.order) return;
		const times = this.all.samples.time, now = times.at(-1) ?? 0;
		this.marked = this.marked.filter(m => now - m.at < SECONDS);
		this.drawStack(times, now);
		if (this.open !== null) { this.bits?.forEach(f => f()); return; }
		const r = this.record();
		if (!r.data) return;
		if (!this.rows.length) { this.buildStrips(); this.rows.forEach(row => this.writeRow(row, r)); }
		for (const row of this.rows) this.drawRow(row, r, times, now);
	}

	xs(plot, times, now) { return times.map(t => plot.w - (now - t) / SECONDS * plot.w); }

	drawStack(times, now) {
		const plot = this.stack, n = times.length, r = this.all;
		plot.begin();
		const xs = this.xs(plot, times, now);
		const total = smooth(r.samples.bandwidth), stack = r.stack.map(smooth), messages = smooth(r.samples.messages || []);
		const top = plot.scale.fit(Math.max(0, ...total), 10, now);
		put(this.stackTop, number(top, top < 10 ? 2 : 0));
		let low = new Array(n).fill(0);
		const edges = [];
		for (const p of this.parts) {
			const high = low.map((v, i) => {
				if (p.rest) return Math.max(v, total[i]);
				for (const c of p.of) v += stack[c][i];
				return v + (p.messages ? messages[i] : 0);
			});
			plot.c.globalAlpha = this.open === null || this.open === p.id ? 1 : 0.25;
			plot.band(xs, low, high, p.colour);
			edges.push(high);
			low = high;
		}
		plot.c.globalAlpha = 1;
		// A seam of a pixel between bands that are thick enough to keep something.
		const thin = 3 * top / plot.h;
		edges.slice(0, -1).forEach((edge, k) => plot.line(xs, edge.map((v, i) =>
			v - (k ? edges[k - 1][i] : 0) < thin || edges[k + 1][i] - v < thin ? null : v), PANEL, 1));
		plot.level(top / 2, "rgba(241, 245, 247, 0.12)", []);
		plot.level(0, HAIR, []);
		plot.marks(this.marked, now);
		const c = plot.c;
		c.font = "11px Inter, system-ui, sans-serif";
		c.fillStyle = TEXT;
		c.strokeStyle = PANEL;
		c.lineWidth = 4;
		let free = plot.w;
		for (const m of [...this.marked].reverse()) {
			const x = plot.w - (now - m.at) / SECONDS * plot.w, w = c.measureText(m.label).width;
			const left = x - w - 4 < 0 ? x + 4 : x - w - 4;
			if (left + w <= free) { c.strokeText(m.label, left, 10); c.fillText(m.label, left, 10); free = left - 8; }
		}
	}

	drawRow(row, r, times, now) {
		const s = row.strip, plot = row.plot;
		plot.begin();
		// A peer may have fewer samples than all.
		const own = (r.samples[s.key] || []).length;
		const xs = this.xs(plot, times.slice(-own), now);
		const lines = s.lines.filter(k => r.has(k));
		const rows = lines.map(k => r.samples[k]);
		const stacked = s.reasons ? REASONS.map(([key]) => r.samples[key] || []) : [];
		const sums = stacked.length ? xs.map((_, i) => stacked.reduce((a, v) => a + (v[i] || 0), 0)) : [];
		const dashed = s.dashed && this.all.samples[s.dashed]?.slice(-own);
		const peak = Math.max(0, ...(dashed || []), ...sums, ...rows.flat().filter(v => v !== null));
		const set = s.limit?.(r.data) || 0, limit = peak < set / 8 ? 0 : set; // none that is far away
		const most = Math.max(limit * 1.08, peak);
		let top;
		if (limit && most <= limit * 1.08) { top = plot.scale.top = limit * 1.08; } else if (s.lines.length) {
			top = plot.scale.fit(most, s.least, now);
		}
		put(row.top, limit ? `MTU\n${number(limit)}` : top === undefined || s.reasons ? "" : number(top, top < 10 && top % 1 ? 2 : 0));
		row.top.classList.toggle("ri-alert", !!limit);
		let low = new Array(xs.length).fill(0);
		stacked.forEach((values, k) => {
			const high = low.map((v, i) => v + (values[i] || 0));
			plot.band(xs, low, high, REASONS[k][2]);
			low = high;
		});
		if (s.area && rows.length) plot.band(xs, new Array(xs.length).fill(0), rows[0], AREA);
		if (s.bars) this.drawBars(row, r.samples[s.bars] || [], xs, s, now);
		plot.level(0, HAIR, []);
		if (limit) plot.level(limit, ALERT, []);
		if (dashed) plot.line(xs, dashed, YOU, 1, [4, 3]);
		rows.slice(1).forEach(values => plot.line(xs, values, MUTE, 1));
		if (rows.length) plot.line(xs, rows[0], LINE);
		plot.marks(this.marked, now);
	}

	// drawBars draws counts per second.
	drawBars(row, values, xs, s, now) {
		const plot = row.plot, bars = new Map();
		xs.forEach((x, i) => {
			const second = Math.floor((plot.w - x) / plot.w * SECONDS + now % 1);
			bars.set(second, (bars.get(second) || 0) + (values[i] || 0));
		});
		const top = row.bars.fit(Math.max(0, ...bars.values()), s.least > 10 ? 5 : s.least, now);
		if (!s.lines.length) { plot.scale.top = top; put(row.top, number(top)); }
		const width = plot.w / SECONDS;
		plot.c.fillStyle = s.lines.length ? ALERT : LINE;
		for (const [second, v] of bars) {
			const h = v / top * (plot.h - 3);
			if (h > 0) plot.c.fillRect(plot.w - (second + 1 - now % 1) * width, plot.h - 1 - h, Math.max(width - 1, 1), h);
		}
	}

	// -------------------------------------------------------- peers

	writePeers(d) {
		const any = d.kind === "server";
		this.peers.hidden = !any;
		this.columns.classList.toggle("ri-two", any);
		if (!any) return;
		if (!this.table) this.buildTable();
		const list = [...d.peers];
		const { column, down } = this.sorted;
		const key = p => column.of(p) ?? -Infinity;
		list.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.number - b.number) * (down ? -1 : 1));
		put(this.peersTitle, list.length < d.counters.Peers ? `Peers, ${number(list.length)} of ${number(d.counters.Peers)}` : `${number(list.length)} peers`);
		this.empty.hidden = list.length > 0;
		const body = this.table.tBodies[0];
		while (body.rows.length > list.length) body.deleteRow(-1);
		while (body.rows.length < list.length) body.append(this.buildPeer());
		list.forEach((p, i) => {
			const row = body.rows[i];
			row.peer = p.number;
			const chosen = String(p.number === this.selected), name = row.cells[0].firstChild;
			if (name.getAttribute("aria-pressed") !== chosen) name.setAttribute("aria-pressed", chosen);
			columns.forEach((c, k) => {
				const cell = row.cells[k], alarm = c.alarm?.(p) ?? false;
				put(cell.firstChild, (alarm ? "▲ " : "") + c.text(p));
				cell.classList.toggle("ri-alert", alarm);
				const title = c.title?.(p) ?? "";
				if (cell.title !== title) cell.title = title;
			});
		});
	}

	buildTable() {
		const row = make("tr");
		this.sorted = { column: columns[0], down: false };
		for (const c of columns) {
			const b = button("", c.name, make("br"), c.unit || "\u00a0"), th = make("th", "", b);
			th.scope = "col";
			b.addEventListener("click", () => {
				this.sorted = { column: c, down: this.sorted.column === c ? !this.sorted.down : c !== columns[0] };
				for (const cell of row.cells) cell.removeAttribute("aria-sort");
				th.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
				this.write();
			});
			row.append(th);
		}
		row.cells[0].setAttribute("aria-sort", "ascending");
		this.table = make("table", "", make("thead", "", row), make("tbody"));
		this.peersTitle = make("h2");
		this.empty = make("p", "ri-mute", "Nobody is connected.");
		this.peers.replaceChildren(make("div", "ri-title", this.peersTitle, make("span", "ri-mute", "select a peer for its graphs")),
			make("div", "ri-scroll", this.table), this.empty);
	}

	buildPeer() {
		const row = make("tr");
		columns.forEach((c, i) => {
			const inside = i ? make("span") : button("");
			row.append(make("td", "", inside));
			if (!i) inside.addEventListener("click", () => this.select(row.peer));
		});
		return row;
	}
}

// The columns of the table of peers, with units.
const columns = [
	{ name: "Peer", of: p => p.number, text: p => p.remote || "peer " + p.number, title: p => p.remote },
	{ name: "Sent", unit: "kbit/s", of: p => p.bandwidth, text: p => number(p.bandwidth, 1) },
	{ name: "Round trip", unit: "ms", of: p => p.roundTrip, text: p => number(p.roundTrip) },
	{ name: "Loss", unit: "%", of: p => p.loss, text: p => number(p.loss, 1), alarm: p => p.loss >= 10 },
	{ name: "Baseline", unit: "ticks", of: p => p.age, text: p => number(p.age), alarm: p => p.age > 64 },
	{ name: "Budget", unit: "kbit/s", of: p => p.budget || Infinity, text: p => p.budget ? number(p.budget / 125) : "none" },
	{ name: "Backlog", unit: "B", of: p => p.backlog, text: p => number(p.backlog) },
	{ name: "Sent", unit: "/tick", of: p => p.sent, text: p => number(p.sent) },
	{ name: "Hidden", unit: "/tick", of: p => p.hidden, text: p => number(p.hidden) },
	{ name: "Budget", unit: "/tick", of: p => p.room, text: p => number(p.room) },
	{ name: "Turn", unit: "/tick", of: p => p.turn, text: p => number(p.turn) },
	{
		name: "Errors", unit: "send", of: p => p.sendErrors, text: p => number(p.sendErrors), alarm: p => p.sendErrors > 0,
		title: p => p.lastSendError,
	},
	{ name: "Coding", of: p => p.compact ? 1 : 0, text: p => p.compact ? "Compact" : "Packed" },
];

const counts = (n, one, many = one + "s") => n === null ? NONE : `${number(n)} ${n === 1 ? one : many}`;

// bitsBar draws one box for each bit: what was sent, the fixed width, and the struct in memory.
function bitsBar(plot, sent, fixed, raw, most, colour) {
	plot.begin();
	const c = plot.c, boxes = Math.min(most, 64), per = most / boxes, step = plot.w / boxes;
	const fill = (from, to, paint) => {
		c.fillStyle = paint;
		for (let i = Math.floor(from / per); i < Math.min(to / per, boxes); i++) {
			const left = Math.max(from / per - i, 0), right = Math.min(to / per - i, 1);
			c.fillRect(i * step + left * (step - 1), 0, (right - left) * (step - 1), plot.h);
		}
	};
	fill(0, raw, "#1f2830");
	fill(0, fixed, "#5a6873");
	fill(0, sent || 0, colour);
}
