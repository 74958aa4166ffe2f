import type { ChainStatus } from '#kernel/chains.ts'

/** Asks every chain for its height in the background, so that no request has to. */

export type Probe = {
  status(chainId: string): ChainStatus
  /** When the chain last answered; null before it ever did. */
  lastOkAt(chainId: string): Date | null
  /** One round now, for those who cannot wait for the next. */
  round(): Promise<void>
} & AsyncDisposable

export type Probed = { id: string; head: (signal: AbortSignal) => Promise<unknown> }

type Needs = { chains: readonly Probed[]; clock: { now(): Date }; everyMs?: number; slowMs?: number }
type Look = { okAt: Date | null; failures: number; tookMs: number }

const everyMsDefault = 5_000
const slowMsDefault = 1_500
const failuresForDown = 2

export function probe({ chains, clock, everyMs = everyMsDefault, slowMs = slowMsDefault }: Needs): Probe {
  const looks = new Map<string, Look>()
  const stop = new AbortController()

  const look = async ({ id, head }: Probed): Promise<void> => {
    const startedMs = performance.now()
    const before = looks.get(id) ?? { okAt: null, failures: 0, tookMs: 0 }
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(slowMs * 2)])
    const answered = await head(signal).then(
      () => true,
      () => false,
    )
    const tookMs = performance.now() - startedMs
    looks.set(
      id,
      answered
        ? { okAt: clock.now(), failures: 0, tookMs }
        : { ...before, failures: before.failures + 1, tookMs },
    )
  }

  const round = async (): Promise<void> => {
    await Promise.all(chains.map(look))
  }

  let running = round()
  const timer = setInterval(() => {
    running = running.then(round)
  }, everyMs)
  timer.unref()

  return {
    status(chainId) {
      const seen = looks.get(chainId)
      if (!seen) return 'degraded'
      if (seen.failures >= failuresForDown || seen.okAt === null) return 'down'
      return seen.failures > 0 || seen.tookMs > slowMs ? 'degraded' : 'ok'
    },
    lastOkAt: (chainId) => looks.get(chainId)?.okAt ?? null,
    round,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stop.abort()
      await running
    },
  }
}
