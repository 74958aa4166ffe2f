import type { NonceSequences } from '#durable/run/nonces.ts'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { SponsorOptions } from '#upstreams/evm/sponsor.ts'
import type { EvmPort } from './evm-port.ts'

/**
 * Distributes the batches of one chain over its sponsors. The transactions in flight of a sponsor are the nonces that
 * were taken and are not mined, by all instances together: one statement and one request per second, whatever the
 * number of tasks. Between two readings this instance adds its own choices.
 */
export type SponsorLoad = {
  /** The least busy sponsor that can pay, and the nonce that the chain expects of it. */
  pick(options: SponsorOptions): Promise<{ payer: string; mined: bigint }>
  /** The chain used a nonce that the last reading does not have. */
  invalidate(): void
}

type SponsorLoadDeps = Pick<EvmPort, 'chain' | 'sponsor'> & {
  nonces: Pick<NonceSequences, 'nextNonces'>
  /** Nonces were mined that nobody took: decides what they are, before one above them is taken. */
  onUnknownNonces: () => Promise<unknown>
}

export const nonceKind = 'evm'
const freshMs = 1_000

export function createSponsorLoad({ chain, sponsor, nonces, onUnknownNonces }: SponsorLoadDeps): SponsorLoad {
  const read = async () => {
    const { signers } = sponsor
    // The chain first: a nonce is stored before its transaction is sent, so none is mined that the counter lacks.
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
