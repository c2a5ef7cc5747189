// The page at the root of an inspector.
if (!location.pathname.endsWith("/")) location.replace(location.pathname + "/");
const { from, panels } = await import("./inspect.js");
panels(document.getElementById("panels"), from("."), {
	titled: name => { document.title = name ? `${name} – replication` : "Replication"; },
});
