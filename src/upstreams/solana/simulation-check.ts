import type { SvmSpend } from '#kernel/task/signer.ts'
import { tokenAccountIn } from './account-layout.ts'
import type { Account, Trial } from './solana.ts'

/** Compares the balances around a simulated transaction with what the sponsor and the user agreed to pay. */

export type TrialCheck = {
  account: string
  feePayer: string
  native: string
  spends: readonly SvmSpend[]
  /** The accounts in the order in which they were simulated. */
  accounts: readonly string[]
  trial: Trial
  feeLamports: bigint
  baselineFeeLamports: bigint
}
export type CheckedTrial = { violation: string | undefined; rentLamports: bigint }

export function readTrial(check: TrialCheck): CheckedTrial {
  const { account, feePayer, native, accounts, trial, feeLamports, baselineFeeLamports } = check
  const before = new Map(accounts.map((address, index) => [address, trial.baseline.accounts[index]]))
  const after = new Map(accounts.map((address, index) => [address, trial.simulation.accounts[index]]))
  const paidBy = (address: string) => lamportsOf(before.get(address)) - lamportsOf(after.get(address))
  const rentLamports = accounts
    .filter((address) => address !== account && address !== feePayer && !before.get(address))
    .reduce((sum, address) => sum + lamportsOf(after.get(address)), 0n)
  const violationOf = (): string | undefined => {
    if (paidBy(feePayer) + baselineFeeLamports > feeLamports + rentLamports)
      return 'costs the sponsor more than its fee and rent'
    if (paidBy(account) > allowedUnits(check, native)) return 'takes more SOL than was agreed'
    for (const address of accounts) {
      const held = heldBy(account, before.get(address))
      const left = heldBy(account, after.get(address))
      if (!held) continue
      if (held.amountUnits - (left?.amountUnits ?? 0n) > allowedUnits(check, held.mint))
        return 'takes more tokens than was agreed'
    }
    return undefined
  }
  return { violation: violationOf(), rentLamports }
}

const lamportsOf = (account: Account | undefined): bigint => account?.lamports ?? 0n

const allowedUnits = ({ spends }: TrialCheck, token: string): bigint =>
  spends.filter((spend) => spend.token === token).reduce((sum, spend) => sum + spend.amountUnits, 0n)

function heldBy(owner: string, account: Account | undefined) {
  const found = account && tokenAccountIn(account)
  return found?.owner === owner ? found : undefined
}
