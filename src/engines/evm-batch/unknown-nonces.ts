import type { ChainComparison } from '#durable/database-time.ts'
import type { MoneyHolds, storeHold as StoreHold } from '#durable/money-hold.ts'
import type { Clock } from '#kernel/clock.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import type { NonceRange, SentTransaction } from '#upstreams/evm/sent-transactions.ts'
import type { EvmPort } from './evm-port.ts'

/**
 * Nonces of a sponsor that were mined above our counter: the database lost the commit that took them, or somebody else
 * has the key. A batch of an account of ours shows a lost commit, since only custody signs one. What runs no batch moved
 * nothing of a user: its nonces are skipped, with a warning.
 */

export type UnknownNoncesDeps = {
  db: Queryable
  holds: Pick<MoneyHolds, 'find' | 'setLocal'>
  storeHold: typeof StoreHold
  findSent: (chain: EvmPort['chain'], signer: string, nonces: NonceRange) => Promise<SentTransaction[]>
  nonceAt: (chain: EvmPort['chain'], signer: string, at: Date) => Promise<bigint>
  isBatch: (input: string) => boolean
  /** The users of these accounts, by account in lower case. */
  usersOf: (accounts: readonly string[]) => Promise<ReadonlyMap<string, string>>
  clock: Clock
  log: Log
}
export type Unknown = NonceRange & { port: EvmPort; signer: string }

/** `foreign`: none of them runs a batch. */
export type UnknownNonces = { found: 'foreign' } | { found: 'lost'; detail: JsonObject }

const namedMax = 100

/** Throws where the node does not show them. */
export async function readUnknownNonces(
  { findSent, isBatch, usersOf, log }: UnknownNoncesDeps,
  { port, signer, from, to }: Unknown,
): Promise<UnknownNonces> {
  const sent = await findSent(port.chain, signer, { from, to })
  const batches = sent.filter(({ input }) => isBatch(input))
  const chain = port.chain.row.id
  const known = { chain, signer, from: String(from), to: String(to) }
  if (batches.length === 0) {
    const transactions = sent.map(({ hash }) => hash)
    log.warn({ ...known, transactions }, 'somebody else sent transactions with the key of a sponsor')
    return { found: 'foreign' }
  }
  const accounts = batches.flatMap(({ to: account }) => (account === null ? [] : [account.toLowerCase()]))
  const users = await usersOf(accounts)
  return {
    found: 'lost',
    detail: {
      [`${chain}:${signer}`]: {
        ...known,
        transactions: batches.slice(0, namedMax).map(({ hash }) => hash),
        accounts: [...new Set(accounts)].slice(0, namedMax),
        users: [...new Set(users.values())].slice(0, namedMax),
      },
    },
  }
}

/** Holds the chain on all instances. */
export async function holdChain(
  { db, holds, storeHold, clock, log }: UnknownNoncesDeps,
  { chain }: EvmPort,
  detail: JsonObject,
): Promise<void> {
  const hold = { scope: chain.row.id, reason: 'foreign_batches' as const, since: clock.now(), detail }
  const isKnown = holds.find(chain.row.id)?.reason === hold.reason
  if (!isKnown) log.error(detail, 'a chain has batches that the database does not know: its money is on hold')
  holds.setLocal(hold)
  await storeHold(db, hold)
}

/** What was found about the sponsors of one chain; undefined: its node did not answer in time. */
export function comparisonOf(
  chainId: string,
  found: readonly (UnknownNonces | 'clean' | undefined)[],
): ChainComparison {
  const details = found.flatMap((each) =>
    typeof each === 'object' && each.found === 'lost' ? [each.detail] : [],
  )
  if (details.length > 0) return { chainId, found: 'lost', detail: Object.assign({}, ...details) }
  return { chainId, found: found.includes(undefined) ? 'unknown' : 'clean' }
}
