/** Parses server-sent events as a browser does: field by field, an empty line ends an event. */
export type SentEvent = { id?: string; event?: string; data: unknown }

export async function* sentEvents(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): AsyncGenerator<SentEvent> {
  const reply = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal })
  if (reply.status !== 200) throw new Error(`stream: ${reply.status} ${await reply.text()}`)
  yield* eventsOf(reply)
}

export async function* eventsOf(reply: Response): AsyncGenerator<SentEvent> {
  if (!reply.body) throw new Error('a stream without a body')
  let rest = ''
  for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
    rest += chunk
    const blocks = rest.split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const fields = new Map<string, string>()
      for (const line of block.split('\n')) {
        const colon = line.indexOf(':')
        if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart())
      }
      const data = fields.get('data')
      if (data === undefined) continue
      const [id, event] = [fields.get('id'), fields.get('event')]
      yield { ...(id !== undefined && { id }), ...(event !== undefined && { event }), data: JSON.parse(data) }
    }
  }
}

/** Collects until the wanted event has come, then closes the stream. */
export async function eventsUntil(
  url: string,
  headers: Record<string, string>,
  isLast: (sent: SentEvent, all: SentEvent[]) => boolean,
  msMax = 20_000,
): Promise<SentEvent[]> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(new Error(`the event did not come within ${msMax} ms`)), msMax)
  const all: SentEvent[] = []
  try {
    for await (const sent of sentEvents(url, headers, stop.signal)) {
      all.push(sent)
      if (isLast(sent, all)) return all
    }
    throw new Error('the stream ended early')
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
}
