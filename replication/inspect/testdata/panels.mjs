// Draws the panels of inspect.js without a browser: node panels.mjs SCRIPT SAMPLES, which has the JSON of inspectors of a
// server, with one of its peers, and of a client. The document here is as little of one as the panels need.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

let drawn = 0;
const context = new Proxy({}, {
	get: (of, name) => of[name] ?? ((...args) => {
		for (const a of args.flat()) assert(typeof a !== "number" || isFinite(a), `${name}(${args})`);
		drawn++;
		return name === "measureText" ? { width: 30 } : undefined;
	}),
	set: (of, name, value) => { of[name] = value; return true; },
});

class Node {
	constructor(tag) {
		Object.assign(this, { tag, children: [], attributes: {}, listeners: {}, className: "", hidden: false, data: "", title: "" });
		this.style = {};
		this.classList = {
			toggle: (name, on) => {
				const names = new Set(this.className.split(" "));
				if (on) names.add(name); else names.delete(name);
				this.className = [...names].join(" ");
			},
		};
		if (tag === "canvas") Object.assign(this, { clientWidth: 230, clientHeight: 34, getContext: () => context });
	}
	append(...nodes) {
		for (const n of nodes) {
			const node = n instanceof Node ? n : Object.assign(new Node("#text"), { data: String(n) });
			node.parent = this;
			this.children.push(node);
		}
	}
	replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
	remove() { this.parent.children = this.parent.children.filter(c => c !== this); }
	get childElementCount() { return this.children.length; }
	get firstChild() { return this.children[0] ?? null; }
	get textContent() { return this.data + this.children.map(c => c.textContent).join(" "); }
	set textContent(text) { this.children = []; this.data = text; }
	setAttribute(name, value) { this.attributes[name] = value; }
	getAttribute(name) { return this.attributes[name] ?? null; }
	removeAttribute(name) { delete this.attributes[name]; }
	addEventListener(name, f) { this.listeners[name] = f; }
	click() { this.listeners.click(); }
	focus() { }
	find(name) { return [this, ...this.children.flatMap(c => c.find(""))].filter(n => !name || n.className.split(" ").includes(name)); }
	get rows() { return this.children.filter(c => c.tag === "tr"); }
	get cells() { return this.children; }
	get tBodies() { return this.children.filter(c => c.tag === "tbody"); }
	deleteRow() { this.children.pop(); }
}

Object.assign(globalThis, {
	window: globalThis,
	document: {
		hidden: false, baseURI: "http://game/", adoptedStyleSheets: [], addEventListener() { },
		createElement: tag => new Node(tag), createTextNode: data => Object.assign(new Node("#text"), { data }),
	},
	CSSStyleSheet: class { replaceSync() { } },
	ResizeObserver: class { observe() { } disconnect() { } },
});

const [script, file] = process.argv.slice(2);
const samples = JSON.parse(readFileSync(file, "utf8"));
const { combine, number, panels, saved } = await import(script);
const copy = v => JSON.parse(JSON.stringify(v));
const settled = () => new Promise(done => setTimeout(done, 600)); // words are written twice a second

// show draws a source, opens everything there, and returns the texts of the strips.
async function show(source) {
	const root = new Node("main"), before = drawn;
	const panel = panels(root, source);
	panel.mark("Loss 30 %");
	await settled();
	assert(drawn > before + 50, "it draws");
	assert.equal(root.find("ri-note")[0].textContent, "", "no error");
	for (let i = 0; i < root.find("ri-part").length; i++) {
		root.find("ri-part")[i].click();
		assert(root.find("ri-detail")[0].textContent.includes("of bandwidth"));
		root.find("ri-part")[i].click();
	}
	const texts = () => root.find("ri-strip").map(s => s.textContent);
	return { root, texts, stop: () => panel.stop() };
}

const server = await show(() => copy(samples.server));
assert(server.texts().some(t => t.includes("Entities sent")));
assert.equal(server.root.find("").filter(n => n.tag === "tbody")[0].rows.length, samples.server.peers.length);
for (const head of server.root.find("").filter(n => n.tag === "th")) { head.children[0].click(); head.children[0].click(); }
server.root.find("").filter(n => n.tag === "tbody")[0].rows[0].cells[0].firstChild.click(); // a peer
await settled();
assert(server.texts().some(t => t.includes("Backlog")), "the strips of a peer");
server.stop();

const alone = await show(() => copy(samples.client));
assert(!alone.root.textContent.includes("▲"), "no alarm by an MTU that is not known");
alone.stop();

let wrong = 0; // more each time that it is asked
const ahead = await show(since => {
	const data = copy(samples.client);
	if (since) { // there is no new sample
		data.from = data.next;
		for (const key in data.samples) data.samples[key] = [];
	}
	for (const key of ["rollbacks", "again", "corrections", "missed", "depth"]) data.samples[key] = data.samples.time.map((_, i) => i % 7);
	data.causes = [{ name: "inputs", count: 2 }, { name: "Position", count: wrong++ }];
	return data;
});
await settled();
assert(ahead.texts().some(t => t.startsWith("Rollbacks") && /Position \d/.test(t) && !t.includes("inputs")), "causes of the last minute");
assert(ahead.texts().some(t => t.includes("ticks") && t.includes("inputs missed")));
ahead.stop();

const both = await show(combine(() => copy(samples.client), async () => copy(samples.server), () => samples.server.peer.number));
const [sent] = both.texts().filter(t => t.includes("Entities sent"));
assert.match(sent, /\d+\u00a0\/tick/, sent);
assert(both.root.textContent.includes(`MTU\n${number(samples.server.peer.mtu)}`), "the MTU of the peer");
assert(!both.root.textContent.includes("▲"), "no alarm");
both.stop();

// Fields add up to their component, also while bandwidth jumps from sample to sample.
let polls = 0;
const jumping = await show(since => {
	const data = copy(samples.server), i = since ? ++polls : 0;
	const of = v => v * (i % 4 === 0 ? 4 : 0.1);
	if (since) {
		data.from = data.next + i - 1;
		data.next += i;
		for (const key in data.samples) data.samples[key] = data.samples[key].slice(-1).map(of);
		data.samples.time = [samples.server.samples.time.at(-1) + 0.25 * i];
		data.stack = data.stack.map(v => v.slice(-1).map(of));
	}
	data.counters.Entries += 100 * i;
	data.components.forEach((c, k) => c.fields.forEach((f, n) => { f.bits += (1000 * (k + 1) + 700 * n) * i; }));
	return data;
});
await new Promise(done => setTimeout(done, 1500));
const position = jumping.root.find("ri-part").find(p => p.title === "Position");
position.click();
await settled();
const [all, ...fields] = jumping.root.find("ri-detail")[0].textContent.match(/[\d.]+(?=\s+kbit\/s)/g).map(Number);
assert(fields.length > 1 && all > 0, "fields have bandwidth");
assert(Math.abs(fields.reduce((a, b) => a + b, 0) - all) < 0.06 * (fields.length + 1), `${fields} add up to ${all}`);
jumping.stop();

// Full states in the same packets cost more than what is sent, in a small world as well; where nothing is sent there is
// nothing to save.
const compared = async change => {
	const data = copy(samples.server);
	change(data);
	const s = await show(() => data);
	const text = s.root.find("ri-compare")[0].textContent;
	s.stop();
	return text;
};
const fill = (data, v) => { for (const values of [data.samples.bandwidth, data.samples.messages, ...data.stack]) values.fill(v); };
const tiny = await compared(d => { d.counters.RawBits = 32; d.counters.Peers = 1; d.rate = 60; fill(d, 0); d.samples.bandwidth.fill(4); });
assert(!tiny.includes("−"), tiny);
assert.match(tiny, /Full states.* 6\u00a0kbit\/s 32\.\d\u00a0% saved/, tiny);
for (const v of [0, 0.4]) {
	const nothing = await compared(d => fill(d, v));
	assert(!nothing.includes("saved") && nothing.includes("–"), nothing);
}
assert.equal(saved(0.6, 3800), "–");
assert.equal(saved(63, 217), "71.0\u00a0% saved");
const gone = await show(() => ({ ...copy(samples.client), status: "lost", compare: [{ name: "JSON", kbits: 1e4 }] }));
assert(!gone.root.textContent.includes("saved"));
gone.stop();

const silent = await show(combine(() => copy(samples.client), async () => { throw new Error("no answer"); }, () => -1));
silent.stop();
console.log("drawn", drawn);
