// Checks of what the timeline of a replay writes: node marks.mjs MODULE, with page/marks.js as a module.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { labels, moment } = await import(pathToFileURL(process.argv[2]).href);

for (const [seconds, text] of [[0, "0:00.00"], [13 / 60, "0:00.22"], [239 / 60, "0:03.98"], [59.996, "1:00.00"], [3725.5, "62:05.50"]]) {
	assert.equal(moment(seconds), text);
}

const wide = text => 6 * text.length;
const shown = (marks, width) => labels(marks.map(([at, text]) => ({ at, text })), width, at => at, wide).map(l => l.text);

assert.deepEqual(shown([[70, "Ada joins"], [300, "blackout"]], 600), ["Ada joins", "blackout"]);
assert.deepEqual(shown([[10, "Ada joins"], [12, "Bessie joins"]], 600), ["Ada and Bessie join"]);
const four = [[10, "Ada joins"], [11, "Bessie joins"], [12, "Cleo joins"], [13, "Dora joins"]];
assert.deepEqual(shown(four, 600), ["Ada, Bessie and 2 more join"]);
assert.deepEqual(shown(four, 100), ["4 join"]);
assert.deepEqual(shown([[300, "Ada left"], [301, "Bessie left"], [302, "Cleo left"]], 310), ["Ada, Bessie and Cleo left"]);
assert.deepEqual(shown([[10, "Ada joins"], [11, "blackout"], [12, "teleport"], [400, "round over"]], 600), ["3 marks", "round over"]);
assert.deepEqual(shown([[0, "a long text of one mark"]], 50), [], "there is no room");

// No label lies over another, or leaves the canvas.
let seed = 1;
const random = n => (seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0, (seed >>> 8) % n);
for (let i = 0; i < 500; i++) {
	const width = 100 + random(900), marks = Array.from({ length: random(30) }, () => ({ at: random(width), text: "x".repeat(1 + random(20)) }));
	marks.sort((a, b) => a.at - b.at);
	let free = 0;
	for (const { text, x, align } of labels(marks, width, at => at, wide)) {
		const from = align === "right" ? x - wide(text) : x;
		assert.ok(from >= free && from + wide(text) <= width, `${i}: ${text} at ${from}, free from ${free} to ${width}`);
		free = from + wide(text);
	}
}
