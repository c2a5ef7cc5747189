// The controls of a replay: a time slider under what was recorded when, speeds, and steps.

import { number } from "/debug/replication/inspect.js";
import { choice } from "./dock.js";
import { make, put } from "./dom.js";
import { fit } from "./draw.js";
import { labels, moment } from "./marks.js";

const KNOB = 14, BAR = 3, GAP = 1, LABELS = 14; // pixels
const SPEEDS = [[0.5, "½×"], [1, "1×"], [2, "2×"], [4, "4×"], [16, "16×"]];
const PLAY = "M4 1 15 8 4 15Z", PAUSE = "M3 1H6.5V15H3ZM9.5 1H13V15H9.5Z";
const SKIP = 5; // seconds

export class Timeline {
	constructor(element, arena, about) {
		this.arena = arena;
		this.about = about;
		this.rate = about.rate || 60;
		this.goal = null;     // seconds, where the slider was moved
		this.held = false;    // the slider
		this.speed = 1;
		this.shown = {};
		this.build(element);
		addEventListener("keydown", e => this.key(e));
		new ResizeObserver(() => this.draw()).observe(this.canvas);
	}

	build(element) {
		const icon = make("span");
		icon.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><path/></svg>';
		this.icon = icon.querySelector("path");
		this.button = make("button", "amber playing", icon.firstChild);
		this.button.addEventListener("click", () => this.toggle());
		this.canvas = make("canvas");
		this.slider = make("input");
		Object.assign(this.slider, { type: "range", min: 0, max: Math.max(1, Math.round(this.about.duration * this.rate)), step: 1, value: 0, id: "time" });
		this.slider.setAttribute("aria-label", "Time");
		this.slider.addEventListener("input", () => { this.goal = Number(this.slider.value) / this.rate; this.place(this.goal); });
		this.slider.addEventListener("pointerdown", () => { this.held = true; });
		for (const end of ["pointerup", "pointercancel", "change"]) this.slider.addEventListener(end, () => { this.held = false; });
		this.canvas.addEventListener("pointerdown", e => {
			const r = this.canvas.getBoundingClientRect(), at = (e.clientX - r.left - KNOB / 2) / (r.width - KNOB);
			this.seek(at * this.about.duration);
		});
		this.speeds = choice("Speed", SPEEDS, speed => this.setSpeed(speed));
		this.speeds.show(1);
		this.at = make("b");
		this.of = make("span");
		this.tick = make("span", "tick");
		const step = (words, ticks, title) => {
			const b = make("button", "", words);
			b.title = b.ariaLabel = title;
			b.addEventListener("click", () => this.step(ticks));
			return b;
		};
		this.follow = make("button", "follow");
		this.follow.addEventListener("click", () => this.arena.set("follow", true));
		this.damage = make("p", "damage");
		this.damage.setAttribute("role", "status");
		this.damage.hidden = true;
		element.setAttribute("aria-label", "Replay");
		element.append(make("div", "replaying", this.button, make("div", "slider timeline", this.canvas, this.slider), this.speeds.element,
			make("div", "moment", make("p", "", this.at, this.of, this.tick),
				step("‹", -1, "One tick back (,)"), step("›", 1, "One tick on (.)"), this.follow), this.damage));
	}

	toggle() { this.arena.set("play", !this.plays); }
	seek(seconds) { this.goal = Math.max(0, Math.min(seconds, this.about.duration)); }
	step(ticks) { this.arena.set("step", ticks); this.seeks = true; }
	setSpeed(speed) {
		this.speed = speed;
		this.arena.set("speed", speed);
		this.speeds.show(speed);
	}

	key(e) {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const focus = document.activeElement, sliding = focus === this.slider;
		const skip = seconds => () => this.seek((this.goal ?? this.position) + seconds);
		if (focus?.tagName === "BUTTON" && (e.code === "Space" || e.code === "Enter")) return;
		const act = {
			" ": () => { if (!e.repeat) this.toggle(); },
			",": () => this.step(-1), ".": () => this.step(1),
			f: () => this.arena.set("follow", true), F: () => this.arena.set("follow", true),
			...(focus?.role === "tab" ? {} : {
				ArrowLeft: skip(-SKIP), ArrowRight: skip(SKIP), Home: () => this.seek(0), End: () => this.seek(this.about.duration),
			}),
			...(sliding ? { ArrowDown: skip(-SKIP), ArrowUp: skip(SKIP) } : {}),
		}[e.key];
		if (!act) return;
		e.preventDefault();
		act();
	}

	// go is called before a frame, and returns whether the frame is of another moment.
	go() {
		const seeks = this.seeks || this.goal !== null;
		if (this.goal !== null) this.arena.set("seek", this.goal);
		this.goal = null;
		this.seeks = false;
		return seeks;
	}

	// place shows a position, in seconds.
	place(position) {
		const { duration } = this.about, words = moment(position);
		this.slider.style.setProperty("--at", duration > 0 ? Math.min(1, position / duration) : 0);
		this.slider.setAttribute("aria-valuetext", `${words} of ${moment(duration)}`);
		put(this.at, words);
	}

	write(s) {
		this.position = s.position;
		this.plays = s.plays;
		if (!this.held && this.goal === null) {
			this.slider.value = Math.round(s.position * this.rate);
			this.place(s.position);
		}
		put(this.of, ` of ${moment(this.about.duration)}`);
		put(this.tick, `, tick ${number(s.tick)}`);
		this.icon.setAttribute("d", s.plays ? PAUSE : PLAY);
		this.button.ariaLabel = this.button.title = s.plays ? "Pause (space)" : "Play (space)";
		put(this.follow, `following ${s.followed || "nobody"}`);
		this.follow.title = `${s.entity ? `Entity ${s.entity}. ` : ""}Follow the next ship (F)`;
		put(this.damage, s.damage ? `▲ ${s.damage[0].toUpperCase()}${s.damage.slice(1)}.` : "");
		this.damage.hidden = !s.damage;
	}

	// draw draws how much was recorded when, and the marks.
	draw() {
		const { canvas, about } = this, ratio = fit(canvas), c = canvas.getContext("2d");
		const w = canvas.clientWidth, h = canvas.clientHeight, { duration, segments, marks } = about;
		if (!w || !duration) return;
		const at = seconds => KNOB / 2 + (w - KNOB) * seconds / duration;
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, w, h);
		const ends = segments.map((s, i) => segments[i + 1]?.[0] ?? duration);
		const rates = segments.map(([from, bytes], i) => ends[i] > from ? bytes / (ends[i] - from) : 0), most = Math.max(...rates, 1);
		c.beginPath();
		for (let x = KNOB / 2, i = 0; x + BAR <= w - KNOB / 2; x += BAR + GAP) {
			const seconds = (x + BAR / 2 - KNOB / 2) / (w - KNOB) * duration;
			while (i < segments.length - 1 && ends[i] <= seconds) i++;
			const high = Math.max(1, (h - LABELS) * (rates[i] ?? 0) / most);
			c.rect(x, h - high, BAR, high);
		}
		c.fillStyle = "#45525d";
		c.fill();
		c.font = "11px Inter, system-ui, sans-serif";
		c.textBaseline = "top";
		c.fillStyle = c.strokeStyle = "#f1f5f7";
		c.beginPath();
		for (const m of marks) {
			const x = Math.round(at(m.at)) + 0.5;
			c.moveTo(x, 0);
			c.lineTo(x, h);
		}
		for (const { text, x, align } of labels(marks, w, at, text => c.measureText(text).width)) {
			c.textAlign = align;
			c.fillText(text, x, 0);
		}
		c.lineWidth = 1;
		c.stroke();
	}
}
