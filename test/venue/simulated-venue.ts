/** The venue of the world in this process, on a clock that a test moves. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createVenueApi } from '#world/hyperliquid/api.ts'
import type { Command } from '#world/hyperliquid/apply.ts'
import { openEngine } from '#world/hyperliquid/engine.ts'
import { answerInfo } from '#world/hyperliquid/info.ts'
import { createRateBudget } from '#world/hyperliquid/rate-budget.ts'
import { serve } from '#world/hyperliquid/server.ts'
import type { Account, Order } from '#world/hyperliquid/state.ts'
import { listen } from '#world/venue-core/http.ts'
import { createInjectedFailures } from '#world/venue-core/injected-failures.ts'

export type SimulatedClock = {
  nowMs(): number
  /** Never goes back. */
  advanceTo(ms: number): void
}

export function simulatedClock(startMs: number): SimulatedClock {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    advanceTo(ms) {
      nowMs = Math.max(nowMs, ms)
    },
  }
}

/** Serves requests over HTTP; its streams refuse every connection, so that nothing depends on how fast the machine is. */
export async function openSimulatedVenue(clock: SimulatedClock, seed: number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'venue-'))
  const onFatal = (error: unknown): never => {
    throw error
  }
  const engine = openEngine(dataDir, seed, onFatal, clock.nowMs)
  const api = createVenueApi(engine, (body) => answerInfo(engine.venue, body))
  const server = serve({ engine, api, faults: createInjectedFailures(), rateBudget: createRateBudget(0) })
  const streams = createServer((_request, response) => response.writeHead(503).end())
  streams.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n'))
  const [port, streamPort] = [await listen(server, 0), await listen(streams, 0)]
  const submit = (command: Command) => void engine.submit(command)
  submit({ kind: 'settings', settings: { walking: false } })
  const accountOf = (address: string): Account | undefined =>
    engine.venue.state.accounts.get(address.toLowerCase())
  return {
    url: `http://127.0.0.1:${port}`,
    streamUrl: `ws://127.0.0.1:${streamPort}/ws`,
    submit,
    accountOf,
    ordersOf: (address: string): Order[] =>
      (accountOf(address)?.orders ?? []).map((oid) => engine.venue.state.orders.get(oid)!),
    async [Symbol.asyncDispose]() {
      for (const each of [server, streams]) {
        each.close()
        each.closeAllConnections()
        if (each.listening) await once(each, 'close')
      }
      engine.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
export type SimulatedVenue = Awaited<ReturnType<typeof openSimulatedVenue>>
