import { rejectRequest } from '#world/venue-core/request-error.ts'
import { floorMicro, parseUnits, unitsText } from './decimal.ts'
import { withdrawable } from './margin.ts'
import { tokenNamed, usdc } from './markets.ts'
import type { Account } from './state.ts'
import { subAccountOf } from './sub-accounts.ts'
import { fundSpot, isUnified } from './unified.ts'
import { midOf, openAccount, recordLedger, spotOf, stateOf, type Venue } from './venue.ts'

export type AssetTransfer = {
  destination: string
  sourceDex: string
  destinationDex: string
  token: string
  amount: string
  fromSubAccount?: string
  nonce: number
}

/** `""` is the perpetual exchange of this venue, which has one; `spot` is the spot side. */
const side = (dex: string): 'perp' | 'spot' =>
  dex === '' ? 'perp' : dex === 'spot' ? 'spot' : rejectRequest(`Invalid perp dex: ${dex}`)

const recordFlow = ({ state }: Venue, from: 'perp' | 'spot', to: 'perp' | 'spot', units: bigint): void => {
  if (from === to) return
  const sign = to === 'perp' ? 1n : -1n
  state.flows.perp += sign * units
  state.flows.spot.set(usdc.index, (state.flows.spot.get(usdc.index) ?? 0n) - sign * units)
}

/** Transfers a token between the sides of accounts. */
export const sendAsset = (venue: Venue, sender: Account, transfer: AssetTransfer): void => {
  const { sourceDex, destinationDex, token: name, amount, fromSubAccount, nonce } = transfer
  const from = fromSubAccount ? subAccountOf(venue, sender, fromSubAccount.toLowerCase()) : sender
  const [source, target] = [side(sourceDex), side(destinationDex)]
  const token = tokenNamed(name) ?? rejectRequest(`Invalid token: ${name}`)
  if ((source === 'perp' || target === 'perp') && token.index !== usdc.index)
    rejectRequest(`Invalid token for perp dex: ${name}`)
  const places = source === 'perp' || target === 'perp' ? 6 : Math.min(8, token.weiDecimals)
  const units = (parseUnits(amount, places) ?? 0n) * 10n ** BigInt(8 - places)
  if (units <= 0n) rejectRequest('Invalid amount.')
  if (isUnified(from) && from.address === transfer.destination)
    rejectRequest('Action disabled when unified account is active')
  if (source === 'spot' && token.index === usdc.index) fundSpot(venue, from, units)
  const { total, hold } = spotOf(from, token.index)
  const free = source === 'perp' ? withdrawable(from, (asset) => stateOf(venue, asset).mark) : total - hold
  if (free < units) rejectRequest('Insufficient balance for token transfer')
  const to = openAccount(venue, transfer.destination)
  if (source === 'perp') from.raw -= units
  else spotOf(from, token.index).total -= units
  if (target === 'perp') to.raw += units
  else spotOf(to, token.index).total += units
  recordFlow(venue, source, target, units)
  const price = token.index === usdc.index ? 1 : (midOf(venue, 10_000 + token.index - 1) ?? 0) / 1e8
  const delta = {
    type: 'send',
    user: from.address,
    destination: to.address,
    sourceDex,
    destinationDex,
    token: token.name,
    amount: unitsText(units),
    usdcValue: unitsText(floorMicro(BigInt(Math.round(Number(units) * price)))),
    fee: '0.0',
    nativeTokenFee: '0.0',
    nonce,
    feeToken: '',
  }
  recordLedger(venue, from, delta)
  if (to !== from) recordLedger(venue, to, delta)
}
