import { taskOf } from '#kernel/contract/operation.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { oneEffect } from '#kernel/task/effect-steps.ts'
import { externalAccount, type Move, type TaskView } from '#kernel/task/task.ts'
import type { Flow } from '#upstreams/vault/vault.ts'
import type { EarnInput } from './contract.ts'
import { positionAccount, shareAsset } from './ledger-accounts.ts'
import {
  admissionMs,
  minBlockOf,
  parseAmount,
  positionOf,
  settledFlow,
  type VaultTaskData,
  type VaultTaskDeps,
  vaultDriver,
} from './vault-task.ts'
import { planWithdrawal, withdrawalAction, withdrawalBatch } from './withdrawal-plan.ts'

/** A withdrawal holds shares of the position until the vault's events show how many it burnt. */

type WithdrawTaskData = VaultTaskData & { shares_units: string; held_shares: string }
type WithdrawTask = TaskView<WithdrawTaskData>

export const createWithdraw = (deps: VaultTaskDeps) =>
  taskOf({ admit: admitWithdraw(deps), steps: withdrawSteps(deps), looksUp: true })

const admitWithdraw = (deps: VaultTaskDeps) =>
  createAdmission({
    policy: deps.policy,
    async check({ position_id, amount_usdc }: EarnInput<'withdraw'>, { userId }) {
      const { id: positionId } = await positionOf(deps, userId, position_id)
      const amountText = amount_usdc ?? null
      const assetsUnits = amountText === null ? null : parseAmount(amountText, deps.limits.minWithdrawUsdc)
      const account = await deps.evmAddressOf(userId)
      return {
        action: { userId, ...withdrawalAction(deps, account) },
        account,
        amountText,
        assetsUnits,
        positionId,
      }
    },
    async fund({ action: { userId }, account, assetsUnits, positionId }, { executionId }) {
      const { vault, batches, rates } = deps
      const fullExit = assetsUnits === null
      await batches.ready(vault.chainId, { fullExit })
      const plan = await planWithdrawal(deps, { userId, executionId, positionId, account, assetsUnits })
      const gas = await batches.gasCharge({ chainId: vault.chainId, gas: plan.gas, fullExit, isExit: true })
      const { apy } = await rates.yield()
      return { plan, apy, gas }
    },
    start({ action, account, amountText, positionId }, { plan, apy, gas }) {
      const { vault, shareToken } = deps
      const data: WithdrawTaskData = {
        position_id: positionId,
        account,
        chain_id: vault.chainId,
        vault: vault.address,
        assets_units: plan.assetsUnits === null ? null : String(plan.assetsUnits),
        amount_usdc: amountText,
        shares_units: String(plan.sharesUnits),
        held_shares: String(plan.holdUnits),
        apy_at_action: apy,
      }
      const position = positionAccount(action.userId, shareAsset(vault), positionId)
      const spend = { account: position, amountUnits: plan.holdUnits, token: shareToken, gas }
      const { signOnAccept } = plan
      return { first: 'sign', deadlineMs: admissionMs, data, spend, signOnAccept }
    },
  })

const withdrawSteps = (deps: VaultTaskDeps) => {
  const { vault } = deps
  return oneEffect({
    driver: vaultDriver<WithdrawTaskData>(deps, vault.withdrawn, { spendsLedger: true }),
    async plan(task) {
      const { account, assets_units, shares_units } = task.data
      const given =
        assets_units === null ? { sharesUnits: BigInt(shares_units) } : { assetsUnits: BigInt(assets_units) }
      const minBlock = await minBlockOf(deps, task.userId)
      return { ...withdrawalBatch(deps, account, given), minBlock }
    },
    async settle(task, proof) {
      const burntUnits = proof.flow.sharesUnits
      const heldUnits = BigInt(task.data.held_shares)
      return {
        ...settledFlow(deps, task, proof, -1n),
        // Only the burnt shares are spent; the rest of the held ones stays in the position.
        spent: burntUnits < heldUnits ? burntUnits : heldUnits,
        moves: await excessMoves(deps, task, proof.flow),
      }
    },
  })
}

/**
 * Returns moves for the shares that were burnt beyond the hold, which happens if the vault has lost value. At most the
 * booked shares are moved, because shares from outside the gateway were never booked.
 */
async function excessMoves(
  { db, vault, ledger }: VaultTaskDeps,
  task: WithdrawTask,
  flow: Flow,
): Promise<Move[]> {
  const { held_shares, assets_units, position_id } = task.data
  const excess = flow.sharesUnits - BigInt(held_shares)
  if (assets_units === null || excess <= 0n) return []
  const shares = shareAsset(vault)
  const debit = positionAccount(task.userId, shares, position_id)
  const { availUnits } = await ledger.balance(db, debit)
  const amountUnits = excess < availUnits ? excess : availUnits
  if (amountUnits === 0n) return []
  const credit = externalAccount(shares)
  return [{ move: 'transfer', key: `${task.id}:beyond`, debit, credit, amountUnits, reason: 'earn_withdraw' }]
}
