import { Fault } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'

/**
 * A payment that arrives at an account is counted once, as the end of a swap or as a payout of the venue. Payments that
 * the gateway itself signed are never counted.
 */

type Receiver = { chain: Pick<Chain, 'id' | 'family'>; account: string }
/**
 * `part` names one of the payments that a transaction makes to the account, in the numbering of the chain. The payment
 * `a:1` is a part of the payment `a`.
 */
export type Paid = { txHash: string; part: string }
export type ArrivalId = Receiver & Paid

/** The one claimant of all payouts of the venue, whose own events distinguish several payouts in one transaction. */
export const venuePayouts = 'venue_payouts'

/** Returns a transaction or account name in one form: on EVM chains, the case of letters makes no difference. */
const nameOn = ({ family }: Receiver['chain'], name: string): string =>
  family === 'evm' ? name.toLowerCase() : name

const overlaps = (one: string, other: string): boolean =>
  one === other || one.startsWith(`${other}:`) || other.startsWith(`${one}:`)

/** Returns payments that no other claimant has counted. `claimant` is a task, `venuePayouts`, or '' for nobody. */
export async function unclaimed<Each extends Paid>(
  db: Queryable,
  { chain, account, claimant }: Receiver & { claimant: string },
  paid: readonly Each[],
): Promise<Each[]> {
  if (paid.length === 0) return []
  const hashes = paid.map(({ txHash }) => nameOn(chain, txHash))
  const rows = await query<{ tx_hash: string; part: string | null }>(
    db,
    `select external_id as tx_hash, null as part from tx_attempt where external_id = any($2::text[])
     union all select tx_hash, part from claimed_arrival
       where chain_id = $1 and tx_hash = any($2::text[]) and account = $3 and claimant <> $4`,
    [chain.id, hashes, nameOn(chain, account), claimant],
  )
  const isClaimed = (hash: string, own: string) =>
    rows.some(({ tx_hash, part }) => tx_hash === hash && (part === null || overlaps(part, own)))
  return paid.filter(({ part }, at) => !isClaimed(hashes[at]!, part))
}

/** Counts a payment in the caller's commit. Returns false if its claimant had counted it; throws if another had. */
export async function claimArrival(
  tx: Tx,
  { chain, txHash, part, account }: ArrivalId,
  { claimant, at }: { claimant: string; at: Date },
): Promise<boolean> {
  const named = { hash: nameOn(chain, txHash), account: nameOn(chain, account) }
  // The unique key of the table does not know that a sum and one of its parts are the same money.
  const payment = `arrival ${chain.id} ${named.hash} ${named.account}`
  await query(tx, 'select pg_advisory_xact_lock(hashtextextended($1, 0))', [payment])
  const [claimed] = await query<{ is_new: boolean }>(
    tx,
    `insert into claimed_arrival (chain_id, tx_hash, part, account, claimant, at)
       select $1, $2, $3, $4, $5, $6 where not exists (
         select from claimed_arrival where chain_id = $1 and tx_hash = $2 and account = $4 and claimant <> $5
           and (starts_with(part, $3 || ':') or starts_with($3, part || ':')))
     on conflict (chain_id, tx_hash, account, part) do update set at = claimed_arrival.at
       where claimed_arrival.claimant = excluded.claimant
     returning xmax = 0 as is_new`,
    [chain.id, named.hash, part, named.account, claimant, at],
  )
  if (!claimed) throw new Fault('unavailable', 'The payment is already counted')
  return claimed.is_new
}

export const countedAlready = (txHash: string): Fault =>
  new Fault('conflict', `The payment ${txHash} is already counted, or the gateway sent it`)

/** Counts a payment that an operator has found. Throws if it is counted already, or if the gateway signed it. */
export async function claimFound(
  tx: Tx,
  arrival: ArrivalId,
  { claimant, at }: { claimant: string; at: Date },
): Promise<void> {
  const [free] = await unclaimed(tx, { ...arrival, claimant }, [arrival])
  if (!free) throw countedAlready(arrival.txHash)
  await claimArrival(tx, arrival, { claimant, at })
}
