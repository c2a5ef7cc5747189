// A replay: the client plays the recording, and this draws it as live play is drawn.

import { number } from "/debug/replication/inspect.js";
import { $, make, put } from "./dom.js";
import { moment } from "./marks.js";
import { clock, legend, NONE, Stage } from "./stage.js";
import { Timeline } from "./timeline.js";

const KEYS = [
	["Space", "plays and pauses"], [", .", "one tick back and on"], ["← →", "5\u00a0seconds back and on"],
	["Home End", "to the beginning and the end"], ["F", "follows the next ship; so does a click on one"],
];
const megabytes = bytes => bytes < 1e6 ? `${number(bytes / 1e3)}\u00a0kB` : `${number(bytes / 1e6, 1)}\u00a0MB`;

// table makes a list of names and values, and returns what writes the values.
function table(rows) {
	const dl = make("dl"), values = rows.map(([name, text]) => {
		const dd = make("dd", "", text ?? NONE);
		dl.append(make("div", "", make("dt", "", name), dd));
		return dd;
	});
	return { dl, values };
}

// About is what there is to know of the recording, in place of the instruments.
class About {
	constructor(element, about, seek) {
		element.setAttribute("aria-label", "Recording");
		this.figure = document.createTextNode(NONE);
		const mean = about.duration > 0 ? 8 * about.bytes / 1000 / about.duration : null, { recorded, ...rest } = about.meta;
		const now = table([["Entities"], ["Players"], ["Entity followed"]]);
		[this.entities, this.players, this.entity] = now.values;
		const file = table([
			["Recorded", recorded], ["Length", moment(about.duration)], ["Size", megabytes(about.bytes)], ["In the mean", `${number(mean)}\u00a0kbit/s`],
			...Object.entries(rest).sort().map(([key, value]) => [key[0].toUpperCase() + key.slice(1), value]),
		]);
		this.marks = about.marks.map(m => {
			const b = make("button", "", make("span", "", moment(m.at)), m.text);
			b.addEventListener("click", () => { seek(m.at); b.blur(); });
			return { at: m.at, b };
		});
		const keys = make("dl", "keys", ...KEYS.map(([key, words]) =>
			make("div", "", make("dt", "", ...key.split(" ").map(k => make("kbd", "", k))), make("dd", "", words))));
		element.append(make("div", "about",
			make("section", "", make("div", "big", this.figure, make("small", "", "kbit/s")),
				make("p", "", "recorded around this moment: every tick, for everyone"), now.dl),
			make("section", "", make("h2", "", "Recording"), file.dl),
			make("section", "marks", make("h2", "", "Marks"), ...this.marks.length ? this.marks.map(m => m.b) : [make("p", "", "none")]),
			make("section", "", make("h2", "", "Keys"), keys, legend(false))));
	}

	write(s) {
		put(this.figure, number(s.kbits));
		put(this.entities, number(s.entities));
		put(this.players, number(s.match.players));
		put(this.entity, s.entity || NONE);
		const latest = this.marks.findLast(m => m.at <= s.position);
		for (const m of this.marks) m.b.classList.toggle("latest", m === latest);
	}
}

class Replay {
	constructor(arena) {
		this.arena = arena;
		const about = arena.about();
		$("tabs").children[1].remove();
		put($("tabs").children[0], "Recording");
		this.stage = new Stage(arena, false);
		this.timeline = new Timeline($("dock"), arena, about);
		this.about = new About($("net"), about, at => this.timeline.seek(at));
		$("name").readOnly = true;
		$("name").tabIndex = -1;
		$("transport").replaceChildren("Replay", make("span", "", `, ${globalThis.arenaRecordingName}`));
		$("wire").title = document.title = globalThis.arenaRecordingName;
		const { field } = this.stage;
		field.canvas.addEventListener("pointerdown", e => {
			document.activeElement?.blur();
			const r = field.canvas.getBoundingClientRect();
			arena.set("followAt", field.at(e.clientX - r.left, e.clientY - r.top));
		});
		// A button that was clicked gives the keys back.
		for (const area of [$("dock"), $("top")]) area.addEventListener("click", e => { if (e.detail > 0 && e.target.tagName !== "INPUT") document.activeElement?.blur(); });
		this.before = performance.now();
		this.read = this.wrote = 0; // when the status was read, and slow words were written
		this.status = arena.status();
	}

	frame(now) {
		const { stage, timeline, status } = this, dt = now - this.before, seeks = timeline.go(), still = timeline.held || seeks;
		this.before = now;
		const { rows, n } = this.arena.frame(still ? 0 : dt);
		if (seeks) { stage.field.forget(); this.read = 0; }
		stage.happen(now);
		if (now - this.read >= 100) { this.read = now; this.write(now); }
		if (document.hidden) return;
		stage.field.frame(rows, n, { own: this.status.own, radius: 0, ghosts: false, dt: still || !status.plays ? 0 : Math.min(dt, 100) / 1000 * timeline.speed });
	}

	write(now) {
		const s = this.status = this.arena.status(), { stage } = this, { own, match } = s;
		this.timeline.write(s);
		stage.writeOwn(own);
		stage.writeScore(match, own, s.followed, true);
		if ($("name").value !== s.followed) $("name").value = s.followed;
		stage.writeNote(this.note(s));
		if (now - this.wrote < 500 && s.plays) return;
		this.wrote = now;
		this.about.write(s);
		stage.writeFacts(s.entities);
		stage.writeLeaders(match, own, s.followed);
	}

	note({ why, present, followed, own, match }) {
		if (this.gone || why) return `The replay has ended: ${this.gone || why}`;
		if (match.phase === "warm-up") return `Warm-up: guns work in ${clock(match.clock)}`;
		if (match.phase === "over") return match.leaders[0] ? `Round over: ${match.leaders[0].name} wins with ${match.leaders[0].kills}` : "Round over";
		if (!present) return followed ? `${followed} is not there at this moment` : "";
		return own.alive ? "" : "Destroyed";
	}
}

// prepare does what comes before the client: it loads the recording, with this name.
export async function prepare(name) {
	const answer = await fetch("/recording", { cache: "no-store" });
	if (!answer.ok) throw new Error(`the recording can't be loaded: ${(await answer.text()).trim()}`);
	globalThis.arenaRecording = new Uint8Array(await answer.arrayBuffer());
	globalThis.arenaRecordingName = name;
}

// play starts the replay.
export async function play(ended) {
	const { arena } = globalThis, why = arena.failed();
	if (why) throw new Error(why);
	const page = new Replay(arena);
	ended.then(() => { page.gone = "the client has ended"; }, e => { page.gone = String(e); });
	const run = now => {
		requestAnimationFrame(run);
		page.frame(now);
	};
	requestAnimationFrame(run);
}
