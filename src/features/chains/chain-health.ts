import type { ChainStatus } from '#kernel/chains.ts'

/** Probes the height of every chain in the background, so that no request waits for a node. */

export type ChainHealth = {
  status(chainId: string): ChainStatus
  /** When the chain last answered; null before the first answer. */
  lastOkAt(chainId: string): Date | null
  start(): void
  /** Probes all chains now. */
  round(): Promise<void>
} & AsyncDisposable

export type ProbedChain = { id: string; head: (signal: AbortSignal) => Promise<unknown> }

type ChainHealthDeps = {
  chains: readonly ProbedChain[]
  clock: { now(): Date }
  everyMs?: number
  slowMs?: number
}
type ProbeResult = { okAt: Date | null; failures: number; tookMs: number }

const everyMsDefault = 5_000
const slowMsDefault = 1_500
const failuresForDown = 2

export function chainHealth({
  chains,
  clock,
  everyMs = everyMsDefault,
  slowMs = slowMsDefault,
}: ChainHealthDeps): ChainHealth {
  const results = new Map<string, ProbeResult>()
  const stop = new AbortController()

  const probeChain = async ({ id, head }: ProbedChain): Promise<void> => {
    const startedMs = performance.now()
    const previous = results.get(id) ?? { okAt: null, failures: 0, tookMs: 0 }
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(slowMs * 2)])
    const answered = await head(signal).then(
      () => true,
      () => false,
    )
    const tookMs = performance.now() - startedMs
    results.set(
      id,
      answered
        ? { okAt: clock.now(), failures: 0, tookMs }
        : { ...previous, failures: previous.failures + 1, tookMs },
    )
  }

  const round = async (): Promise<void> => {
    await Promise.all(chains.map(probeChain))
  }

  let running = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  return {
    start() {
      running = round()
      timer = setInterval(() => {
        running = running.then(round)
      }, everyMs)
      timer.unref()
    },
    status(chainId) {
      const result = results.get(chainId)
      if (!result) return 'degraded'
      if (result.failures >= failuresForDown || result.okAt === null) return 'down'
      return result.failures > 0 || result.tookMs > slowMs ? 'degraded' : 'ok'
    },
    lastOkAt: (chainId) => results.get(chainId)?.okAt ?? null,
    round,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stop.abort()
      await running
    },
  }
}
