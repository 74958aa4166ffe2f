import type { ChainComparison } from '#durable/time/detect-lost-commits.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { startAt } from './find-forgotten-executions.ts'
import { counterKey, readCounters } from './nonce-counters.ts'
import {
  comparisonOf,
  readUnknownNonces,
  type UnknownNonces,
  type UnknownNoncesDeps,
} from './unknown-nonces.ts'

/** Compares chains with the nonce counters of their sponsors, before anything is accepted or signed. */

/** How long the comparison of all chains may take; after that, only chains whose node is slow have to wait. */
const compareMsMax = 3_000

export function createChainComparison(deps: UnknownNoncesDeps) {
  const { db, log } = deps
  /** Compares a signer. The chain is read before the counter, as a nonce is stored before its transaction is sent. */
  const compareSigner = async (
    port: EvmPort,
    signer: string,
    point: Date | null,
  ): Promise<UnknownNonces | 'clean'> => {
    const mined = await port.chain.transactionCount(signer, 'latest')
    const stored = (await readCounters(db, [port])).get(counterKey(port.chain.row.id, signer))
    const counter = stored ?? (await startAt(deps, port, signer, { point }))
    if (mined <= counter) return 'clean'
    return readUnknownNonces(deps, { port, signer, from: counter, to: mined })
  }
  const compareChain = async (port: EvmPort, point: Date | null): Promise<ChainComparison> => {
    const { id } = port.chain.row
    const compared = port.sponsor.signers.map((signer) =>
      withTimeLimit(compareSigner(port, signer, point), compareMsMax).catch((error: unknown) => {
        log.warn({ error, chain: id, signer }, 'nonces not compared with the chain: will retry')
        return undefined
      }),
    )
    return comparisonOf(id, await Promise.all(compared))
  }
  return compareChain
}
