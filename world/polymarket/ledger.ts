import { hashText, toHex } from '#world/venue-core/signature.ts'
import { makerWallet } from './market-maker.ts'
import type { Leg } from './state.ts'
import { changeTrade } from './trades.ts'
import { addActivity, marketOf, type Venue } from './venue.ts'

/** Money of a venue without a chain: it settles in one step, and shares need no backing. */
export const dollars = 'pusd'

const walletOf = ({ state }: Venue, wallet: string): Map<string, bigint> => {
  const known = state.ledger.get(wallet) ?? new Map<string, bigint>()
  state.ledger.set(wallet, known)
  return known
}

export const ledgerBalance = ({ state }: Venue, wallet: string, asset: string): bigint =>
  state.ledger.get(wallet.toLowerCase())?.get(asset) ?? 0n

const add = (venue: Venue, wallet: string, asset: string, amount: bigint): void => {
  const balances = walletOf(venue, wallet)
  balances.set(asset, (balances.get(asset) ?? 0n) + amount)
}

export const creditLedger = (
  venue: Venue,
  { wallet, asset, amount }: { wallet: string; asset: string; amount: string },
): void => {
  add(venue, wallet.toLowerCase(), asset, BigInt(amount))
  if (asset !== dollars) return
  addActivity(venue, {
    type: 'DEPOSIT',
    wallet: wallet.toLowerCase(),
    conditionId: '',
    outcome: null,
    side: null,
    shares: 0,
    cash: Number(amount),
    fee: 0,
    atMs: venue.state.nowMs,
    hash: `0x${toHex(hashText(`credit ${venue.state.sequence}`))}`,
    role: null,
  })
}

const isShort = (venue: Venue, leg: Leg, token: string): boolean =>
  leg.wallet !== makerWallet &&
  (leg.side === 'BUY'
    ? ledgerBalance(venue, leg.wallet, dollars) < BigInt(leg.cash + leg.fee)
    : ledgerBalance(venue, leg.wallet, token) < BigInt(leg.shares))

export const settleOnLedger = (venue: Venue, id: string): void => {
  const trade = venue.state.trades.get(id)
  if (!trade) return
  const { tokens } = marketOf(trade.conditionId)
  const legs = [trade.taker, ...trade.makers]
  const hash = `0x${toHex(hashText(trade.key))}`
  const short = legs.find((leg) => isShort(venue, leg, tokens[leg.outcome]))
  if (short || trade.plan.fails) {
    changeTrade(venue, id, { status: 'FAILED', error: 'transaction reverted' })
    return
  }
  for (const leg of legs) {
    const sign = leg.side === 'BUY' ? 1n : -1n
    add(venue, leg.wallet, dollars, -sign * BigInt(leg.cash) - BigInt(leg.fee))
    add(venue, leg.wallet, tokens[leg.outcome], sign * BigInt(leg.shares))
  }
  if (trade.plan.retries > 0) {
    changeTrade(venue, id, { status: 'MATCHED', hash: `0x${toHex(hashText(hash))}` })
    changeTrade(venue, id, { status: 'RETRYING', hash })
  }
  changeTrade(venue, id, { status: 'MINED', hash })
  changeTrade(venue, id, { status: 'CONFIRMED', hash })
}
