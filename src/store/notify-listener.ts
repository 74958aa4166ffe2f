import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { backoffMs } from '#kernel/async/backoff.ts'

export type Listener = {
  readonly connected: boolean
  close(): Promise<void>
}

/**
 * The ping interval is shorter than the lifetime of a cached token: a lost connection must be noticed sooner, because
 * the notification of a revocation may be lost with it.
 */
const pingEveryMs = 20_000
const pingTimeoutMs = 5_000
const reconnectBackoff = { firstMs: 20, maxMs: 1_000 }

/**
 * One connection that receives NOTIFY and reconnects by itself. A network that drops packets does not close the
 * connection, so the listener also sends pings. Until a ping fails, the waiters depend on their own polls.
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
      // The callback runs outside the session, so that an exception in the callback surfaces and does not count as a
      // lost connection.
      queueMicrotask(options.onConnected)
      while (!signal.aborted) {
        await delay(pingEveryMs, undefined, { signal }).catch(() => {})
        if (!signal.aborted) await client.query('select 1')
      }
    } finally {
      const wasConnected = connected
      connected = false
      // A server that does not answer does not close the connection either.
      await Promise.race([client.end(), delay(pingTimeoutMs, undefined, { ref: false })]).catch(() => {})
      if (wasConnected) failures = 0
    }
  }

  let failures = 0
  const loop = (async () => {
    while (!stop.signal.aborted) {
      // Every failure is handled by reconnecting; meanwhile the waiters poll.
      await session().catch(() => {})
      const waitMs = backoffMs(reconnectBackoff, failures)
      failures += 1
      await delay(waitMs, undefined, { signal: stop.signal }).catch(() => {})
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
