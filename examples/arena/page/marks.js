// What the timeline of a replay writes: moments, and labels of its marks.

const NEAR = 48, BEFORE = 5, BETWEEN = 3; // pixels

// moment writes a time, in hundredths of a second.
export function moment(seconds) {
	const all = Math.round(seconds * 100), two = n => String(n).padStart(2, "0");
	return `${Math.floor(all / 6000)}:${two(Math.floor(all / 100) % 60)}.${two(all % 100)}`;
}

// texts returns the texts that a label of marks may have, the longest first.
function texts(marks) {
	if (marks.length === 1) return [marks[0].text];
	const n = marks.length;
	for (const [end, plural] of [[" joins", " join"], [" left", " left"]]) {
		if (!marks.every(m => m.text.endsWith(end))) continue;
		const names = marks.map(m => m.text.slice(0, -end.length));
		const last = n > 3 ? `${n - 2} more` : names[n - 1];
		return [`${names.slice(0, n > 3 ? 2 : n - 1).join(", ")} and ${last}${plural}`, n + plural];
	}
	return [`${n} marks`];
}

// labels returns the labels of marks, {text, x, align}, on a line of a width: at(seconds) is where a moment is, and
// wide(text) how wide a text is. Marks near each other share a label if there is no room for one each.
export function labels(marks, width, at, wide) {
	const groups = marks.map(m => [m]), first = g => at(g[0].at), last = g => at(g.at(-1).at);
	for (;;) {
		const placed = [];
		let free = 0, crowded = -1; // no label is before free
		groups.forEach((g, i) => {
			const from = first(g), to = last(g), next = i + 1 < groups.length ? first(groups[i + 1]) : width;
			for (const text of texts(g)) {
				const w = wide(text) + BEFORE + 1;
				if (from - w >= free) { placed.push({ text, x: from - BEFORE, align: "right" }); free = to + BETWEEN; return; }
				if (to >= free && to + w <= next) { placed.push({ text, x: to + BEFORE, align: "left" }); free = to + w; return; }
			}
			free = Math.max(free, to + BETWEEN);
			if (crowded < 0 && Math.min(i > 0 ? from - last(groups[i - 1]) : Infinity, next - to) < NEAR && groups.length > 1) crowded = i;
		});
		if (crowded < 0) return placed;
		const i = crowded, before = i > 0 ? first(groups[i]) - last(groups[i - 1]) : Infinity;
		const after = i + 1 < groups.length ? first(groups[i + 1]) - last(groups[i]) : Infinity;
		if (Math.min(before, after) >= NEAR) return placed;
		const k = before <= after ? i - 1 : i;
		groups.splice(k, 2, [...groups[k], ...groups[k + 1]]);
	}
}
