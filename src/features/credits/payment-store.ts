import { Fault } from '#kernel/contract/fault.ts'
import type { Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { CreditPaymentRow } from '#store/tables/credits.ts'
import type { StrayReason } from './payment-verdict.ts'

export type PaymentId = { chainId: string; txHash: string; logIndex: number }
export type NewPayment = PaymentId & {
  block: bigint
  payer: string
  token: string
  amountUnits: bigint
  taskId: string | null
} & ({ state: 'pending' | 'credited' } | { state: 'stray'; reason: StrayReason })

/** Writes hex in lower case. Solana's signatures and addresses are case-sensitive and stay as they are. */
export const canonicalHex = (text: string): string => (text.startsWith('0x') ? text.toLowerCase() : text)

const rowOf = (payment: NewPayment, now: Date): CreditPaymentRow => ({
  chain_id: payment.chainId,
  tx_hash: canonicalHex(payment.txHash),
  log_index: payment.logIndex,
  block: payment.block,
  payer: canonicalHex(payment.payer),
  token: payment.token,
  amount: String(payment.amountUnits),
  task_id: payment.taskId,
  state: payment.state,
  reason: payment.state === 'stray' ? payment.reason : null,
  found_at: now,
  resolved_at: null,
  resolved_by: null,
  resolution: null,
})

/** Returns the hashes among `txHashes` whose payments are stored already. */
export async function knownTransactions(
  db: Queryable,
  chainId: string,
  txHashes: readonly string[],
): Promise<Set<string>> {
  const rows = await query<{ tx_hash: string }>(
    db,
    'select tx_hash from credit_payment where chain_id = $1 and tx_hash = any($2::text[])',
    [chainId, txHashes],
  )
  return new Set(rows.map(({ tx_hash }) => tx_hash))
}

export async function addFound(db: Queryable, payments: readonly NewPayment[], now: Date): Promise<void> {
  if (payments.length === 0) return
  const rows = payments.map((payment) => rowOf(payment, now))
  await fetchAll(
    db,
    builder
      .insertInto('credit_payment')
      .values(rows)
      .onConflict((oc) => oc.doNothing()),
  )
}

/** Stores a payment as credited, in the commit that books the credits; throws if an operator has settled it. */
export async function addCredited(tx: Tx, payment: NewPayment, now: Date): Promise<void> {
  const rows = await fetchAll(
    tx,
    builder
      .insertInto('credit_payment')
      .values(rowOf(payment, now))
      .onConflict((oc) =>
        oc
          .columns(['chain_id', 'tx_hash', 'log_index'])
          .doUpdateSet({ state: 'credited', reason: null, task_id: payment.taskId })
          .where('credit_payment.state', '<>', 'resolved'),
      )
      .returning('state'),
  )
  if (rows.length === 0)
    throw new Fault('conflict', 'An operator has already settled this payment, so it credits nothing more')
}

/** Returns how an operator settled a payment without a task: by its return, or by a grant of its credits. */
export async function resolutionOf(
  db: Queryable,
  { chainId, txHash, logIndex }: PaymentId,
): Promise<string | undefined> {
  const [row] = await query<{ resolution: string }>(
    db,
    `select resolution from credit_payment
       where chain_id = $1 and tx_hash = $2 and log_index = $3 and state = 'resolved'`,
    [chainId, canonicalHex(txHash), logIndex],
  )
  return row?.resolution
}

/** Marks found payments of a task as credited, in an operator's commit; payments found later are judged later. */
export const creditPaymentsOf = (tx: Tx, { taskId, txHash }: { taskId: string; txHash: string }) =>
  query(
    tx,
    `update credit_payment set state = 'credited', reason = null
     where task_id = $1 and tx_hash = $2 and state in ('pending', 'stray')`,
    [taskId, canonicalHex(txHash)],
  )

/** Payments that name the task and were neither credited nor returned. */
export const openPaymentsOf = (tx: Tx, taskId: string) =>
  query<{ tx_hash: string }>(
    tx,
    `select tx_hash from credit_payment where task_id = $1 and state in ('pending', 'stray')`,
    [taskId],
  )

export type PendingPayment = Pick<
  CreditPaymentRow,
  'chain_id' | 'tx_hash' | 'log_index' | 'payer' | 'amount'
> & {
  /** The task that the payment names; null if no task of this kind has that id. */
  task: {
    status: string
    account: string
    chain_id: string
    amount_units: string
    tx_hash: string | null
  } | null
}

/** Reads payments and tasks in one statement, so that an ended task comes with the payment that it credited. */
export const pendingPayments = (db: Queryable, kind: string, limit: number): Promise<PendingPayment[]> =>
  query(
    db,
    `select p.chain_id, p.tx_hash, p.log_index, p.payer, p.amount,
       case when t.id is not null then jsonb_build_object('status', t.status, 'account', t.data ->> 'account',
         'chain_id', t.data ->> 'chain_id', 'amount_units', t.data ->> 'amount_units',
         'tx_hash', t.result ->> 'tx_hash') end as task
     from credit_payment p left join task t on t.id = p.task_id and t.kind = $1
     where p.state = 'pending' order by p.found_at limit $2`,
    [kind, limit],
  )

/** Settles a pending payment; changes nothing if the task has credited the payment in the meantime. */
export async function settlePending(
  db: Queryable,
  { chain_id, tx_hash, log_index }: Pick<CreditPaymentRow, 'chain_id' | 'tx_hash' | 'log_index'>,
  verdict: 'credited' | StrayReason,
): Promise<boolean> {
  const state = verdict === 'credited' ? 'credited' : 'stray'
  const rows = await query(
    db,
    `update credit_payment set state = $4, reason = $5
     where chain_id = $1 and tx_hash = $2 and log_index = $3 and state = 'pending' returning tx_hash`,
    [chain_id, tx_hash, log_index, state, state === 'stray' ? verdict : null],
  )
  return rows.length > 0
}

export const scanOf = (db: Queryable, chainId: string, till: string) =>
  fetchOne(
    db,
    builder
      .selectFrom('credit_payment_scan')
      .select(['next_block', 'scanned_at'])
      .where('chain_id', '=', chainId)
      .where('till', '=', canonicalHex(till)),
  )

type Scan = { chainId: string; till: string; next: bigint; now: Date }

/** Saves how far a till was searched; a slower run of another instance never sets the search back. */
export const saveScan = (db: Queryable, { chainId, till, next, now }: Scan) =>
  query(
    db,
    `insert into credit_payment_scan (chain_id, till, next_block, scanned_at) values ($1, $2, $3, $4)
     on conflict (chain_id, till) do update
       set next_block = greatest(credit_payment_scan.next_block, excluded.next_block),
         scanned_at = greatest(credit_payment_scan.scanned_at, excluded.scanned_at)`,
    [chainId, canonicalHex(till), next, now],
  )

type PaymentCounts = { stray: { reason: string; count: number }[]; scans: { chain_id: string; at: Date }[] }

export async function paymentCounts(db: Queryable): Promise<PaymentCounts> {
  const [stray, scans] = await Promise.all([
    query<{ reason: string; count: string }>(
      db,
      `select reason, count(*) as count from credit_payment where state = 'stray' group by reason order by reason`,
    ),
    query<{ chain_id: string; at: Date }>(
      db,
      'select chain_id, max(scanned_at) as at from credit_payment_scan group by chain_id order by chain_id',
    ),
  ])
  return { stray: stray.map(({ reason, count }) => ({ reason, count: Number(count) })), scans }
}
