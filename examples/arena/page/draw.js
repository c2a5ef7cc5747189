// The game on its canvases, drawn in bulk from the rows of the client: kind, team, x, y, angle, extra.

const HALF = 511, ROW = 6;
const SHIP = 0, BULLET = 1, POWER_UP = 2, WRECK = 3, GHOST = 4, YOU = 2;
const COLOURS = ["#58b2f5", "#ff7b52", "#ffbe3d"]; // bots, players, you
const SHOTS = ["#a9d8ff", "#ffc0a6", "#ffe3a6"];
// Ships around their middle, nose along x: bots are needles, players chevrons.
const NEEDLE = [11, 0, -8, 4.5, -5, 0, -8, -4.5], CHEVRON = [10, 0, -8, 8, -4, 0, -8, -8];
const OUTLINES = [NEEDLE, CHEVRON, NEEDLE];
const TRAIL = 16, SAMPLE = 0.05; // samples kept, and seconds from one to the next
const SPARKS = 768, SPARK_LIFE = 0.9, BOOM_LIFE = 0.8;
const SPARK_AGES = ["#fff6dd", "#ffd9a0", "rgba(255, 154, 90, 0.7)", "rgba(255, 123, 82, 0.35)"];
const still = matchMedia("(prefers-reduced-motion: reduce)");

// random returns numbers from 0 to 1, the same in every page.
function random(seed) {
	return () => {
		seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
		return (seed >>> 8 & 0xffff) / 0x10000;
	};
}

// fit gives a canvas the pixels that it covers, and returns how many there are to a pixel of the page.
export function fit(canvas, changed = () => {}) {
	const ratio = Math.min(devicePixelRatio || 1, 2);
	const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
	if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; changed(); }
	return ratio;
}

// trace adds an outline to the path.
function trace(c, outline, x, y, angle, size) {
	const cos = Math.cos(angle) * size, sin = Math.sin(angle) * size;
	for (let i = 0; i < 8; i += 2) {
		const px = x + outline[i] * cos - outline[i + 1] * sin, py = y + outline[i] * sin + outline[i + 1] * cos;
		if (i) c.lineTo(px, py); else c.moveTo(px, py);
	}
	c.closePath();
}

// explosion draws the sprite of all explosions.
function explosion() {
	const sprite = document.createElement("canvas"), c = sprite.getContext("2d"), r = random(7);
	sprite.width = sprite.height = 160;
	const glow = c.createRadialGradient(80, 80, 0, 80, 80, 74);
	glow.addColorStop(0, "rgba(255, 190, 130, 0.7)");
	glow.addColorStop(0.18, "rgba(255, 140, 80, 0.32)");
	glow.addColorStop(1, "rgba(255, 120, 70, 0)");
	c.fillStyle = glow;
	c.fillRect(0, 0, 160, 160);
	c.strokeStyle = "#fff1d6";
	c.lineWidth = 2;
	c.beginPath();
	for (let i = 0; i < 18; i++) {
		const a = r() * 7, from = 3 + r() * 4, to = from + 4 + r() * 12;
		c.moveTo(80 + Math.cos(a) * from, 80 + Math.sin(a) * from);
		c.lineTo(80 + Math.cos(a) * to, 80 + Math.sin(a) * to);
	}
	c.stroke();
	return sprite;
}

export class Field {
	constructor(canvas, map) {
		this.canvas = canvas;
		this.c = canvas.getContext("2d", { alpha: false });
		this.map = map;
		this.mapped = 0;
		this.back = document.createElement("canvas");
		this.boom = explosion();
		this.booms = [];
		this.sparks = new Float32Array(SPARKS * 5); // x, y, velocity, age
		this.sparks.fill(SPARK_LIFE);
		this.spark = 0;
		this.trails = []; // by age and team: x, y to x, y
		this.ships = [];  // where they were
		this.wrecks = null;
		this.sampled = 0;
		this.camera = { x: 0, y: 0 };
		this.own = null; // the row of the own ship
		const r = random(3);
		this.stars = Array.from({ length: 220 }, () => [r(), r(), r()]);
	}

	// frame draws. Options: own {name, shield, shieldMax}, radius of interest, ghosts, dt in seconds.
	frame(rows, n, { own, radius, ghosts, dt }) {
		const canvas = this.canvas, ratio = fit(canvas, () => this.paintBack()), c = this.c, now = performance.now();
		const w = this.w = canvas.clientWidth, h = this.h = canvas.clientHeight;
		this.rows = rows;
		this.n = n;
		this.scale = Math.max(0.9, Math.sqrt(w * h) / 620); // pixels a unit
		this.size = Math.max(0.9, this.scale / 1.2);
		this.find(rows, n);
		this.sample(rows, n, dt);
		c.setTransform(1, 0, 0, 1, 0, 0);
		c.drawImage(this.back, 0, 0);
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.drawSky();
		this.drawTrails();
		this.drawSparks(dt);
		this.drawBullets();
		this.drawPowerUps();
		this.drawShips();
		if (ghosts) this.drawGhosts();
		this.drawOwn(own);
		if (now - this.mapped >= 100 && this.map.clientWidth) { this.mapped = now; this.drawMap(radius); }
	}

	x(x) { return (x - this.camera.x) * this.scale + this.w / 2; }
	y(y) { return (y - this.camera.y) * this.scale + this.h / 2; }
	seen(x, y, margin = 20) { return x > -margin && y > -margin && x < this.w + margin && y < this.h + margin; }

	// at returns what is drawn at a point of the canvas.
	at(px, py) { return [(px - this.w / 2) / this.scale + this.camera.x, (py - this.h / 2) / this.scale + this.camera.y]; }

	// forget lets nothing of the past be drawn, after a seek.
	forget() {
		this.trails = [];
		this.ships = [];
		this.booms = [];
		this.wrecks = null;
		this.sparks.fill(SPARK_LIFE);
	}

	find(rows, n) {
		this.own = null;
		for (let i = 0; i < n * ROW; i += ROW) {
			if (rows[i + 1] === YOU && (rows[i] === SHIP || rows[i] === WRECK)) {
				this.own = i;
				this.camera.x = rows[i + 2];
				this.camera.y = rows[i + 3];
				return;
			}
		}
	}

	// sample adds a piece to every trail: a ship was the nearest one of its team. A new wreck explodes.
	sample(rows, n, dt) {
		this.sampled += dt;
		if (this.sampled < SAMPLE) return;
		this.sampled = 0;
		const trail = [[], [], []], ships = [], wrecks = [];
		for (let i = 0; i < n * ROW; i += ROW) {
			const team = rows[i + 1], x = rows[i + 2], y = rows[i + 3];
			if (rows[i] === WRECK) {
				wrecks.push({ team, x, y });
				if (this.wrecks && !this.nearest(this.wrecks, team, x, y, 8)) this.explode(x, y);
			} else if (rows[i] === SHIP) {
				const from = this.nearest(this.ships, team, x, y, 14);
				if (from) trail[team].push(from.x, from.y, x, y);
				ships.push({ team, x, y });
			}
		}
		this.trails = [trail, ...this.trails.slice(0, TRAIL - 1)];
		this.ships = ships;
		this.wrecks = wrecks;
	}

	nearest(list, team, x, y, within) {
		let best = within * within, found = null;
		for (const s of list) {
			const d = (s.x - x) ** 2 + (s.y - y) ** 2;
			if (d < best && s.team === team) { best = d; found = s; }
		}
		return found;
	}

	explode(x, y) {
		if (this.booms.length < 64) this.booms.push({ x, y, age: 0 });
		this.burst(x, y, 26, 70);
	}

	// burst makes sparks.
	burst(x, y, n, speed) {
		if (still.matches) return;
		for (let i = 0; i < n; i++) {
			const a = Math.random() * 2 * Math.PI, v = speed * (0.2 + Math.random());
			this.sparks.set([x, y, Math.cos(a) * v, Math.sin(a) * v, 0], 5 * this.spark);
			this.spark = (this.spark + 1) % SPARKS;
		}
	}

	paintBack() {
		const b = this.back, c = b.getContext("2d", { alpha: false });
		b.width = this.canvas.width;
		b.height = this.canvas.height;
		const g = c.createRadialGradient(b.width / 2, b.height * 0.45, 0, b.width / 2, b.height * 0.45, Math.max(b.width, b.height) * 0.6);
		g.addColorStop(0, "#0b1722");
		g.addColorStop(1, "#05070a");
		c.fillStyle = g;
		c.fillRect(0, 0, b.width, b.height);
	}

	// each calls f with the place on the canvas of all rows of a kind that are seen.
	each(kind, f) {
		const { rows } = this;
		for (let i = 0; i < this.n * ROW; i += ROW) {
			if (rows[i] !== kind) continue;
			const x = this.x(rows[i + 2]), y = this.y(rows[i + 3]);
			if (this.seen(x, y)) f(x, y, rows[i + 1], rows[i + 4], rows[i + 5], i);
		}
	}

	pen(colour, width, dash = []) {
		this.c.strokeStyle = colour;
		this.c.lineWidth = width;
		this.c.setLineDash(dash);
		this.c.stroke();
	}

	circle(x, y, radius, from = 0, to = 2 * Math.PI) {
		this.c.beginPath();
		this.c.arc(x, y, radius, from, to);
	}

	drawSky() {
		const { c, w, h, scale, camera } = this, tile = Math.max(w, h, 640) + 4, wrap = v => (v % tile + tile) % tile;
		c.beginPath();
		for (const [sx, sy, far] of this.stars) {
			const p = still.matches ? scale : scale * (0.25 + 0.5 * far);
			c.rect(wrap(sx * tile - camera.x * p), wrap(sy * tile - camera.y * p), 1 + far * 0.8, 1 + far * 0.8);
		}
		c.fillStyle = "rgba(180, 192, 202, 0.4)";
		c.fill();
		c.beginPath();
		for (let at = -384; at <= 384; at += 128) {
			const x = Math.round(this.x(at)) + 0.5, y = Math.round(this.y(at)) + 0.5;
			c.moveTo(x, this.y(-HALF)); c.lineTo(x, this.y(HALF));
			c.moveTo(this.x(-HALF), y); c.lineTo(this.x(HALF), y);
		}
		this.pen("rgba(140, 154, 166, 0.1)", 1);
		c.beginPath();
		c.rect(this.x(-HALF), this.y(-HALF), 2 * HALF * scale, 2 * HALF * scale);
		this.pen("#6b7884", 1);
	}

	drawTrails() {
		const c = this.c;
		for (let team = 0; team < 3; team++) {
			for (let group = 0; group < 4; group++) {
				c.beginPath();
				for (const { [team]: t } of this.trails.slice(group * TRAIL / 4, (group + 1) * TRAIL / 4)) {
					for (let k = 0; k < t.length; k += 4) {
						const x = this.x(t[k]), y = this.y(t[k + 1]);
						if (this.seen(x, y)) { c.moveTo(x, y); c.lineTo(this.x(t[k + 2]), this.y(t[k + 3])); }
					}
				}
				c.globalAlpha = 0.3 - 0.07 * group;
				this.pen(COLOURS[team], 2 - 0.3 * group);
			}
		}
		c.globalAlpha = 1;
	}

	drawSparks(dt) {
		const c = this.c, s = this.sparks, k = 0.03 * this.scale, r = 58 * this.size, slower = Math.exp(-2 * dt);
		this.booms = this.booms.filter(b => (b.age += dt) < BOOM_LIFE);
		for (const b of this.booms) {
			const x = this.x(b.x), y = this.y(b.y);
			c.globalAlpha = 1 - b.age / BOOM_LIFE;
			if (this.seen(x, y, r)) c.drawImage(this.boom, x - r, y - r, 2 * r, 2 * r);
		}
		c.globalAlpha = 1;
		SPARK_AGES.forEach((colour, age) => {
			c.beginPath();
			for (let i = 0; i < s.length; i += 5) {
				if (s[i + 4] >= SPARK_LIFE || Math.floor(s[i + 4] / SPARK_LIFE * SPARK_AGES.length) !== age) continue;
				const x = this.x(s[i]), y = this.y(s[i + 1]);
				if (this.seen(x, y)) { c.moveTo(x, y); c.lineTo(x + s[i + 2] * k, y + s[i + 3] * k); }
			}
			this.pen(colour, 1.5);
		});
		for (let i = 0; i < s.length; i += 5) {
			s[i] += s[i + 2] * dt; s[i + 1] += s[i + 3] * dt;
			s[i + 2] *= slower; s[i + 3] *= slower;
			s[i + 4] += dt;
		}
	}

	drawBullets() {
		const c = this.c, long = 5.5 * this.size;
		c.lineCap = "round";
		for (let team = 0; team < 3; team++) {
			c.beginPath();
			this.each(BULLET, (x, y, of, angle) => {
				if (of !== team) return;
				const dx = Math.cos(angle) * long, dy = Math.sin(angle) * long;
				c.moveTo(x - dx, y - dy); c.lineTo(x + dx, y + dy);
			});
			c.globalAlpha = 0.55;
			this.pen(COLOURS[team], 4);
			c.globalAlpha = 1;
			this.pen(SHOTS[team], 1.75);
		}
		c.lineCap = "butt";
	}

	// drawPowerUps draws a plus for hull, in two frames for more of it, and a bar for ammunition.
	drawPowerUps() {
		const c = this.c, frame = (x, y, r) => { c.moveTo(x, y - r); c.lineTo(x + r, y); c.lineTo(x, y + r); c.lineTo(x - r, y); c.closePath(); };
		c.beginPath();
		this.each(POWER_UP, (x, y, team, angle, kind) => {
			frame(x, y, 6.5);
			if (kind === 2) frame(x, y, 9.5);
			c.moveTo(x - 3, y); c.lineTo(x + 3, y);
			if (kind < 3) { c.moveTo(x, y - 3); c.lineTo(x, y + 3); }
		});
		this.pen("#f1f5f7", 1.25);
	}

	// outlines makes a path of all ships of a kind and team.
	outlines(kind, only = -1) {
		this.c.beginPath();
		this.each(kind, (x, y, team, angle) => {
			if (only < 0 || team === only) trace(this.c, OUTLINES[team], x, y, angle, this.size * (team === YOU ? 1.25 : 1));
		});
	}

	drawShips() {
		this.outlines(WRECK);
		this.pen("rgba(140, 154, 166, 0.4)", 1);
		for (let team = 0; team < 3; team++) {
			this.outlines(SHIP, team);
			this.c.fillStyle = COLOURS[team];
			this.c.fill();
		}
		this.c.beginPath(); // protected ships
		this.each(SHIP, (x, y, team, angle, safe) => {
			const r = team === YOU ? 34 : 15 * this.size;
			if (safe > 0) { this.c.moveTo(x + r, y); this.c.arc(x, y, r, 0, 2 * Math.PI); }
		});
		this.pen("#f1f5f7", 1.5, [6, 4]);
	}

	// drawGhosts draws where the server has ships, and lines to where they are shown: at the ghost's distance.
	drawGhosts() {
		const c = this.c, rows = this.rows;
		c.beginPath();
		this.each(GHOST, (x, y, team, angle, distance, i) => {
			let nearest = 1, to = -1;
			for (let k = 0; k < this.n * ROW; k += ROW) {
				if (rows[k] !== SHIP || rows[k + 1] !== team) continue;
				const off = Math.abs(Math.hypot(rows[k + 2] - rows[i + 2], rows[k + 3] - rows[i + 3]) - distance);
				if (off < nearest) { nearest = off; to = k; }
			}
			if (to >= 0) { c.moveTo(x, y); c.lineTo(this.x(rows[to + 2]), this.y(rows[to + 3])); }
		});
		this.pen("#ff9fdc", 1);
		this.outlines(GHOST);
		this.pen("rgba(255, 255, 255, 0.6)", 1);
	}

	drawOwn(own) {
		if (this.own === null || this.rows[this.own] !== SHIP) return;
		const c = this.c, x = this.w / 2, y = this.h / 2, angle = this.rows[this.own + 4], half = Math.PI / 2 * own.shield / own.shieldMax;
		this.circle(x, y, 24);
		this.pen(COLOURS[YOU], 1.75);
		c.beginPath();
		c.moveTo(x + Math.cos(angle) * 30, y + Math.sin(angle) * 30);
		c.lineTo(x + Math.cos(angle) * 130, y + Math.sin(angle) * 130);
		c.globalAlpha = 0.45;
		this.pen(COLOURS[YOU], 1, [5, 5]);
		c.globalAlpha = 1;
		this.circle(x, y, 28, -Math.PI / 2 - half, -Math.PI / 2 + half);
		this.pen(COLOURS[0], 3);
		c.font = "600 12px Inter, system-ui, sans-serif";
		c.textAlign = "center";
		c.strokeStyle = "#05070a";
		c.fillStyle = COLOURS[YOU];
		c.strokeText(own.name, x, y + 43);
		c.fillText(own.name, x, y + 43);
	}

	drawMap(radius) {
		const { map, rows } = this, c = map.getContext("2d"), ratio = fit(map), side = map.clientWidth;
		const k = side / (2 * HALF), at = v => (v + HALF) * k, x = at(this.camera.x), y = at(this.camera.y);
		const w = this.w / this.scale * k, h = this.h / this.scale * k;
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, side, side);
		for (let team = 0; team < 2; team++) {
			c.fillStyle = COLOURS[team];
			for (let i = 0; i < this.n * ROW; i += ROW) {
				if (rows[i] === SHIP && rows[i + 1] === team) c.fillRect(at(rows[i + 2]) - 1, at(rows[i + 3]) - 1, 2, team ? 3 : 2);
			}
		}
		c.strokeStyle = "#8c9aa6";
		c.setLineDash([]);
		c.strokeRect(x - w / 2, y - h / 2, w, h);
		if (this.own === null) return;
		c.fillStyle = c.strokeStyle = COLOURS[YOU];
		c.fillRect(x - 2.5, y - 2.5, 5, 5);
		if (!radius) return;
		c.setLineDash([3, 3]);
		c.beginPath();
		c.arc(x, y, radius * k, 0, 2 * Math.PI);
		c.stroke();
	}
}

// drawStill draws what is behind the page until the game is there.
export function drawStill(canvas) {
	const ratio = fit(canvas), c = canvas.getContext("2d"), r = random(5);
	const w = canvas.clientWidth, h = canvas.clientHeight;
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	c.clearRect(0, 0, w, h);
	c.strokeStyle = "rgba(140, 154, 166, 0.12)";
	c.beginPath();
	for (let radius = 120; radius < Math.hypot(w, h) / 2; radius += 120) {
		c.moveTo(w / 2 + radius, h / 2);
		c.arc(w / 2, h / 2, radius, 0, 2 * Math.PI);
	}
	c.stroke();
	c.fillStyle = "rgba(180, 192, 202, 0.5)";
	for (let i = 0; i < 160; i++) c.fillRect(r() * w, r() * h, 1 + r(), 1 + r());
	c.globalAlpha = 0.4;
	for (let i = 0; i < 44; i++) {
		const x = r() * w, y = r() * h, angle = Math.floor(r() * 9) * 0.7, team = i % 2;
		if (Math.abs(x - w / 2) < 290 && Math.abs(y - h / 2) < 180) continue;
		c.beginPath();
		trace(c, OUTLINES[team], x, y, angle, 0.8);
		c.fillStyle = COLOURS[team];
		c.fill();
	}
	c.globalAlpha = 1;
}
