import type { ChainComparison } from '#durable/time/detect-lost-commits.ts'
import type { MoneyHolds, storeHold as StoreHold } from '#durable/time/money-hold.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import type { NonceRange, SentTransaction } from '#upstreams/evm/transactions-by-nonce.ts'
import type { EvmPort } from './evm-chain-parts.ts'

/**
 * Examines nonces of a sponsor that were mined above our counter: either the database lost the commit that took
 * them, or somebody else has the key. A batch of an account that this database knows shows a lost commit, since
 * only custody signs one. A batch of any other account does not: another installation sent it, or the account
 * was lost with its user, whose requests nobody repeats here. Such nonces are skipped with an error, and those
 * that run no batch with a warning.
 */

export type UnknownNoncesDeps = {
  db: Queryable
  holds: Pick<MoneyHolds, 'find' | 'setLocal'>
  storeHold: typeof StoreHold
  findSent: (chain: EvmPort['chain'], signer: string, nonces: NonceRange) => Promise<SentTransaction[]>
  nonceAt: (chain: EvmPort['chain'], signer: string, at: Date) => Promise<bigint>
  isBatch: (input: string) => boolean
  /** Returns the users of EVM accounts, by account in lower case. */
  usersOf: (accounts: readonly string[]) => Promise<ReadonlyMap<string, string>>
  clock: Clock
  log: Log
}
export type Unknown = NonceRange & { port: EvmPort; signer: string }

/** `foreign` means that none of the unknown transactions runs a batch of an account of ours. */
export type UnknownNonces = { found: 'foreign' } | { found: 'lost'; detail: JsonObject }

const namedMax = 100

/** Reads unknown transactions up to a page that shows a lost commit. Throws if the node does not show them. */
export async function readUnknownNonces(deps: UnknownNoncesDeps, unknown: Unknown): Promise<UnknownNonces> {
  const { port, signer, from, to } = unknown
  for (let next = from; next < to; ) {
    const sent = await deps.findSent(port.chain, signer, { from: next, to })
    const last = sent.at(-1)
    if (!last) throw new Error(`no transaction of ${signer} from nonce ${next} on`)
    const lost = await lostAmong(deps, unknown, sent)
    if (lost) return lost
    next = last.nonce + 1n
  }
  return { found: 'foreign' }
}

async function lostAmong(
  { isBatch, usersOf, log }: UnknownNoncesDeps,
  { port, signer, from, to }: Unknown,
  sent: readonly SentTransaction[],
): Promise<UnknownNonces | undefined> {
  const chain = port.chain.row.id
  const known = { chain, signer, from: String(from), to: String(to) }
  const batches = sent.filter(({ input }) => isBatch(input))
  const users = await usersOf(batches.flatMap(({ to: account }) => account ?? []))
  const ours = batches.filter(({ to: account }) => users.has(account?.toLowerCase() ?? ''))
  if (ours.length > 0)
    return {
      found: 'lost',
      detail: {
        [`${chain}:${signer}`]: {
          ...known,
          transactions: ours.slice(0, namedMax).map(({ hash }) => hash),
          accounts: [...new Set(ours.flatMap(({ to: account }) => account?.toLowerCase() ?? []))].slice(
            0,
            namedMax,
          ),
          users: [...new Set(users.values())].slice(0, namedMax),
        },
      },
    }
  const transactions = sent.map(({ hash }) => hash)
  if (batches.length > 0)
    log.error({ ...known, transactions }, 'another installation uses the key of a sponsor')
  else log.warn({ ...known, transactions }, 'somebody else sent transactions with the key of a sponsor')
  return undefined
}

/** Puts the chain's money on hold on all instances: nothing on the chain is accepted or signed until the hold ends. */
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

/** Sums up the findings about the sponsors of one chain; undefined means that its node did not answer in time. */
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
