// The player's controls: keys, mouse, and on a touch screen a stick and a button.

const KEYS = {
	KeyW: "ahead", ArrowUp: "ahead", KeyA: "left", ArrowLeft: "left", KeyD: "right", ArrowRight: "right", KeyS: "back", ArrowDown: "back",
	Space: "fire",
};

export class Controls {
	constructor(game, field, stick, fire) {
		this.held = new Set();
		this.mouse = null;    // where it points, from the middle of the field
		this.pushed = null;   // the stick: course and thrust
		this.turnTo = null;   // the course after "back"
		this.shooting = new Set();
		this.angle = 0;       // of the own ship
		this.state = { turn: 0, course: null, thrust: 0, fire: false };
		addEventListener("keydown", e => this.key(e, true));
		addEventListener("keyup", e => this.key(e, false));
		addEventListener("blur", () => { this.held.clear(); this.shooting.clear(); });
		field.addEventListener("pointermove", e => { if (e.pointerType === "mouse") this.point(field, e); });
		field.addEventListener("pointerdown", e => {
			document.activeElement?.blur();
			if (e.pointerType !== "mouse" || e.button !== 0) return;
			e.preventDefault();
			field.setPointerCapture(e.pointerId);
			this.point(field, e);
			this.shooting.add("mouse");
		});
		for (const end of ["pointerup", "pointercancel"]) {
			field.addEventListener(end, () => this.shooting.delete("mouse"));
			fire.addEventListener(end, () => { this.shooting.delete("button"); fire.classList.remove("held"); });
			stick.addEventListener(end, () => { this.pushed = null; this.knob(stick, 0, 0); });
		}
		game.addEventListener("contextmenu", e => e.preventDefault());
		fire.addEventListener("pointerdown", e => {
			e.preventDefault();
			fire.setPointerCapture(e.pointerId);
			fire.classList.add("held");
			this.shooting.add("button");
		});
		stick.addEventListener("pointerdown", e => {
			e.preventDefault();
			stick.setPointerCapture(e.pointerId);
			this.push(stick, e);
		});
		stick.addEventListener("pointermove", e => { if (stick.hasPointerCapture(e.pointerId)) this.push(stick, e); });
	}

	key(e, down) {
		const name = KEYS[e.code];
		if (!down) { if (name) this.held.delete(name); return; }
		const busy = document.activeElement && document.activeElement !== document.body;
		if (!name || busy || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		if (this.held.has(name)) return;
		this.held.add(name);
		if (name === "back") { this.turnTo = this.angle + Math.PI; this.mouse = null; }
		if (name === "left" || name === "right") this.turnTo = this.mouse = null;
	}

	point(field, e) {
		const r = field.getBoundingClientRect();
		this.mouse = Math.atan2(e.clientY - r.top - r.height / 2, e.clientX - r.left - r.width / 2);
		this.turnTo = null;
	}

	push(stick, e) {
		const r = stick.getBoundingClientRect(), half = r.width / 2;
		let x = (e.clientX - r.left) / half - 1, y = (e.clientY - r.top) / half - 1;
		const far = Math.hypot(x, y);
		if (far > 1) { x /= far; y /= far; }
		this.knob(stick, x, y);
		this.pushed = far < 0.15 ? null : { course: Math.atan2(y, x), thrust: Math.min(1, far) };
	}

	knob(stick, x, y) { stick.firstElementChild.style.transform = `translate(${x * 70}%, ${y * 70}%)`; }

	// read returns what to steer now. A finger wins over keys, keys over the mouse.
	read(angle) {
		this.angle = angle;
		const s = this.state, turn = this.held.has("right") - this.held.has("left");
		s.turn = turn;
		s.course = this.pushed ? this.pushed.course : turn ? null : this.turnTo ?? this.mouse;
		s.thrust = this.pushed ? this.pushed.thrust : this.held.has("ahead") ? 1 : 0;
		s.fire = this.held.has("fire") || this.shooting.size > 0;
		return s;
	}
}

// Sound is short tones. There is none before a click.
export class Sound {
	on = false;
	toggle() {
		this.on = !this.on;
		if (this.on) { this.audio ??= new AudioContext(); this.audio.resume(); }
		return this.on;
	}
	play(kind) {
		if (!this.on) return;
		const a = this.audio, now = a.currentTime, tone = a.createOscillator(), level = a.createGain();
		const [from, to, long] = { hit: [520, 260, 0.08], kill: [180, 40, 0.4], respawn: [300, 600, 0.2] }[kind];
		tone.type = kind === "kill" ? "sawtooth" : "square";
		tone.frequency.setValueAtTime(from, now);
		tone.frequency.exponentialRampToValueAtTime(to, now + long);
		level.gain.setValueAtTime(0.06, now);
		level.gain.exponentialRampToValueAtTime(0.001, now + long);
		tone.connect(level).connect(a.destination);
		tone.start(now);
		tone.stop(now + long);
	}
}
