import type { Ledger } from '#durable/ledger/ledger.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { type EarnAccount, earnAccountOf, minBlockFor, vaultRefOf } from './earn-account-store.ts'
import { cashAsset, positionPrefix, shareAsset, walletAccount } from './ledger-accounts.ts'

/**
 * A consistent reading of one user's ledger and chain balances, taken while no action of that user was in
 * flight. Every deposit and withdrawal holds units until it is settled, and a settlement raises a version. If
 * nothing is held before and after the chain is read, and no version changed, every difference between ledger
 * and chain comes from outside the gateway. Only positions with shares are read. An empty one can gain and
 * lose shares in between only by a deposit, which raises the version of the cash, or by a sync, which raises
 * that of the account.
 */
export type PositionShares = { positionId: string; sharesUnits: bigint }
export type SettledReading = {
  positionShares: PositionShares[]
  onChainUnits: bigint
  block: bigint
  account: EarnAccount
}

type SettledReadingDeps = {
  db: Queryable
  vault: Vault
  usdc: string
  ledger: Pick<Ledger, 'balance' | 'subAccounts'>
  clock: Clock
}
/** Without `block` the reading is of the newest block. */
type ReadOptions = { block?: bigint }

export type ReadSettled = (
  userId: string,
  address: string,
  at?: ReadOptions,
) => Promise<SettledReading | undefined>

export function createSettledReader({ db, vault, usdc, ledger, clock }: SettledReadingDeps): ReadSettled {
  const vaultRef = vaultRefOf(vault)

  const ledgerOf = async (userId: string) => {
    const [subAccounts, cash, account] = await Promise.all([
      ledger.subAccounts(db, userId, shareAsset(vault)),
      ledger.balance(db, walletAccount(userId, cashAsset(vault, usdc))),
      earnAccountOf(db, userId, vaultRef),
    ])
    const isSettled = cash.heldUnits === 0n && subAccounts.every(({ heldUnits }) => heldUnits === 0n)
    const versions = subAccounts.map(({ subAccount, version }) => `${subAccount} ${version}`)
    const counters = [cash.version, account?.version, ...versions].join()
    return { subAccounts, account, isSettled, counters }
  }

  /** Returns a reading; undefined while an action is in flight, or if the node lags behind the last settlement. */
  return async (userId, address, { block } = {}) => {
    const before = await ledgerOf(userId)
    const { account } = before
    if (!before.isSettled || !account) return undefined
    const vaultAccount = await vault.account(address, block)
    if (vaultAccount.block < minBlockFor(account, clock.now())) return undefined
    const after = await ledgerOf(userId)
    if (!after.isSettled || after.counters !== before.counters) return undefined
    const positionShares = before.subAccounts
      .filter(({ availUnits }) => availUnits > 0n)
      .map(({ subAccount, availUnits }) => ({
        positionId: subAccount.slice(positionPrefix.length),
        sharesUnits: availUnits,
      }))
    return { positionShares, onChainUnits: vaultAccount.sharesUnits, block: vaultAccount.block, account }
  }
}
