import { createHash } from 'node:crypto'
import { isPicked } from '#world/venue-core/realism-settings.ts'
import type { Realism } from './realism.ts'
import type { Account } from './state.ts'
import type { Json } from './views.ts'

/**
 * Records of other clients, other exchanges of the venue and unknown senders in the lists of an account. None of them
 * changes a balance, a position or an order of this venue.
 */
export type ForeignRecords = { ledger: Json[]; fills: Json[]; orders: Json[] }

type Span = { fromMs: number; toMs: number }

const foreignSender = '0x5ca1ab1e00000000000000000000000000000007'
const coin = 'xyz:GOLD'
const firstMs = 1_000
const secondsOfRecords = 31
const oidBase = 9_000_000_000

const hashOf = (address: string, at: number): string =>
  `0x${createHash('sha256').update(`${address}:foreign:${at}`).digest('hex')}`

/** After one second of an account's life, then after two, four, eight and so on: frequent at first and few in total. */
const recordTimes = ({ createdMs }: Account, { fromMs, toMs }: Span): [index: number, timeMs: number][] =>
  Array.from({ length: secondsOfRecords }, (_, index): [number, number] => [
    index,
    createdMs + firstMs * 2 ** index,
  ]).filter(([, timeMs]) => timeMs >= fromMs && timeMs <= toMs)

/** An unlisted token from an unknown sender. The venue prints such a transfer without a nonce. */
const transfer = (address: string) => ({
  type: 'spotTransfer',
  token: 'JEFF',
  amount: '0.0',
  usdcValue: '0.0',
  user: foreignSender,
  destination: address,
  fee: '0.0',
  nativeTokenFee: '0.0',
  nonce: null,
  feeToken: '',
})

const deltas = (address: string): Record<string, Json>[] => [
  transfer(address),
  { type: 'gossipPriorityBid', amount: '0.0', slot: { index: 7 } },
  { type: 'accountActivationGas', amount: '0.0', token: 'USDC' },
]

const orderView = (index: number, timeMs: number) => ({
  coin,
  side: index % 2 === 0 ? 'B' : 'A',
  limitPx: '3301.5',
  sz: '0.01',
  oid: oidBase + index,
  timestamp: timeMs,
  triggerCondition: 'N/A',
  isTrigger: false,
  triggerPx: '0.0',
  children: [],
  isPositionTpsl: false,
  reduceOnly: false,
  orderType: 'Limit',
  origSz: '0.01',
  tif: 'Gtc',
  cloid: null,
})

export const foreignRecords = (account: Account, span: Span): ForeignRecords => {
  const records: ForeignRecords = { ledger: [], fills: [], orders: [] }
  for (const [index, timeMs] of recordTimes(account, span)) {
    const hash = hashOf(account.address, index)
    const kinds = deltas(account.address)
    records.ledger.push({ time: timeMs, hash, delta: kinds[index % kinds.length] })
    const opens = index % 2 === 0
    records.fills.push({
      coin,
      px: '3301.5',
      sz: '0.01',
      side: opens ? 'B' : 'A',
      time: timeMs,
      startPosition: opens ? '0.0' : '0.01',
      dir: opens ? 'Open Long' : 'Close Long',
      closedPnl: '0.0',
      hash,
      oid: oidBase + index,
      crossed: true,
      fee: '0.014856',
      tid: oidBase * 1_000 + index,
      feeToken: 'USDC',
      twapId: null,
    })
    records.orders.push({
      order: orderView(index, timeMs),
      status: 'auctionPhaseCanceled',
      statusTimestamp: timeMs,
    })
  }
  return records
}

type LedgerRow = { time: number; hash: string; delta: Record<string, Json> & { type: string } }

const amountFields = ['usdc', 'amount', 'usdcValue', 'netWithdrawnUsd', 'fee']

/** The next binary float above, as a sum of floats prints: 16.0 becomes 16.000000000000004. */
const asFloat = (text: Json): Json => {
  const value = typeof text === 'string' ? Number(text) : 0
  if (!(value >= 1e-6)) return text
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, value)
  bits.setBigUint64(0, bits.getBigUint64(0) + 1n)
  const printed = String(bits.getFloat64(0))
  return printed.includes('e') ? text : printed
}

/** The same record is printed in the same way at every read. */
export const withFloats = ({ seed, printedFloats }: Realism, records: Json): Json =>
  (records as LedgerRow[]).map((record) => {
    if (!isPicked(seed, `${record.hash}:${record.delta.type}`, printedFloats)) return record
    const delta: LedgerRow['delta'] = { ...record.delta }
    for (const field of amountFields) if (field in delta) delta[field] = asFloat(delta[field])
    return { ...record, delta }
  })

type StatusRecord = { order: { oid: number }; status: string }

const isEnd = (status: string): boolean => /cancel|reject/i.test(status)

export const withUnknownStatus = <T extends StatusRecord>({ seed, unknownStatus }: Realism, record: T): T =>
  isEnd(record.status) && isPicked(seed, `status:${record.order.oid}`, unknownStatus.rate)
    ? { ...record, status: unknownStatus.word }
    : record
