import { repeat } from '#kernel/async/repeat.ts'
import type { ChainStatus } from '#kernel/money/chains.ts'

/** The height of every chain is probed in the background, so that no request waits for a node. */

export type ChainHealth = {
  status(chainId: string): ChainStatus
  /** When the chain last answered; null before its first answer. */
  lastOkAt(chainId: string): Date | null
  start(): void
} & AsyncDisposable

export type ProbedChain = { id: string; head: (signal: AbortSignal) => Promise<unknown> }

type ChainHealthDeps = {
  chains: readonly ProbedChain[]
  clock: { now(): Date }
}
type ProbeResult = { okAt: Date | null; failures: number; tookMs: number }

const everyMs = 5_000
const slowMs = 1_500
const failuresForDown = 2

export function openChainHealth({ chains, clock }: ChainHealthDeps): ChainHealth {
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

  let probing: AsyncDisposable | undefined

  return {
    start() {
      probing = repeat(() => Promise.all(chains.map(probeChain)), { everyMs, immediately: true })
    },
    status(chainId) {
      const result = results.get(chainId)
      if (!result) return 'degraded'
      if (result.failures >= failuresForDown || result.okAt === null) return 'down'
      return result.failures > 0 || result.tookMs > slowMs ? 'degraded' : 'ok'
    },
    lastOkAt: (chainId) => results.get(chainId)?.okAt ?? null,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await probing?.[Symbol.asyncDispose]()
    },
  }
}
