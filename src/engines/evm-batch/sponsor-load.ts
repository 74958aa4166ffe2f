import type { NonceSequences } from '#durable/run/nonces.ts'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { SponsorOptions } from '#upstreams/evm/sponsor.ts'
import type { EvmPort } from './evm-chain-parts.ts'

/**
 * Distributes the batches of one chain over its sponsors. A sponsor's transactions in flight are the nonces that
 * all instances together have taken and that are not mined. They are read once per second, with one statement
 * and one request, however many tasks there are; between two readings this instance adds its own choices.
 */
export type SponsorLoad = {
  /** Returns the least busy sponsor that can pay, and the nonce that the chain expects from it. */
  pick(options: SponsorOptions): Promise<{ payer: string; mined: bigint }>
  /** Discards the last reading; to be called when the chain has used a nonce that the reading lacks. */
  invalidate(): void
}

type SponsorLoadDeps = Pick<EvmPort, 'chain' | 'sponsor'> & {
  nonces: Pick<NonceSequences, 'nextNonces'>
  /** Called when nonces were mined that nobody took: it examines their transactions before a nonce is taken. */
  onUnknownNonces: () => Promise<unknown>
}

export const nonceKind = 'evm'
const freshMs = 1_000

export function createSponsorLoad({ chain, sponsor, nonces, onUnknownNonces }: SponsorLoadDeps): SponsorLoad {
  const read = async () => {
    const { signers } = sponsor
    // The chain is read before the counters: a nonce is stored before its transaction is sent, so the counter has it.
    const counts = await Promise.all(signers.map((signer) => chain.transactionCount(signer, 'latest')))
    const next = await nonces.nextNonces(nonceKind, chain.row.id)
    if (signers.some((signer, index) => counts[index]! > (next.get(signer) ?? counts[index]!)))
      await onUnknownNonces()
    const mined = new Map(signers.map((signer, index) => [signer, counts[index]!]))
    const inFlight = new Map<string, number>()
    for (const [signer, count] of mined) {
      const taken = next.get(signer) ?? count
      inFlight.set(signer, taken > count ? Number(taken - count) : 0)
    }
    return { mined, inFlight }
  }
  const reading = createCachedValue(read, { ttlMs: freshMs, nowMs: monotonicMs })
  return {
    async pick(options) {
      const { mined, inFlight } = await reading.get()
      const payer = await sponsor.pick(inFlight, options)
      inFlight.set(payer, (inFlight.get(payer) ?? 0) + 1)
      return { payer, mined: mined.get(payer)! }
    },
    invalidate: () => reading.invalidate(),
  }
}
