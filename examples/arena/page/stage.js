// What live play and replays have in common: the game as it is drawn, and what is written around it.

import { number } from "/debug/replication/inspect.js";
import { $, make, put } from "./dom.js";
import { Field } from "./draw.js";
import { Sound } from "./input.js";

export const NONE = "–";
const icon = d => `<svg viewBox="0 0 16 18" aria-hidden="true"><path d="${d}"/></svg>`;
const NEEDLE = icon("M8 0 13 18 8 14 3 18Z"), CHEVRON = icon("M8 0 16 18 8 12 0 18Z");
const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
export const clock = s => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;

// legend explains what is drawn: of live play, or of a replay.
export function legend(live) {
	const list = make("dl", "legend"), sign = (drawing, words) => {
		const dt = make("dt");
		dt.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true">${drawing}</svg>`;
		list.append(make("div", "", dt, make("dd", "", words)));
	};
	const frame = '<path d="M8 1 15 8 8 15 1 8Z"/>', needle = '<path d="M8 0 13 16 8 12 3 16Z"/>';
	sign(frame + '<path d="M5 8H11M8 5V11"/>', "hull");
	sign(frame + '<path d="M5 8H11"/>', "ammo");
	sign(`<g class="faint">${needle}</g>`, "wreck");
	if (live) sign(needle, "ghost");
	sign('<circle cx="8" cy="8" r="7" stroke-dasharray="3 2"/>', "protected");
	sign('<path class="blue" d="M1 9A7 7 0 0 1 15 9"/>', live ? "your shield" : "shield");
	sign('<path class="blue" d="M0 8H8"/><path class="amber" d="M8 8H16"/>', live ? "the leader's kills, yours" : "kills: the leader's, those of the ship followed");
	return list;
}

export class Stage {
	constructor(arena, live) {
		this.arena = arena;
		this.field = new Field($("field"), $("map"));
		this.sound = new Sound();
		this.frames = []; // of the last second
		const pips = (dl, words, name, n) => {
			const bar = make("dd", "pips " + name, ...Array.from({ length: n }, () => make("i"))), value = make("dd");
			dl.append(make("dt", "", words), bar, value);
			return { bar, value };
		};
		const dl = document.querySelector("#own dl");
		this.hull = pips(dl, "Hull", "hull", 10);
		this.shield = pips(dl, "Shield", "shield", 3);
		this.ammo = pips(dl, "Ammo", "", 0);
		const sound = make("button");
		this.standing = make("p");
		this.table = make("ol");
		$("match").append(this.standing, this.table, sound, legend(live));
		this.sounds = [$("sound"), sound];
		for (const b of this.sounds) b.addEventListener("click", () => this.showSound(this.sound.toggle()));
		this.showSound(false);
		this.buildTabs();
	}

	buildTabs() {
		const tabs = [...document.querySelectorAll("#tabs button")], name = b => "tab-" + b.getAttribute("aria-controls");
		const open = (b, on) => {
			for (const t of tabs) {
				document.body.classList.toggle(name(t), on && t === b);
				t.setAttribute("aria-selected", String(on && t === b));
			}
		};
		tabs.forEach((b, i) => {
			b.addEventListener("click", () => { open(b, b.getAttribute("aria-selected") !== "true"); b.blur(); });
			b.addEventListener("keydown", e => {
				const to = { ArrowRight: i + 1, ArrowLeft: i + tabs.length - 1 }[e.key];
				if (to !== undefined) tabs[to % tabs.length].focus();
			});
		});
	}

	showSound(on) {
		for (const b of this.sounds) { put(b, on ? "Sound on" : "Sound off"); b.setAttribute("aria-pressed", String(on)); }
	}

	// happen shows what has happened since the last frame.
	happen(now) {
		for (const e of this.arena.events()) {
			if (e.kind !== "kill") this.field.burst(e.x, e.y, 6, 40);
			if (e.own || e.mine || e.by) this.sound.play(e.kind);
		}
		this.frames.push(now);
		while (this.frames[0] < now - 1000) this.frames.shift();
	}

	writeOwn(own) {
		const pips = ({ bar, value }, n, max) => {
			[...bar.children].forEach((p, i) => p.classList.toggle("on", i < n));
			put(value, `${n}/${max}`);
		};
		pips(this.hull, own.hull, own.hullMax);
		pips(this.shield, own.shield, own.shieldMax);
		put(this.ammo.bar, String(own.ammo));
	}

	// writeScore writes the best ship's kills against those of the one in the middle.
	writeScore(match, own, name, known) {
		const best = match.leaders.find(l => !l.own);
		put($("clock"), known ? clock(match.clock) : NONE);
		$("best").classList.toggle("player", best?.player ?? false);
		put($("best").children[1], best ? best.name : NONE);
		put($("best").children[2], best ? String(best.kills) : "");
		put($("mine").children[0], String(own.kills));
		put($("mine").children[1], name);
		const [theirs, mine] = $("bars").children;
		theirs.style.flexGrow = (best?.kills ?? 0) + 1;
		mine.style.flexGrow = own.kills + 1;
	}

	writeFacts(entities) { put($("facts").firstElementChild, `${number(entities)} entities, ${this.frames.length} frames/s`); }

	writeNote(note) {
		put($("note"), note);
		$("note").hidden = !note;
	}

	// writeLeaders writes both tables: over the game, and for phones.
	writeLeaders(match, own, name) {
		for (const list of [$("leaders"), this.table]) {
			while (list.children.length > match.leaders.length) list.lastChild.remove();
			match.leaders.forEach((l, i) => {
				const li = list.children[i] ?? list.appendChild(make("li")), kind = l.own ? "own" : l.player ? "player" : "bot";
				if (li.className !== kind) {
					li.className = kind;
					li.innerHTML = `${kind === "player" ? CHEVRON : NEEDLE}<span></span><b></b>`;
					li.children[1].shown = undefined;
				}
				put(li.children[1], l.name);
				put(li.children[2], String(l.kills));
			});
		}
		put(this.standing, `${match.phase}, ${counted(match.players, "player")}. ${name}: ${counted(own.kills, "kill")}, ${counted(own.deaths, "death")}.`);
	}
}
