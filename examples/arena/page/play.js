// The game: draws each frame, writes what there is to read, and feeds the instruments.

import { combine, from, number, panels, saved } from "/debug/replication/inspect.js";
import { Dock } from "./dock.js";
import { $, json, make, put, script } from "./dom.js";
import { Controls } from "./input.js";
import { clock, legend, NONE, Stage } from "./stage.js";

const PER_SECOND = 4;

// remember gives the client the player's name of last time: it takes it from the address.
function remember(name) {
	const url = new URL(location.href);
	try {
		if (name) localStorage.setItem("arena-name", name);
		else name = url.searchParams.get("name") || localStorage.getItem("arena-name");
	} catch { } // a browser that keeps nothing
	if (!name) return;
	url.searchParams.set("name", name);
	history.replaceState(null, "", url);
}

const last = (values, n = 1) => (values || []).slice(-n).filter(v => v !== null);
const mean = values => values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;

// Meter makes the source of the instruments, and keeps what else of it is shown.
class Meter {
	constructor(arena) {
		this.arena = arena;
		this.status = arena.status();
		this.costs = null;  // of the same as JSON and as raw structs
		this.network = () => null; // the settings of the dock
		this.equalAt = null; // tick
		this.kbits = null;
		this.seen = {};
		this.counted = [];   // counters of the last 10 s
		const ask = () => json("/debug/arena.json").then(d => { this.costs = d; }, () => {});
		ask();
		setInterval(() => { if (!document.hidden) ask(); }, 2000);
		const both = combine(since => this.client(since), from("/debug/replication/"), () => this.status.peer ?? -1);
		this.source = async since => this.add(await both(since));
	}

	client(since) {
		const data = JSON.parse(this.arena.stats(since)), s = data.samples, c = data.counters;
		this.kept = since ? (this.kept || []).concat(s.bandwidth).slice(-PER_SECOND) : s.bandwidth.slice(-PER_SECOND);
		this.kbits = mean(last(this.kept, PER_SECOND));
		this.counted = [...this.counted, [c.Packets, c.Duplicates]].slice(-40);
		const [packets, duplicates] = this.counted[0], came = c.Packets - packets + c.Duplicates - duplicates;
		const one = key => last(s[key]).at(0) ?? null, roundTrip = one("roundTrip"), loss = one("loss");
		this.seen = {
			loss: loss === null ? null : loss / 100, latency: roundTrip === null ? null : roundTrip / 2, jitter: one("jitter"),
			duplicate: came > 0 ? (c.Duplicates - duplicates) / came : null,
		};
		return data;
	}

	add(data) {
		const d = this.costs, s = this.status;
		if (d) data.compare = [{ name: "JSON", kbits: d.jsonKbit }, { name: "Raw structs", kbits: d.rawKbit }];
		data.lamp = this.lamp();
		if (this.network()) data.set = { loss: 100 * this.network().loss };
		data.status = s.state;
		if (s.state === "lost") for (const key of ["roundTrip", "jitter", "loss", "age", "delay"]) data.samples[key]?.fill(null); // not known now
		return data;
	}

	lamp() {
		const s = this.status;
		if (s.lamp === "equal" && s.lampTick !== null) this.equalAt = s.lampTick;
		const at = this.equalAt === null ? "" : number(this.equalAt), ago = Math.floor(s.equalAgo ?? 0);
		const before = at && `last equal ${ago}\u00a0s ago, at tick ${at}`;
		switch (s.state === "lost" ? "unknown" : s.lamp) {
		case "equal": return { state: "equal", text: "Worlds equal", detail: ago < 2 ? `at tick ${at}` : `${ago}\u00a0s ago, at tick ${at}` };
		case "differs": return { state: "differs", text: "Worlds differ", detail: before };
		case "silent": return { state: "unknown", text: `Nothing arrives for ${Math.floor(s.silent ?? 0)}\u00a0s`, detail: before };
		}
		return { state: "unknown", text: "Not compared", detail: before };
	}
}

class Page {
	constructor(arena) {
		this.arena = arena;
		this.stage = new Stage(arena, true);
		this.controls = new Controls($("game"), $("field"), $("stick"), $("fire"));
		this.meter = new Meter(arena);
		this.status = this.meter.status;
		this.before = performance.now();
		this.read = 0;  // when the status was read
		this.wrote = 0; // when slow words were written
		this.latest = { tick: 0, at: this.before };
		this.build();
	}

	build() {
		const net = panels($("net"), this.meter.source);
		this.dock = new Dock($("dock"), this.arena, label => net.mark(label));
		this.meter.network = () => this.dock.settings;
		const field = make("input");
		field.maxLength = 16;
		$("match").prepend(make("label", "", "Name", field));
		$("keys").append(legend(true));
		this.names = [$("name"), field];
		for (const input of this.names) {
			input.addEventListener("change", () => this.rename(input.value.trim()));
			input.addEventListener("keydown", e => { if (e.key === "Enter" || e.key === "Escape") input.blur(); });
		}
		// A control that was clicked gives the keys back to the game.
		for (const area of [$("dock"), $("top")]) {
			area.addEventListener("click", e => { if (e.detail > 0 && e.target.type !== "text") document.activeElement?.blur(); });
			area.addEventListener("change", e => { if (e.target.type === "range" && e.target.matches(":active, :hover")) e.target.blur(); });
		}
		$("again").addEventListener("click", () => location.reload());
		$("websocket").addEventListener("click", () => {
			const url = new URL(location.href);
			url.searchParams.set("transport", "websocket");
			location.replace(url);
		});
	}

	rename(name) {
		if (!name || name === this.status.own.name) return;
		remember(name);
		this.arena.set("name", name);
	}

	frame(now) {
		const dt = now - this.before, stage = this.stage, f = stage.field;
		this.before = now;
		const { rows, n } = this.arena.frame(dt, this.controls.read(f.own === null || !this.rows ? 0 : this.rows[f.own + 4]));
		this.rows = rows;
		stage.happen(now);
		if (now - this.read >= 100) { this.read = now; this.write(now); }
		if (document.hidden) return;
		const { own, radius, ghosts } = this.status;
		f.frame(rows, n, { own, radius, ghosts, dt: Math.min(dt, 100) / 1000 });
	}

	write(now) {
		const s = this.status = this.meter.status = this.arena.status(), { own, match } = s;
		if (s.tick !== this.latest.tick) this.latest = { tick: s.tick, at: now };
		this.writeTop(s);
		this.stage.writeOwn(own);
		for (const input of this.names) if (input !== document.activeElement && input.value !== own.name) input.value = own.name;
		this.stage.writeNote(this.note(s));
		this.writeLost(s, now);
		if (now - this.wrote < 500) return;
		this.wrote = now;
		this.dock.own(s);
		this.dock.saw(this.meter.seen);
		this.stage.writeFacts(s.entities);
		const error = s.ghostError;
		put($("facts").children[1], s.ghosts ? `Ghosts: outlines, where the server has the ships now, ${error === null ? NONE : number(error)
			+ "\u00a0units"} ahead of what you see: that is latency. A ship is 14 units across.` : "");
		this.stage.writeLeaders(match, own, "You");
		const [figure, less, lamp] = $("chip").children, { kbits, costs } = this.meter, l = this.meter.lamp();
		put(figure.firstChild, number(s.state === "connected" ? kbits : null));
		put(less, s.state === "connected" ? saved(kbits, costs?.jsonKbit) : NONE);
		put(lamp, `${{ equal: "✓", differs: "✕" }[l.state] ?? NONE} ${l.text}`);
		lamp.className = l.state;
		$("chip").hidden = false;
	}

	writeTop({ state, transport, match, own }) {
		const on = state === "connected";
		$("wire").classList.toggle("off", !on);
		put($("transport"), on ? transport : state === "lost" ? "Not connected" : "Connecting");
		$("wire").title = on ? transport : "Not connected";
		this.stage.writeScore(match, own, "You", on || state === "lost");
	}

	note({ state, own, match }) {
		const broken = this.dock.happens();
		if (broken) return broken;
		if (state !== "connected") return state === "lost" ? "" : "Connecting…";
		if (match.phase === "warm-up") return `Warm-up: guns work in ${clock(match.clock)}`;
		if (match.phase === "over") return match.leaders[0] ? `Round over: ${match.leaders[0].name} wins with ${match.leaders[0].kills}` : "Round over";
		if (own.ship < 0) return "Waiting for a ship";
		if (own.alive && own.safe > 0) return `Protected for ${own.safe}\u00a0s, or until you fire`;
		return own.alive ? "" : `Destroyed. Back in ${Math.max(1, Math.ceil(own.respawnIn))}\u00a0s`;
	}

	writeLost(s, now) {
		const lost = this.gone || s.state === "lost";
		if (lost) {
			const silent = (now - this.latest.at) / 1000;
			const why = (this.gone || s.why).replace(/^\w+: /, "");
			put($("lost-why"), `Nothing has arrived for ${number(silent)}\u00a0s. The view stands still at tick ${number(s.tick)}.` +
				(this.gone ? "" : " The client keeps trying.") + (why ? ` (${why})` : ""));
			$("websocket").hidden = s.transport === "WebSocket" || new URL(location.href).searchParams.get("transport") === "websocket";
		}
		$("lost").hidden = !lost;
	}
}

// prepare does what comes before the client.
export async function prepare() {
	remember();
	await script("/play?js");
}

// play starts the game, and returns when there is something to see.
export async function play(ended, waiting) {
	const page = new Page(globalThis.arena);
	ended.then(() => { page.gone = "the client has ended"; }, e => { page.gone = String(e); });
	const run = now => {
		requestAnimationFrame(run);
		page.frame(now);
	};
	requestAnimationFrame(run);
	setInterval(() => { if (document.hidden) page.frame(performance.now()); }, 100); // nothing is drawn then, but packets arrive
	for (const began = performance.now(); page.status.state !== "connected" || !page.status.entities;) {
		waiting(performance.now() - began > 3000 ? page.status.why : "");
		await new Promise(done => setTimeout(done, 50));
	}
}
