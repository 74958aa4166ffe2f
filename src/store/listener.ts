import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

export type Listener = {
  readonly connected: boolean
  close(): Promise<void>
}

const pingEveryMs = 10_000
const pingTimeoutMs = 5_000
const reconnectMsMax = 1_000

/**
 * One connection that hears NOTIFY and comes back by itself. A network that swallows packets closes nothing, so
 * it also asks now and then; until that is noticed the poll of the waiters is what delivers.
 */
export function listen(options: {
  url: string
  applicationName: string
  connectTimeoutMs: number
  channels: readonly string[]
  onMessage: (channel: string, payload: string) => void
  onConnected: () => void
}): Listener {
  const stop = new AbortController()
  let connected = false

  const session = async () => {
    const client = new pg.Client({
      connectionString: options.url,
      application_name: `${options.applicationName} listen`,
      connectionTimeoutMillis: options.connectTimeoutMs,
      query_timeout: pingTimeoutMs,
      keepAlive: true,
    })
    const ended = new AbortController()
    const signal = AbortSignal.any([stop.signal, ended.signal])
    client.on('error', () => ended.abort())
    client.once('end', () => ended.abort())
    client.on('notification', ({ channel, payload }) => options.onMessage(channel, payload ?? ''))
    try {
      await client.connect()
      for (const channel of options.channels) await client.query(`listen ${client.escapeIdentifier(channel)}`)
      connected = true
      // Outside of this session, whose failures all mean the same: one in the listener must be seen.
      queueMicrotask(options.onConnected)
      while (!signal.aborted) {
        await delay(pingEveryMs, undefined, { signal }).catch(() => {})
        if (!signal.aborted) await client.query('select 1')
      }
    } finally {
      const wasConnected = connected
      connected = false
      // A server that does not answer does not say goodbye either.
      await Promise.race([client.end(), delay(pingTimeoutMs, undefined, { ref: false })]).catch(() => {})
      if (wasConnected) retryMs = 20
    }
  }

  let retryMs = 20
  const loop = (async () => {
    while (!stop.signal.aborted) {
      // Every failure has the same answer: connect again. The poll delivers in the meantime.
      await session().catch(() => {})
      await delay(retryMs, undefined, { signal: stop.signal }).catch(() => {})
      retryMs = Math.min(retryMs * 2, reconnectMsMax)
    }
  })()

  return {
    get connected() {
      return connected
    },
    async close() {
      stop.abort()
      await loop
    },
  }
}
