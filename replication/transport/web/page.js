// The sockets of a game whose client is a Go program in this page: package replication/transport/web.
globalThis.archeReplicate = (() => {
	const home = globalThis.document?.currentScript?.src?.split("?")[0] ?? ""
	const mostWaiting = 1024, mostUnsent = 8
	let udpFrom = 0 // when to try WebTransport again after it has failed
	let arrived = () => {} // for hidden pages, see frames

	// where returns the complete URL of a handler, or "".
	const where = url => {
		try {
			const at = new URL(url || home, globalThis.location?.href)
			at.protocol = at.protocol.replace("ws", "http")
			at.search = at.hash = ""
			return at.protocol.startsWith("http") ? at.href : ""
		} catch { return "" }
	}

	const late = ms => new Promise((_, no) => setTimeout(() => no(new Error("no answer")), ms))

	// dial opens a socket. It calls opened(kind, largest packet) at most once, then ended(status, text) once, neither
	// after close. Go copies packets through inbox and outbox, where a packet follows its length in 4 bytes.
	const dial = (url, opened, ended) => {
		const inbox = new Uint8Array(1 << 16), outbox = new Uint8Array(4 + (1 << 16)), waiting = []
		let write = () => 0, shut = () => {}, dropped = 0, over = false

		const close = () => {
			over = true
			globalThis.removeEventListener?.("pagehide", left)
			shut()
		}
		const end = (status, text) => { if (!over) { close(); ended(status, text) } }
		const left = () => end(0, "the page was left") // it may be kept, with its sockets, to come back
		globalThis.addEventListener?.("pagehide", left)
		const take = data => {
			const packet = new Uint8Array(data)
			if (packet.length == 0 || packet.length > inbox.length) return
			if (waiting.length < mostWaiting) waiting.push(packet)
			else dropped++
			arrived()
		}

		const webTransport = async (at, info) => {
			const to = new URL(at)
			to.protocol = "https:"
			to.port = info.port
			const pin = info.hash && { algorithm: "sha-256", value: Uint8Array.from(atob(info.hash), c => c.charCodeAt(0)) }
			const wt = new WebTransport(to.href, pin ? { serverCertificateHashes: [pin] } : {})
			wt.closed.catch(() => {})
			shut = () => wt.close()
			await Promise.race([wt.ready, late(3000)])
			const writer = (wt.datagrams.createWritable?.() ?? wt.datagrams.writable).getWriter()
			const reader = wt.datagrams.readable.getReader()
			const unsent = new Set()
			write = packet => {
				if (unsent.size >= mostUnsent) return 0
				const sent = writer.write(packet.slice()).catch(() => {}).then(() => unsent.delete(sent))
				unsent.add(sent)
				return 1
			}
			shut = () => Promise.race([Promise.all(unsent), late(200)]).catch(() => {}).then(() => wt.close())
			if (over) return shut()
			opened("WebTransport", wt.datagrams.maxDatagramSize)
			for (let got; !(got = await reader.read().catch(() => ({ done: true }))).done;) take(got.value)
			await wt.closed.then(why => end(0, why.reason || "the server has closed the connection"),
				e => end(0, "the connection is lost: " + (e.message || e)))
		}

		const webSocket = at => {
			const ws = new WebSocket(at.replace("http", "ws"))
			let open = false
			ws.binaryType = "arraybuffer"
			shut = () => ws.close()
			write = packet => ws.bufferedAmount > 8192 ? 0 : (ws.send(packet), 1)
			ws.onopen = () => { open = true; if (!over) opened("WebSocket", 65507) }
			ws.onmessage = e => { if (typeof e.data != "string") take(e.data) }
			ws.onclose = e => end(0, e.reason || (open ? `the connection is lost (WebSocket code ${e.code})` :
				"the WebSocket could not be opened; browsers do not reveal why, but perhaps their console does"))
		}

		const start = async () => {
			const answer = await fetch(url + "?info", { cache: "no-store" }).catch(() => null)
			if (!answer) return end(0, `no answer from ${url}: is the server running?`)
			const text = await answer.text()
			if (!answer.ok) return end(answer.status, text)
			let info
			try { info = JSON.parse(text) } catch { return end(404, "") }
			if (info.port && globalThis.WebTransport && globalThis.isSecureContext && performance.now() >= udpFrom && !over) {
				try { return await webTransport(url, info) } catch { udpFrom = performance.now() + 60000 }
				try { shut() } catch { }
				shut = () => {}
			}
			if (!over) webSocket(url)
		}

		start().catch(e => end(0, String(e)))
		return {
			inbox, outbox,
			dropped: () => dropped,
			// pull puts the next packet into inbox and returns its length, or 0.
			pull: () => {
				const packet = waiting.shift()
				if (!packet) return 0
				inbox.set(packet)
				return packet.length
			},
			// push sends the packet in outbox. It returns 1, 0 if it has to wait, or -1 if the socket is closed.
			push: () => {
				if (over) return -1
				const n = outbox[0] | outbox[1] << 8 | outbox[2] << 16
				try { return write(outbox.subarray(4, 4 + n)) } catch { return -1 }
			},
			close: () => { if (!over) close() },
		}
	}

	// frames returns a function that lets frame be called once: before the page is drawn, or, in a hidden page, which is
	// not drawn and whose timers are slow, when a packet arrives. With false it ends that for good.
	const frames = frame => {
		const page = globalThis.document
		let wanted = false, handle = 0, last = 0
		const run = () => { if (wanted) { wanted = false; last = performance.now(); frame() } }
		const plan = () => { cancelAnimationFrame(handle); handle = requestAnimationFrame(run) }
		const hidden = () => { if (page.hidden && performance.now() - last >= 100) run() }
		if (!page || !globalThis.requestAnimationFrame) return (go = true) => { wanted = go; if (go) setTimeout(run, 16) }
		const seen = () => { if (wanted && !page.hidden) plan() }
		arrived = hidden
		const timer = setInterval(hidden, 1000)
		page.addEventListener("visibilitychange", seen)
		return (go = true) => {
			wanted = go
			if (go) return seen()
			clearInterval(timer)
			page.removeEventListener("visibilitychange", seen)
			if (arrived === hidden) arrived = () => {}
		}
	}

	return { where, dial, frames }
})()
