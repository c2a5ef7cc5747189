// What is shown until there is a game: the client is compiled, loaded and connected. play.js has the game, replay.js a recording.

import { $, json, make, put, script } from "./dom.js";
import { drawStill } from "./draw.js";

const wait = ms => new Promise(done => setTimeout(done, ms));
const still = document.querySelector("#cover canvas"), steps = $("steps"), failed = $("failed");

const step = words => {
	const value = make("b"), li = make("li", "", make("span", "", words), value);
	steps.append(li);
	return (state, text = "") => { li.className = state; put(value, text); };
};

const MATCH = ["Server ready", "Bots fighting", "Go to WebAssembly, first time only", "Connect and receive the world"];
const MATCH_KEYS = [["W A S D", "steer"], ["", "Mouse aims"], ["Space", "fires"]];
const REPLAY_KEYS = [["Space", "plays and pauses"], ["← →", "5\u00a0s"], ["F", "follows another ship"]];
const REPLAY = ["Server ready", "Recording found", "Go to WebAssembly, first time only", "Read the recording"];
let server, found, code, world;

function fail(why) {
	put(failed, why ? "▲ " + why : "");
	failed.hidden = !why;
}

function progress(share, seconds) {
	$("progress").firstElementChild.style.width = `${Math.round(share * 1000) / 10}%`;
	put($("seconds"), seconds === undefined ? "" : `${Math.floor(seconds)}\u00a0s`);
}

// begin learns whether there is a match or a recording to show.
async function begin() {
	for (;;) {
		try {
			const { recording } = await json("/status");
			document.body.classList.toggle("replay", Boolean(recording));
			[server, found, code, world] = (recording ? REPLAY : MATCH).map(step);
			$("hints").append(...(recording ? REPLAY_KEYS : MATCH_KEYS).map(([keys, words]) =>
				make("span", "", ...keys.split(" ").filter(Boolean).map(k => make("kbd", "", k)), words)));
			if (recording) found("done", recording);
			return recording;
		} catch (e) {
			fail(`No answer from the server: ${e.message}.`);
			await wait(250);
		}
	}
}

// compile returns when the server has compiled the client.
async function compile(recording) {
	for (let i = 0; ; i++) {
		try {
			const s = await json("/status");
			server("done");
			const share = s.of ? s.packages / s.of : 1 - Math.exp(-s.seconds / 13);
			progress(s.done ? 0.95 : 0.9 * Math.min(share, 1), s.error ? undefined : s.seconds);
			put($("doing"), s.error ? "The client does not compile" : "Compiling the client…");
			code(s.done ? "done" : "now", s.of && !s.done ? `${s.packages} of ${s.of} packages` : "");
			fail(s.error);
			if (s.done) return;
		} catch (e) {
			server("now");
			fail(`No answer from the server: ${e.message}.`);
		}
		if (i % 4 === 0 && !recording) json("/debug/arena.json").then(d => found("done", `tick ${d.tick}`), () => {});
		await wait(250);
	}
}

async function load() {
	await script("/wasm_exec.js");
	const go = new Go();
	const { instance } = await WebAssembly.instantiateStreaming(fetch("/client.wasm"), go.importObject);
	const ended = go.run(instance);
	if (!globalThis.arena) throw new Error("the client has ended");
	return { ended };
}

const redraw = new ResizeObserver(() => drawStill(still));
redraw.observe(still);
try {
	const recording = await begin();
	await compile(recording);
	put($("doing"), recording ? "Reading the recording…" : "Connecting…");
	world("now");
	const { prepare, play } = await import(recording ? "./replay.js" : "./play.js");
	await prepare(recording);
	const { ended } = await load();
	await play(ended, why => { fail(why); progress(1); });
	redraw.disconnect();
	document.body.classList.remove("waiting");
} catch (e) {
	fail(`The client does not start: ${e.message}. Reload the page to try again.`);
	throw e;
}
