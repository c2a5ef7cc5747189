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
const { combine, number, panels } = await import(script);
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

const both = await show(combine(() => copy(samples.client), async () => copy(samples.server), () => samples.server.peer.number));
const [sent] = both.texts().filter(t => t.includes("Entities sent"));
assert.match(sent, /\d+\u00a0\/tick/, sent);
assert(both.root.textContent.includes(`MTU\n${number(samples.server.peer.mtu)}`), "the MTU of the peer");
assert(!both.root.textContent.includes("▲"), "no alarm");
both.stop();

const silent = await show(combine(() => copy(samples.client), async () => { throw new Error("no answer"); }, () => -1));
silent.stop();
console.log("drawn", drawn);
