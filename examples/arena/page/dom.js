// What all parts of the page use.

export const $ = id => document.getElementById(id);

export function make(tag, name, ...children) {
	const e = document.createElement(tag);
	if (name) e.className = name;
	if (tag === "button") e.type = "button";
	e.append(...children);
	return e;
}

// put writes text if it has changed.
export function put(e, text) {
	if (e.shown !== text) { e.shown = text; e.textContent = text; }
}

export const json = async (url, options) => {
	const answer = await fetch(url, { cache: "no-store", ...options });
	if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
	return answer.json();
};

// script loads a script of the page's.
export const script = src => new Promise((done, no) => {
	const loader = Object.assign(document.createElement("script"), { src, onload: done });
	loader.onerror = () => no(new Error(`${src} did not load`));
	document.head.append(loader);
});
