import type { Ledger } from '#durable/ledger.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { type EarnAccount, earnAccountOf, floorOf } from './earn-account.ts'
import { cashAsset, lotPrefix, shareAsset, walletAccount } from './lots.ts'

/**
 * Ledger and chain of one user, comparable: read while nothing of that user was under way. Every deposit and every
 * withdrawal has units on hold until it is settled, and a settlement raises a counter. So where nothing is on hold
 * before and after the chain is read, and no counter moved, the chain shows what the ledger shows, and whatever
 * differs came or went another way.
 */
export type Lot = { positionId: string; sharesUnits: bigint }
export type SettledReading = {
  /** Positions with shares, oldest first. */
  lots: Lot[]
  onChainUnits: bigint
  block: bigint
  account: EarnAccount
}

type Needs = {
  on: Queryable
  vault: Vault
  usdc: string
  ledger: Pick<Ledger, 'balance' | 'books'>
  clock: Clock
}
/** The newest block, or one that is not expected to change any more. */
type At = { block?: bigint }

export type ReadSettled = (userId: string, address: string, at?: At) => Promise<SettledReading | undefined>

export function settledReading({ on, vault, usdc, ledger, clock }: Needs): ReadSettled {
  const place = { chainId: vault.chainId, vault: vault.address.toLowerCase() }

  const ledgerOf = async (userId: string) => {
    const [books, cash] = await Promise.all([
      ledger.books(on, userId, shareAsset(vault)),
      ledger.balance(on, walletAccount(userId, cashAsset(vault, usdc))),
    ])
    const isSettled = cash.heldUnits === 0n && books.every(({ heldUnits }) => heldUnits === 0n)
    const counters = [cash, ...books].map(({ settlements }) => String(settlements)).join()
    return { books, isSettled, counters }
  }

  /** Undefined while something of the user is under way, or where the node lags behind what was settled. */
  return async (userId, address, { block } = {}) => {
    const before = await ledgerOf(userId)
    if (!before.isSettled) return undefined
    const account = await earnAccountOf(on, userId, place)
    if (!account) return undefined
    const seen = await vault.account(address, block)
    if (seen.block < floorOf(account, clock.now())) return undefined
    const after = await ledgerOf(userId)
    if (!after.isSettled || after.counters !== before.counters) return undefined
    const lots = before.books
      .filter(({ availUnits }) => availUnits > 0n)
      .map(({ book, availUnits }) => ({ positionId: book.slice(lotPrefix.length), sharesUnits: availUnits }))
      .sort((a, b) => (a.positionId < b.positionId ? -1 : 1))
    return { lots, onChainUnits: seen.sharesUnits, block: seen.block, account }
  }
}
