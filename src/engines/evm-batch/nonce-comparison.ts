import type { ChainComparison } from '#durable/database-time.ts'
import { withTimeLimit } from '#kernel/time-limit.ts'
import type { EvmPort } from './evm-port.ts'
import { startAt } from './found-executions.ts'
import { counterKey, readCounters } from './nonce-counters.ts'
import {
  comparisonOf,
  holdChain,
  type Progress,
  readUnknownNonces,
  type UnknownNonces,
  type UnknownNoncesDeps,
} from './unknown-nonces.ts'

/** Compares chains with the counters of their sponsors, before anything is accepted or signed. */

/** Beyond it the chain alone waits for its node, which may show many transactions by then. */
export const compareMsMax = 3_000
const compareLateMsMax = 20_000

export type CompareChain = (
  port: EvmPort,
  point: Date | null,
  limit: { msMax: number },
) => Promise<ChainComparison>

/** Compares a chain with the counters of its sponsors, and changes nothing. */
export function createChainComparison(deps: UnknownNoncesDeps): CompareChain {
  const { db, log } = deps
  const progress: Progress = new Map()
  /** The chain is read before the counter: a nonce is stored before its transaction is sent. */
  const compareSigner = async (
    port: EvmPort,
    signer: string,
    point: Date | null,
  ): Promise<UnknownNonces | 'clean'> => {
    const mined = await port.chain.transactionCount(signer, 'latest')
    const stored = (await readCounters(db, [port])).get(counterKey(port.chain.row.id, signer))
    const counter = stored ?? (await startAt(deps, port, signer, point))
    if (mined <= counter) return 'clean'
    return readUnknownNonces(deps, { port, signer, from: counter, to: mined }, progress)
  }
  const compareChain: CompareChain = async (port, point, { msMax }) => {
    const { id } = port.chain.row
    const compared = port.sponsor.signers.map((signer) =>
      withTimeLimit(compareSigner(port, signer, point), msMax).catch((error: unknown) => {
        log.warn({ error, chain: id, signer }, 'nonces not compared with the chain: will retry')
        return undefined
      }),
    )
    return comparisonOf(id, await Promise.all(compared))
  }
  return compareChain
}

export const isUncompared = ({ holds }: UnknownNoncesDeps, { chain }: EvmPort): boolean =>
  holds.find(chain.row.id)?.reason === 'not_compared'

/** A chain whose node was silent when all were compared. */
export async function compareLate(
  deps: UnknownNoncesDeps,
  only: readonly EvmPort[],
  compareChain: CompareChain,
): Promise<void> {
  for (const port of only) {
    const { id } = port.chain.row
    if (!isUncompared(deps, port)) continue
    const compared = await compareChain(port, null, { msMax: compareLateMsMax })
    if (compared.found === 'lost') await holdChain(deps, port, compared.detail)
    else if (compared.found === 'clean') deps.holds.clearLocal(id)
  }
}
