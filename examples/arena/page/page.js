// What is shown until there is a game: the client is compiled, loaded and connected. play.js has the game.

import { $, json, make, put } from "./dom.js";
import { drawStill } from "./draw.js";

const wait = ms => new Promise(done => setTimeout(done, ms));
const still = document.querySelector("#cover canvas"), steps = $("steps"), failed = $("failed");

const step = words => {
	const value = make("b"), li = make("li", "", make("span", "", words), value);
	steps.append(li);
	return (state, text = "") => { li.className = state; put(value, text); };
};

const server = step("Server ready"), bots = step("Bots fighting"), code = step("Go to WebAssembly, first time only");
const world = step("Connect and receive the world");

function fail(why) {
	put(failed, why ? "▲ " + why : "");
	failed.hidden = !why;
}

function progress(share, seconds) {
	$("progress").firstElementChild.style.width = `${Math.round(share * 1000) / 10}%`;
	put($("seconds"), seconds === undefined ? "" : `${Math.floor(seconds)}\u00a0s`);
}

// compile returns when the server has compiled the client.
async function compile() {
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
		if (i % 4 === 0) json("/debug/arena.json").then(d => bots("done", `tick ${d.tick}`), () => {});
		await wait(250);
	}
}

async function load() {
	put($("doing"), "Connecting…");
	world("now");
	await new Promise((done, no) => {
		const loader = Object.assign(document.createElement("script"), { src: "/wasm_exec.js", onload: done });
		loader.onerror = () => no(new Error("wasm_exec.js did not load"));
		document.head.append(loader);
	});
	const go = new Go();
	const { instance } = await WebAssembly.instantiateStreaming(fetch("/client.wasm"), go.importObject);
	const ended = go.run(instance);
	if (!globalThis.arena) throw new Error("the client has ended");
	return { ended };
}

const redraw = new ResizeObserver(() => drawStill(still));
redraw.observe(still);
try {
	await compile();
	const { remember, play } = await import("./play.js");
	remember();
	const { ended } = await load();
	await play(ended, why => { fail(why); progress(1); });
	redraw.disconnect();
	document.body.classList.remove("waiting");
} catch (e) {
	fail(`The client does not start: ${e.message}. Reload the page to try again.`);
	throw e;
}
