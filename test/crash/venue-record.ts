/** The venue's record of a task, compared with the task's result. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { http } from '../harness/gateway.ts'

export type TaskReply = {
  task_id: string
  status: string
  outcome: string | null
  state: string
  error: { code: string; message: string } | null
  fills: { order_id: string; fill_id: string; price: string; size: string; fee: string }[]
  result: {
    order_id: string
    order_status: string
    filled_size: string
    fee: string
    tp_oids: string[]
    sl_oids: string[]
    amount: string
    amount_usd?: string
    tx_hash: string
    /** Of a funding or withdrawal with a swap. */
    legs?: { role: string; status: string; tx_hash: string | null }[]
  }
}
type VenueOrder = { oid: number; user: string; status: string; origSz: string; cloid?: string }
type VenueFill = {
  oid: number
  tid: number
  side: 'A' | 'B'
  coin: string
  sz: string
  px: string
  fee: string
}
export type Account = {
  rawUsd: string
  spot: Record<string, { total: string; hold: string }>
  positions: { coin: string; lots: number }[]
  fills: VenueFill[]
  orders: VenueOrder[]
  ledger: { delta: { type: string; usdc?: string; nonce?: number } }[]
}
export type Payout = { user: string; amount: string; nonce: number; hash: string | null }
export type VenueState = {
  accounts: Account[]
  orders: VenueOrder[]
  payouts: Payout[]
  conservation: { perp: string }
}

export type VenueCall = <B = object>(method: string, path: string, body?: object) => Promise<B>
export const venueOf =
  (control: string): VenueCall =>
  async <B>(method: string, path: string, body?: object): Promise<B> => {
    const reply = await http<B>(`${control}/venues/hyperliquid${path}`, { method, ...(body && { body }) })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }

export const cloidOf = (executionId: string, leg: string) =>
  `0x${createHash('sha256').update(`${executionId}:${leg}`).digest('hex').slice(0, 32)}`

/** What the venue knows these tasks by. */
export const executionsOf = async (admin: pg.Pool, taskIds: string[]): Promise<string[]> =>
  (
    await admin.query<{ execution: string }>(
      'select coalesce(execution_id, id) as execution from task where id = any($1::uuid[])',
      [taskIds],
    )
  ).rows.map(({ execution }) => execution)

/** In units of the eighth decimal. */
export const units = (text: string): bigint => {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text) ?? []
  return BigInt(`${sign}${whole}${fraction.padEnd(8, '0').slice(0, 8)}`)
}
export const total = (amounts: bigint[]) => amounts.reduce((sum, each) => sum + each, 0n)

export const recordOf = async (venue: VenueCall, { address }: { address: string }) =>
  (await venue<VenueState>('GET', `/effects?user=${address}`)).accounts[0]!

/** Signed: bought positive, sold negative. */
export const traded = (fills: VenueFill[]) =>
  total(fills.map(({ side, sz }) => (side === 'B' ? units(sz) : -units(sz))))

export const frozenAccounts = async (admin: pg.Pool) =>
  (await admin.query(`select account, state, reason from venue_account where state not in ('new', 'active')`))
    .rows

type RecordContext = {
  customer: { address: string }
  venue: VenueCall
  app: { admin: pg.Pool }
  replies: TaskReply[]
}

/**
 * Checks that a key has one task, that an order exists once and is filled as reported, and that no order lacks a task.
 */
export async function verifyRecord(
  { customer, venue, app, replies }: RecordContext,
  last: TaskReply,
  at: string,
): Promise<void> {
  const ids = replies.map(({ task_id }) => task_id)
  assert.equal(new Set(ids).size, ids.length, `${at}: one task for each key`)
  const { rows } = await app.admin.query<{ own: string; status: string }>(
    'select count(*) as own from task where kind = (select kind from task where id = $1) and user_id = (select user_id from task where id = $1)',
    [last.task_id],
  )
  assert.equal(Number(rows[0]!.own), ids.length, `${at}: tasks of the customer`)
  const record = await recordOf(venue, customer)
  const executions = await executionsOf(app.admin, ids)
  const [lastExecution = ''] = await executionsOf(app.admin, [last.task_id])
  const known = new Set(['entry', 'tp', 'sl'].flatMap((leg) => executions.map((id) => cloidOf(id, leg))))
  const own = record.orders.filter(({ cloid }) => known.has(cloid ?? ''))
  const mine = own.filter(({ cloid }) => cloid === cloidOf(lastExecution, 'entry'))
  // A task without an order of its own names none, or the one that it has cancelled.
  if (last.result.order_status === undefined) {
    const replyOf = new Set(
      replies.flatMap(({ result }) => [...(result.tp_oids ?? []), ...(result.sl_oids ?? [])]),
    )
    const unreported = own.filter(({ oid }) => !replyOf.has(String(oid)))
    return assert.equal(unreported.length, 0, `${at}: orders that no task reports`)
  }
  assert.equal(mine.length, 1, `${at}: entries of one key ${JSON.stringify(mine)}`)
  const entry = mine[0]!
  assert.deepEqual(
    [String(entry.oid), entry.status],
    [last.result.order_id, last.result.order_status],
    `${at}: the entry`,
  )
  const fills = record.fills.filter(({ oid }) => oid === entry.oid)
  const view = (list: { id: string; sz: string; px: string; fee: string }[]) =>
    list.map(({ id, sz, px, fee }) => `${id}: ${units(sz)} at ${units(px)} for ${units(fee)}`).sort()
  assert.deepEqual(
    view(last.fills.map(({ fill_id, size, price, fee }) => ({ id: fill_id, sz: size, px: price, fee }))),
    view(fills.map(({ tid, sz, px, fee }) => ({ id: String(tid), sz, px, fee }))),
    `${at}: the fills`,
  )
  assert.equal(units(last.result.filled_size), total(fills.map(({ sz }) => units(sz))), `${at}: the size`)
  assert.equal(units(last.result.fee), total(fills.map(({ fee }) => units(fee))), `${at}: the fee`)
}

/** Of BTC, with five decimals of eight. */
const lotUnits = 1_000n

/** The position by the venue's record, and by the sum of all fills. */
export async function assertPosition({ customer, venue }: RecordContext, expected: bigint): Promise<void> {
  const { positions, fills } = await recordOf(venue, customer)
  assert.deepEqual(
    positions.map(({ coin, lots }) => [coin, BigInt(lots) * lotUnits]),
    [['BTC', expected]],
  )
  assert.equal(traded(fills), expected)
}
