import type { TaskView } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import type { FoundRelay } from './relay-action.ts'
import { nonceOnChain, relayerOf } from './relay-outcome.ts'
import { nonceKind } from './signed-effect.ts'
import { isWalletTaken } from './store/account-store.ts'
import { venueUnitsOf, type WithdrawTaskData } from './withdraw-admission.ts'

/**
 * Finds the transfer of a withdrawal that this database has lost. The nonces of the wallet say whether one is lost. The
 * relayer lists the execution id of a batch; where it lists the batch no more, a transfer of the same amount that no task
 * has recorded counts as the one: each request then has one transfer, whichever is repeated first.
 */

type Deps = Pick<PredmktDeps, 'db' | 'venue' | 'chain'>
type Task = TaskView<WithdrawTaskData>

/** An older transfer is that of another request. */
const forgottenMs = 7 * 24 * 3_600_000
/** A relayer that does not list a batch any more leaves the transfers in so many blocks, about a day. */
const blocksMax = 40_000n

export async function findLostTransfer(
  deps: Deps,
  { id, userId, executionId, data, createdAt }: Task,
): Promise<FoundRelay | 'taken' | undefined> {
  const { db, venue, chain } = deps
  const { wallet } = data
  const next = (await nonceOnChain(deps, wallet.wallet)) ?? 0n
  // It is read after the chain: the effect of a batch that runs was committed before it was sent.
  const known = await knownNonces(deps, data)
  const lost = Array.from({ length: Number(next) }, (_, nonce) => BigInt(nonce)).filter(
    (nonce) => !known.has(nonce),
  )
  if (lost.length === 0) return undefined
  const listed = new Map<bigint, string>()
  const ofOthers = new Set<string>()
  for (const { nonce, txHash, state, metadata } of await relayerOf(deps).recent(wallet.owner)) {
    if (nonce === null || txHash === null || state === 'failed') continue
    listed.set(nonce, txHash.toLowerCase())
    if (known.has(nonce) || (metadata !== null && metadata !== executionId))
      ofOthers.add(txHash.toLowerCase())
  }
  const unlisted = lost.some((nonce) => !listed.has(nonce)) ? await transferHashes(deps, data) : []
  const hashes = [...new Set([...lost.flatMap((nonce) => listed.get(nonce) ?? []), ...unlisted])].filter(
    (hash) => !ofOthers.has(hash),
  )
  // A transfer that was read may be that of a task that has not booked it yet: it books it as it releases the wallet.
  if (hashes.length > 0 && (await isWalletTaken(db, { userId, venue: venue.name }, id))) return 'taken'
  const [receipt] = await unbookedTransfers(deps, { userId, data }, hashes)
  if (!receipt) return undefined
  const { timestampSeconds } = await chain.headAt(receipt.block)
  if (createdAt.getTime() - timestampSeconds * 1_000 > forgottenMs) return undefined
  const nonce = lost.find((each) => listed.get(each) === receipt.txHash.toLowerCase())
  return { receipt, nonce: nonce ?? null }
}

/** The transfer of this withdrawal, which has run, and which the relayer names no more. */
export async function findOwnTransfer(deps: Deps, task: Task): Promise<Receipt | undefined> {
  const transfers = await unbookedTransfers(deps, task, await transferHashes(deps, task.data))
  return transfers.at(-1)
}

/** Those of the transactions that have made the transfer of the withdrawal, and that no task has booked. */
async function unbookedTransfers(
  deps: Deps,
  { userId, data }: Pick<Task, 'userId' | 'data'>,
  hashes: readonly string[],
): Promise<Receipt[]> {
  const { db, venue, chain } = deps
  const { wallet, account } = data
  const booked = await query<{ tx_hash: string }>(
    db,
    `select lower(tx_hash) as tx_hash from prediction_transfer
     where user_id = $1 and venue = $2 and lower(tx_hash) = any($3::text[])`,
    [userId, venue.name, hashes],
  )
  const open = hashes.filter((hash) => !booked.some(({ tx_hash }) => tx_hash === hash))
  if (open.length === 0) return []
  const { receipts } = await chain.receipts(open)
  const sentUnits = (receipt: Receipt): bigint =>
    chain
      .transfers(receipt)
      .filter(
        ({ token, from, to }) =>
          token.toLowerCase() === moneyOf(deps).cashToken.toLowerCase() &&
          from === wallet.wallet.toLowerCase() &&
          to === account.toLowerCase(),
      )
      .reduce((sum, { amountUnits }) => sum + amountUnits, 0n)
  return receipts.flatMap((each) => (each?.success && sentUnits(each) === venueUnitsOf(data) ? each : []))
}

/** The nonces of the wallet's batches that this database has an effect of. */
async function knownNonces({ db, venue }: Deps, { wallet }: WithdrawTaskData): Promise<Set<bigint>> {
  const rows = await query<{ nonce: string }>(
    db,
    `select distinct e.intent -> 'action' ->> 'nonce' as nonce from tx_attempt a join effect e on e.id = a.effect_id
     where a.nonce_kind = $1 and a.chain = $2 and a.signer = $3 and e.kind = 'prediction_relay'
       and e.status not in ('dropped', 'rejected')
       and lower(coalesce(e.intent -> 'action' ->> 'wallet', e.intent -> 'action' ->> 'safe')) = lower($4)
       and e.intent -> 'action' ->> 'nonce' is not null`,
    [nonceKind, venue.name, wallet.owner.toLowerCase(), wallet.wallet],
  )
  return new Set(rows.map(({ nonce }) => BigInt(nonce)))
}

async function transferHashes(deps: Deps, { wallet, account }: WithdrawTaskData): Promise<string[]> {
  const { chain } = deps
  const { number: to } = await chain.head()
  const from = to > blocksMax ? to - blocksMax : 0n
  const { transfers } = await chain.incomingTransfers(moneyOf(deps).cashToken, account, { from, to })
  const own = transfers.filter((each) => each.from === wallet.wallet.toLowerCase())
  return own.map(({ txHash }) => txHash.toLowerCase())
}
