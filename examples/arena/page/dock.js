// "Break the network": the settings of the network between this server and everybody, and those of this client.

import { number } from "/debug/replication/inspect.js";
import { json, make, put } from "./dom.js";

const PRESETS = [["perfect", "Perfect"], ["lan", "LAN"], ["home", "Home"], ["mobile", "Mobile"], ["awful", "Awful"]];
const PAUSE = 3000; // ms
const EVERYTHING = 1460; // a radius that reaches from corner to corner

const percent = v => `${number(100 * v, Math.round(1000 * v) % 10 ? 1 : 0)}\u00a0%`;
const unit = (v, name) => `${number(v)}\u00a0${name}`;

// The sliders: at is where a value is on the slider, from 0 to max, of is the value there.
const same = { at: v => v, of: v => v };
const share = { at: v => 100 * v, of: v => Math.round(10 * v) / 1000 };
const LEAST = 32, MOST = 10240; // kbit/s
const SLIDERS = [
	{ key: "loss", label: "Loss", max: 50, step: 0.5, words: percent, ...share },
	{ key: "latencyMs", label: "Latency, one way", max: 250, step: 1, words: v => unit(v, "ms"), ...same },
	{ key: "jitterMs", label: "Jitter", max: 100, step: 1, words: v => `±\u00a0${unit(v, "ms")}`, ...same },
	{ key: "duplicate", label: "Duplication", max: 10, step: 0.1, words: percent, ...share },
	{ key: "reorder", label: "Reordering", max: 10, step: 0.1, words: percent, ...share },
	{
		key: "bandwidthKbit", label: "Bandwidth", max: 100, step: 1, words: v => v ? unit(v, "kbit/s") : "none", free: v => !v,
		at: v => v ? Math.min(99, 99 * Math.log(v / LEAST) / Math.log(MOST / LEAST)) : 100,
		of: at => at >= 100 ? 0 : Number((LEAST * (MOST / LEAST) ** (at / 99)).toPrecision(2)),
	},
];
const RADIUS = {
	key: "radius", label: "Interest radius", max: EVERYTHING, step: 20, words: v => v ? unit(v, "units") : "everything", free: v => !v,
	at: v => v || EVERYTHING, of: at => at >= EVERYTHING ? 0 : Math.max(60, at),
};

class Slider {
	constructor(kind, changed) {
		this.kind = kind;
		this.value = make("b");
		this.input = make("input");
		Object.assign(this.input, { type: "range", min: 0, max: kind.max, step: kind.step, id: "set-" + kind.key });
		this.seen = make("span", "seen", "▲");
		this.seen.hidden = true;
		this.seen.setAttribute("aria-hidden", "true");
		this.element = make("label", "slider", make("div", "", kind.label, this.value), this.input, this.seen);
		const get = () => kind.of(Number(this.input.value));
		this.input.addEventListener("input", () => { this.write(get()); changed(get(), false); });
		this.input.addEventListener("change", () => changed(get(), true));
	}
	write(v) {
		put(this.value, this.kind.words(v));
		this.input.style.setProperty("--at", Math.min(1, this.kind.at(v) / this.kind.max));
		this.input.setAttribute("aria-valuetext", this.kind.words(v));
		this.element.classList.toggle("free", this.kind.free?.(v) ?? false);
	}
	show(v) {
		this.input.value = this.kind.at(v);
		this.write(v);
	}
	mark(v) { // what the client sees
		this.seen.hidden = v === null || v === undefined || !isFinite(v);
		if (!this.seen.hidden) this.element.style.setProperty("--seen", Math.max(0, Math.min(1, this.kind.at(v) / this.kind.max)));
	}
}

// choice is buttons of which one is pressed.
export function choice(label, options, chosen) {
	const buttons = options.map(([value, words]) => {
		const b = make("button", "", words);
		b.addEventListener("click", () => chosen(value, words));
		return [value, b];
	});
	const element = make("div", "group", ...buttons.map(([, b]) => b));
	element.setAttribute("role", "group");
	element.setAttribute("aria-label", label);
	const show = now => { for (const [value, b] of buttons) b.setAttribute("aria-pressed", String(value === now)); };
	show(null);
	return { element, show };
}

function toggle(words, on, changed) {
	const input = make("input");
	input.type = "checkbox";
	input.setAttribute("role", "switch");
	input.checked = on;
	input.addEventListener("change", () => changed(input.checked));
	return { element: make("label", "switch", input, words), input };
}

// Dock has the settings. mark draws a line through the plots.
export class Dock {
	constructor(element, arena, mark) {
		this.arena = arena;
		this.mark = mark;
		this.settings = null;
		this.wanted = null;  // to be posted
		this.touched = -1e9; // when something was changed here
		this.lightAt = this.resumes = 0; // when the blackout, and the pause, end
		this.silentSince = null; // without acks
		this.element = element;
		this.build(element);
		this.ask();
		setInterval(() => { if (!document.hidden && performance.now() - this.touched > 1500) this.ask(); }, 2000);
	}

	build(element) {
		const set = (name, value, label) => { this.arena.set(name, value); this.own(); if (label) this.mark(label); };
		this.presets = choice("Network", PRESETS, (preset, words) => this.post({ preset }, words));
		this.summary = make("span", "text shut");
		this.refused = make("span", "text");
		this.refused.style.color = "var(--alert)";
		this.refused.setAttribute("role", "alert");
		this.ghosts = toggle("Ghosts", false, on => set("ghosts", on));
		this.interpolation = toggle("Interpolation", true, on => set("interpolation", on, on ? "Interpolation on" : "Interpolation off"));
		this.prediction = toggle("Prediction", true, on => set("prediction", on, on ? "Prediction on" : "Prediction off"));
		for (const t of [this.interpolation, this.prediction]) t.element.classList.add("open");
		this.button = make("button", "amber toggle", "Break the network");
		this.button.setAttribute("aria-expanded", "false");
		this.button.addEventListener("click", () => this.open(!document.body.classList.contains("opened")));
		this.ghosts.element.classList.add("push");
		const bar = make("div", "bar", make("span", "shut", "Network"), make("h2", "open", "Break the network"), this.presets.element, this.summary,
			make("span", "open seen-key", "seen"), this.refused, this.ghosts.element, this.interpolation.element, this.prediction.element,
			this.button);

		this.sliders = SLIDERS.map(kind => new Slider(kind, (v, final) => {
			this.post({ [kind.key]: v }, final ? `${kind.label.split(",")[0]} ${kind.words(v)}` : "");
		}));
		this.coding = choice("Coding", [["packed", "Packed"], ["compact", "Compact"]], (v, words) => set("coding", v, words));
		this.rate = choice("Packets per second", [10, 20, 30, 60].map(v => [v, String(v)]), v => set("sendRate", v, `${v} packets/s`));
		this.rate.element.classList.add("wide");
		this.radius = new Slider(RADIUS, (v, final) => {
			this.touched = performance.now();
			if (final) set("radius", v, `Radius ${RADIUS.words(v)}`);
		});
		const act = (words, done) => {
			const b = make("button", "", words);
			b.addEventListener("click", () => done(b));
			return b;
		};
		const now = () => performance.now();
		const action = (name, words) => act(words, () => this.post({ action: name }, words));
		const acks = act("Stop acks", b => {
			const on = b.getAttribute("aria-pressed") !== "true";
			b.setAttribute("aria-pressed", String(on));
			set("stopAcks", on, on ? "Acks stopped" : "Acks again");
			this.silentSince = on ? now() : null;
			this.count();
		});
		acks.setAttribute("aria-pressed", "false");
		acks.title = "Nothing that this tab sends arrives, until you press again: no acks, no inputs. Baselines get older. " +
			"The server stops sending after about 3\u00a0s without acks: that is what it does without an answer.";
		const dark = action("blackout", "Blackout 5\u00a0s"), pause = act("Pause 3\u00a0s", () => {
			this.resumes = now() + PAUSE;
			set("pauseClient", PAUSE, "Client paused 3\u00a0s");
			this.count();
		});
		dark.title = "For 5\u00a0s nothing arrives at the server or at any player. Then all go on by themselves.";
		pause.title = "This tab's client stands still for 3\u00a0s, as a page in the background does. Then it catches up.";
		this.timed = [[dark, "Blackout", "Blackout 5\u00a0s", () => this.lightAt], [pause, "Paused", "Pause 3\u00a0s", () => this.resumes]];
		this.acks = acks;
		const teleport = action("teleport", "Teleport all"), reset = action("reset", "Reset match");
		teleport.title = "All ships are somewhere else at once.";
		reset.title = "A new round begins for all.";
		const column = (name, ...children) => make("div", name, ...children);
		this.panel = make("div", "panel",
			column("", ...this.sliders.slice(0, 3).map(s => s.element)), column("", ...this.sliders.slice(3).map(s => s.element)),
			column("", make("div", "choice", "Coding", this.coding.element), make("div", "choice", "Packets/s", this.rate.element), this.radius.element),
			column("acts", dark, acks, pause, teleport, reset),
			make("p", "", "Network, blackout, teleport and reset: for all players and tabs. The switches, coding, packets/s, radius, acks and pause: for this tab."));
		element.append(bar, this.panel);
	}

	// count counts down on the buttons what lasts for a time.
	count() {
		for (const [b, words, still, end] of this.timed) {
			const left = Math.ceil((end() - performance.now()) / 1000);
			put(b, left > 0 ? `${words}, ${left}\u00a0s left` : still);
			b.setAttribute("aria-pressed", String(left > 0));
		}
		put(this.acks, this.silentSince === null ? "Stop acks" : `No acks for ${Math.floor((performance.now() - this.silentSince) / 1000)}\u00a0s`);
	}

	// happens names what is broken now.
	happens() {
		const left = end => Math.ceil((end - performance.now()) / 1000);
		if (left(this.lightAt) > 0) return `Blackout: nothing arrives, for ${left(this.lightAt)}\u00a0s more`;
		if (left(this.resumes) > 0) return `This client is paused for ${left(this.resumes)}\u00a0s more`;
		if (this.silentSince === null) return "";
		return performance.now() - this.silentSince < 3000 ? "No acks: baselines get older" : "No acks: without an answer, the server sends no more";
	}

	open(on) {
		document.body.classList.toggle("opened", on);
		put(this.button, on ? "Close" : "Break the network");
		this.button.classList.toggle("amber", !on);
		this.button.setAttribute("aria-expanded", String(on));
	}

	// own shows the settings of this client.
	own(status = this.arena.status()) {
		this.count();
		this.coding.show(status.coding);
		this.rate.show(status.sendRate);
		this.ghosts.input.checked = status.ghosts;
		this.interpolation.input.checked = status.interpolation;
		this.prediction.input.checked = status.prediction;
		if (performance.now() - this.touched > 1000) this.radius.show(status.radius);
	}

	// saw marks what the client sees of what is set.
	saw(seen) {
		const [loss, latency, jitter, duplicate] = this.sliders;
		loss.mark(seen.loss);
		latency.mark(seen.latency);
		jitter.mark(seen.jitter);
		duplicate.mark(seen.duplicate);
	}

	show(s) {
		this.settings = s;
		this.lightAt = s.blackoutMs ? performance.now() + s.blackoutMs : 0;
		this.count();
		for (const slider of this.sliders) slider.show(s[slider.kind.key]);
		this.presets.show(s.preset);
		put(this.summary, s.blackoutMs ? "Blackout: nothing arrives"
			: `${percent(s.loss)} loss, ${number(s.latencyMs)}\u00a0ms ±\u00a0${number(s.jitterMs)}\u00a0ms each way`);
	}

	async ask() {
		const asked = performance.now();
		try {
			const s = await json("/break");
			if (this.touched < asked) this.show(s);
		} catch { } // the panels report that nobody answers
	}

	// post changes settings: at most one request at a time, and the newest wish wins.
	async post(change, label) {
		this.touched = performance.now();
		if (label) this.mark(label);
		this.wanted = { ...this.wanted, ...change };
		if (this.posting) return;
		this.posting = true;
		while (this.wanted) {
			const body = JSON.stringify(this.wanted);
			this.wanted = null;
			try {
				const s = await json("/break", { method: "POST", headers: { "Content-Type": "application/json" }, body });
				if (!this.wanted) this.show(s);
				put(this.refused, "");
			} catch (e) { put(this.refused, "▲ " + e.message); }
		}
		this.posting = false;
	}
}
