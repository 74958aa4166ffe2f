import { rejectRequest } from '#world/venue-core/request-error.ts'
import { floorMicro, one, parseUnits, unitsText } from './decimal.ts'
import { withdrawable } from './margin.ts'
import { type Token, tokenNamed, tokens, usdc } from './markets.ts'
import type { Account } from './state.ts'
import { fundSpot, isUnified } from './unified.ts'
import { midOf, openAccount, recordLedger, spotOf, stateOf, type Venue } from './venue.ts'

const dollar = BigInt(one)

/** Perpetual collateral has six decimals. */
const perpAmount = (text: string): bigint => {
  const units = parseUnits(text, 6)
  return units === undefined || units <= 0n ? rejectRequest('Invalid amount.') : units * 100n
}

const tokenAmount = (text: string, token: Token): bigint => {
  const places = Math.min(8, token.weiDecimals)
  const units = parseUnits(text, places)
  if (units === undefined || units <= 0n) return rejectRequest('Invalid amount.')
  return units * 10n ** BigInt(8 - places)
}

const freeUnits = (account: Account, token: Token): bigint => {
  const { total, hold } = spotOf(account, token.index)
  return total - hold
}

const perpFree = (venue: Venue, account: Account): bigint =>
  withdrawable(account, (asset) => stateOf(venue, asset).mark)

export const classTransfer = (
  venue: Venue,
  account: Account,
  amount: string,
  { toPerp }: { toPerp: boolean },
): void => {
  if (isUnified(account)) rejectRequest('Action disabled when unified account is active')
  const [text = '', sub] = amount.split(' subaccount:')
  if (sub !== undefined) rejectRequest(`Invalid sub-account transfer from ${account.address} to ${sub}`)
  const units = perpAmount(text)
  const spot = spotOf(account, usdc.index)
  if (toPerp ? freeUnits(account, usdc) < units : perpFree(venue, account) < units)
    rejectRequest('Insufficient balance for token transfer')
  const sign = toPerp ? 1n : -1n
  spot.total -= sign * units
  account.raw += sign * units
  venue.state.flows.perp += sign * units
  venue.state.flows.spot.set(usdc.index, (venue.state.flows.spot.get(usdc.index) ?? 0n) - sign * units)
  recordLedger(venue, account, { type: 'accountClassTransfer', usdc: unitsText(units), toPerp })
}

export const usdSend = (venue: Venue, account: Account, destination: string, amount: string): void => {
  const units = perpAmount(amount)
  if (perpFree(venue, account) < units) rejectRequest('Insufficient balance for withdrawal')
  const receiver = openAccount(venue, destination)
  account.raw -= units
  receiver.raw += units
  const delta = {
    type: 'internalTransfer',
    usdc: unitsText(units),
    user: account.address,
    destination,
    fee: '0.0',
  }
  recordLedger(venue, account, delta)
  if (receiver !== account) recordLedger(venue, receiver, delta)
}

const usdValue = (venue: Venue, token: Token, units: bigint): bigint => {
  if (token.index === usdc.index) return units
  const price = midOf(venue, 10_000 + token.index - 1) ?? 0
  return (units * BigInt(Math.round(price))) / dollar
}

export const spotSend = (
  venue: Venue,
  account: Account,
  {
    destination,
    token: name,
    amount,
    nonce,
  }: { destination: string; token: string; amount: string; nonce: number },
): void => {
  const token = tokenNamed(name) ?? rejectRequest(`Invalid token: ${name}`)
  const units = tokenAmount(amount, token)
  if (token.index === usdc.index) fundSpot(venue, account, units)
  if (freeUnits(account, token) < units) rejectRequest('Insufficient balance for token transfer')
  const receiver = openAccount(venue, destination)
  spotOf(account, token.index).total -= units
  spotOf(receiver, token.index).total += units
  const delta = {
    type: 'spotTransfer',
    token: token.name,
    amount: unitsText(units),
    usdcValue: unitsText(floorMicro(usdValue(venue, token, units))),
    user: account.address,
    destination,
    fee: '0.0',
    nativeTokenFee: '0.0',
    nonce,
    feeToken: '',
  }
  recordLedger(venue, account, delta)
  if (receiver !== account) recordLedger(venue, receiver, delta)
}

const withdrawalFeeUsd = 1

/** Leaves the account at once; the bridge pays it out afterwards, less its fee. */
export const withdraw = (
  venue: Venue,
  account: Account,
  destination: string,
  { amount, nonce }: { amount: string; nonce: number },
): void => {
  const units = perpAmount(amount)
  const withdrawalFee = BigInt(venue.state.settings.withdrawalFeeUsd ?? withdrawalFeeUsd) * dollar
  if (units <= withdrawalFee || perpFree(venue, account) < units)
    rejectRequest('Insufficient balance for withdrawal')
  account.raw -= units
  const paid = units - withdrawalFee
  venue.state.fees.bridge += withdrawalFee
  venue.state.flows.perp -= paid
  const { payouts } = venue.state.bridge
  payouts.push({ id: payouts.length, user: account.address, destination, amount: paid, nonce, hash: null })
  recordLedger(venue, account, {
    type: 'withdraw',
    usdc: unitsText(paid),
    nonce,
    fee: unitsText(withdrawalFee),
  })
}

export const depositMin = 5n * dollar

/** A deposit below the minimum is lost, as upstream documents; the bridge's books record it. */
export const deposit = (venue: Venue, user: string, units: bigint): void => {
  venue.state.flows.perp += units
  if (units < depositMin) {
    venue.state.fees.bridge += units
    return
  }
  const account = openAccount(venue, user)
  account.raw += units
  recordLedger(venue, account, { type: 'deposit', usdc: unitsText(units) })
}

const foreignSender = `0x${'57'.repeat(20)}`

/** A token transfer from an unknown sender. The real venue prints such a record without a nonce at times. */
export const foreignTransfer = (venue: Venue, user: string, coin: string, units: bigint): void => {
  const token = tokens.find(({ name }) => name === coin) ?? rejectRequest(`Invalid token: ${coin}`)
  const account = openAccount(venue, user)
  spotOf(account, token.index).total += units
  venue.state.flows.spot.set(token.index, (venue.state.flows.spot.get(token.index) ?? 0n) + units)
  recordLedger(venue, account, {
    type: 'spotTransfer',
    token: token.name,
    amount: unitsText(units),
    usdcValue: unitsText(floorMicro(usdValue(venue, token, units))),
    user: foreignSender,
    destination: account.address,
    fee: '0.0',
    nativeTokenFee: '0.0',
    nonce: null,
    feeToken: '',
  })
}

/** Test money: created, and counted as a deposit. */
export const credit = (venue: Venue, user: string, coin: string, units: bigint): void => {
  const account = openAccount(venue, user)
  if (coin === 'perp') {
    account.raw += units
    venue.state.flows.perp += units
    recordLedger(venue, account, { type: 'deposit', usdc: unitsText(units) })
    return
  }
  const token = tokens.find(({ name }) => name === coin) ?? rejectRequest(`Invalid token: ${coin}`)
  spotOf(account, token.index).total += units
  venue.state.flows.spot.set(token.index, (venue.state.flows.spot.get(token.index) ?? 0n) + units)
  recordLedger(venue, account, { type: 'spotGenesis', token: token.name, amount: unitsText(units) })
}
