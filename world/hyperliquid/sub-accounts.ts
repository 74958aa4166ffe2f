import { createHash } from 'node:crypto'
import { rejectRequest } from '#world/venue-core/request-error.ts'
import { parseUnits, unitsText } from './decimal.ts'
import { withdrawable } from './margin.ts'
import type { Account } from './state.ts'
import { spotSend } from './transfers.ts'
import { openAccount, recordLedger, stateOf, type Venue } from './venue.ts'

const subAccountsMax = 50

export const subAccountsOf = ({ state }: Venue, master: string): Account[] =>
  [...state.accounts.values()].filter((account) => account.master === master)

/** The sub-account of that address, which must belong to this master. */
export const subAccountOf = (venue: Venue, master: Account, address: string): Account => {
  const found = venue.state.accounts.get(address)
  return found?.master === master.address
    ? found
    : rejectRequest(`Invalid sub-account: ${address} of ${master.address}`)
}

const nameOf = (venue: Venue, master: Account, name: string): string => {
  if (name.length === 0 || name.length > 16) rejectRequest('Invalid sub-account name.')
  if (subAccountsOf(venue, master.address).some((account) => account.name === name))
    rejectRequest('Sub-account name already exists.')
  return name
}

export const createSubAccount = (venue: Venue, master: Account, name: string): string => {
  if (master.master !== undefined) rejectRequest('A sub-account cannot have sub-accounts.')
  const count = subAccountsOf(venue, master.address).length
  if (count >= subAccountsMax) rejectRequest('Too many sub-accounts.')
  const checked = nameOf(venue, master, name)
  const digest = createHash('sha256').update(`${master.address}:sub-account:${count}`).digest('hex')
  const account = openAccount(venue, `0x${digest.slice(0, 40)}`)
  account.master = master.address
  account.name = checked
  return account.address
}

export const renameSubAccount = (venue: Venue, master: Account, address: string, name: string): void => {
  const account = subAccountOf(venue, master, address)
  account.name = nameOf(venue, master, name)
}

type Route = { subAccountUser: string; isDeposit: boolean }

const transferEnds = (venue: Venue, master: Account, { subAccountUser, isDeposit }: Route) => {
  const account = subAccountOf(venue, master, subAccountUser)
  return isDeposit ? { from: master, to: account } : { from: account, to: master }
}

/** `usd` is in micro-dollars. */
export const subAccountTransfer = (venue: Venue, master: Account, route: Route & { usd: number }): void => {
  const { from, to } = transferEnds(venue, master, route)
  const units = BigInt(route.usd) * 100n
  if (units <= 0n) rejectRequest('Invalid amount.')
  if (withdrawable(from, (asset) => stateOf(venue, asset).mark) < units)
    rejectRequest('Insufficient balance for withdrawal')
  from.raw -= units
  to.raw += units
  const delta = {
    type: 'subAccountTransfer',
    usdc: unitsText(units),
    user: from.address,
    destination: to.address,
  }
  recordLedger(venue, from, delta)
  recordLedger(venue, to, delta)
}

export const subAccountSpotTransfer = (
  venue: Venue,
  master: Account,
  { token, amount, nonce, ...route }: Route & { token: string; amount: string; nonce: number },
): void => {
  if (parseUnits(amount, 18) === undefined) rejectRequest('Invalid amount.')
  const { from, to } = transferEnds(venue, master, route)
  spotSend(venue, from, { destination: to.address, token, amount, nonce })
}
