import { balanceChange, sumChanges } from '#kernel/money/balance-changes.ts'
import { type OperatorEnd, unusedOption, wholeOrNothing } from '#kernel/task/operator-end.ts'
import { type EndResult, externalAccount, type TaskView } from '#kernel/task/task.ts'
import { positionAccount, shareAsset, usdcToken } from './ledger-accounts.ts'
import { type FlowDeps, settledFlow, type VaultTaskData } from './vault-task.ts'

/** This module ends a deposit or withdrawal for an operator, with the shares that the task bought or burnt. */

export type EarnOperatorDeps = FlowDeps & { usdc: string }
type Flow = { assetsUnits: bigint; sharesUnits: bigint }

/** An operator does not know the block, so this end sets no lowest block for later readings. */
const unknownBlock = 0n

function flowEnd(
  deps: EarnOperatorDeps,
  task: TaskView<VaultTaskData>,
  { flow, txHash, ending, sign }: { flow: Flow; txHash: string | null; ending: EndResult; sign: 1n | -1n },
): EndResult {
  const receipt = { block: unknownBlock, txHash: txHash ?? '' }
  const chainId = deps.vault.chainId
  const changes = [
    balanceChange(chainId, usdcToken(deps.usdc), -sign * flow.assetsUnits),
    balanceChange(chainId, deps.shareToken, sign * flow.sharesUnits),
  ]
  return {
    ...ending,
    ...settledFlow(deps, task, { flow, receipt }, sign),
    data: { ...ending.data, balance_changes: sumChanges([...(task.data.balance_changes ?? []), ...changes]) },
  }
}

export const operatorEndOfDeposit =
  (deps: EarnOperatorDeps): OperatorEnd =>
  (view, ending, finding) => {
    const refused = wholeOrNothing(finding) ?? unusedOption(finding, ['amount-out'])
    if (refused) return refused
    if (finding.outcome === 'not_executed') return ending
    const task = view as TaskView<VaultTaskData>
    const { outUnits: sharesUnits, txHash } = finding
    if (sharesUnits === null)
      return {
        refusal: `--amount-out is required: the shares that the deposit bought, in smallest units (${deps.shareToken.decimals} decimals).`,
      }
    const shares = shareAsset(deps.vault)
    const assetsUnits = BigInt(task.data.assets_units ?? '0')
    const ended = flowEnd(deps, task, { flow: { assetsUnits, sharesUnits }, txHash, ending, sign: 1n })
    const bought = {
      move: 'transfer' as const,
      key: `${task.id}:shares`,
      debit: externalAccount(shares),
      credit: positionAccount(task.userId, shares, task.data.position_id),
      amountUnits: sharesUnits,
      reason: 'earn_deposit',
    }
    return { ...ended, moves: [...(ending.moves ?? []), bought] }
  }

type WithdrawData = VaultTaskData & { shares_units: string; held_shares: string }

export const operatorEndOfWithdrawal =
  (deps: EarnOperatorDeps): OperatorEnd =>
  (view, ending, finding) => {
    const refused = wholeOrNothing(finding) ?? unusedOption(finding, ['amount-in', 'amount-out'])
    if (refused) return refused
    if (finding.outcome === 'not_executed') return ending
    const task = view as TaskView<WithdrawData>
    const { assets_units, shares_units, held_shares } = task.data
    const { inUnits, outUnits, txHash } = finding
    // A full withdrawal names the shares that it burns, and any other one names the USDC that it pays.
    const sharesUnits = inUnits ?? (assets_units === null ? BigInt(shares_units) : null)
    const assetsUnits = outUnits ?? (assets_units === null ? null : BigInt(assets_units))
    if (sharesUnits === null)
      return { refusal: '--amount-in is required: the shares that were burnt, in smallest units.' }
    if (assetsUnits === null)
      return { refusal: '--amount-out is required: the USDC that arrived, in smallest units.' }
    const heldUnits = BigInt(held_shares)
    return {
      ...flowEnd(deps, task, { flow: { assetsUnits, sharesUnits }, txHash, ending, sign: -1n }),
      // Held shares that were not burnt stay in the position; the audit of the vault finds shares burnt beyond the hold.
      moves: [],
      spent: sharesUnits < heldUnits ? sharesUnits : heldUnits,
    }
  }
