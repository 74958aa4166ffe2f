import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger } from '#durable/ledger/ledger.ts'
import type { BatchTrial, EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchPlan } from '#engines/evm-batch/batch-plan.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Token } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { Simulation } from '#upstreams/evm/evm.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { positionAccount, shareAsset, usdcToken } from './ledger-accounts.ts'
import type { ReadSettled } from './settled-reading.ts'
import { externalOf, sharesToHold } from './share-division.ts'

/** The plan of a withdrawal: an amount of assets or, if `assetsUnits` is null, shares to redeem. */
export type WithdrawalPlan = {
  assetsUnits: bigint | null
  sharesUnits: bigint
  holdUnits: bigint
  gas: bigint
} & Pick<BatchTrial, 'signOnAccept'>
export type WithdrawalRequest = {
  userId: string
  executionId: string | undefined
  positionId: string
  account: string
  assetsUnits: bigint | null
}

type WithdrawalPlanDeps = {
  db: Queryable
  vault: Vault
  usdc: string
  shareToken: Token
  ledger: Pick<Ledger, 'balance'>
  batches: Pick<EvmBatches, 'trial'>
  readSettled: ReadSettled
}

const settleMsMax = 3_000
const settlePollMs = 100

const insufficientAssets = (usdc: string, requiredUnits: bigint, availableUnits: bigint): Fault =>
  insufficientBalance(usdcToken(usdc), { what: 'The withdrawal', requiredUnits, availableUnits })

export const withdrawalAction = (
  { vault, usdc }: Pick<WithdrawalPlanDeps, 'vault' | 'usdc'>,
  account: string,
): Omit<PlannedAction, 'userId'> => ({
  operation: 'earn_withdraw',
  chainId: vault.chainId,
  tokens: [usdc],
  recipients: [account],
  usdMicros: 0n,
  exit: true,
})

export const withdrawalBatch = (
  deps: Pick<WithdrawalPlanDeps, 'vault' | 'usdc'>,
  account: string,
  given: { assetsUnits: bigint } | { sharesUnits: bigint },
): BatchPlan => ({
  ...withdrawalAction(deps, account),
  account,
  calls:
    'sharesUnits' in given
      ? deps.vault.redeemCalls(account, given.sharesUnits)
      : deps.vault.withdrawCalls(account, given.assetsUnits),
  spends: [],
  fullExit: 'sharesUnits' in given,
})

export async function planWithdrawal(
  deps: WithdrawalPlanDeps,
  request: WithdrawalRequest,
): Promise<WithdrawalPlan> {
  const { db, vault, ledger } = deps
  const until = performance.now() + settleMsMax
  while (true) {
    const position = positionAccount(request.userId, shareAsset(vault), request.positionId)
    const { availUnits: available, heldUnits } = await ledger.balance(db, position)
    if (available === 0n && heldUnits === 0n)
      throw new Fault(
        'no_position',
        'The position has no shares to withdraw: `earn_positions` shows which do',
      )
    const { assetsUnits } = request
    if (available === 0n)
      throw insufficientBalance(assetsUnits === null ? deps.shareToken : usdcToken(deps.usdc), {
        what: 'The withdrawal',
        requiredUnits: assetsUnits ?? heldUnits,
        availableUnits: 0n,
        note: 'all shares of this position are held for other withdrawals',
        reason: 'set_aside',
      })
    const plan =
      assetsUnits === null
        ? await planFullExit(deps, request, available)
        : await planPartialExit(deps, { ...request, assetsUnits }, available)
    if (plan) return plan
    if (performance.now() > until)
      throw new Fault('unavailable', 'Earlier deposits or withdrawals of this account are still settling', {
        extras: { retry_after: 1 },
      })
    await pause(settlePollMs)
  }
}

/** Returns the position's shares that the chain still shows; undefined while ledger and chain are not comparable. */
async function redeemableShares(
  { readSettled }: WithdrawalPlanDeps,
  { userId, positionId, account }: WithdrawalRequest,
) {
  const reading = await readSettled(userId, account)
  if (!reading) return undefined
  const shares = reading.positionShares.map(({ sharesUnits }) => sharesUnits)
  const index = reading.positionShares.findIndex((each) => each.positionId === positionId)
  const external = externalOf(shares, reading.onChainUnits)
  return index < 0 ? undefined : shares[index]! + external[index]!
}

/** Plans to redeem the position's booked shares, adjusted by known changes from outside the gateway. */
async function planFullExit(
  deps: WithdrawalPlanDeps,
  request: WithdrawalRequest,
  available: bigint,
): Promise<WithdrawalPlan | undefined> {
  const { account } = request
  const sharesUnits = (await redeemableShares(deps, request)) ?? available
  if (sharesUnits === 0n) throw externalLoss(deps, available)
  const batch = withdrawalBatch(deps, account, { sharesUnits })
  const { simulation, signOnAccept } = await deps.batches.trial(request, batch)
  if (!simulation.ok) return explainFailure(deps, request, { sharesUnits, simulation })
  const holdUnits = sharesUnits < available ? sharesUnits : available
  return { assetsUnits: null, sharesUnits, holdUnits, gas: simulation.gas, signOnAccept }
}

/** Plans to withdraw from the position's booked shares only, not from surplus shares of the account. */
async function planPartialExit(
  deps: WithdrawalPlanDeps,
  request: WithdrawalRequest & { assetsUnits: bigint },
  available: bigint,
): Promise<WithdrawalPlan | undefined> {
  const { vault, usdc, batches } = deps
  const { account, assetsUnits } = request
  const worthUnits = await vault.assetsOf(available)
  if (worthUnits < assetsUnits) throw insufficientAssets(usdc, assetsUnits, worthUnits)
  const batch = withdrawalBatch(deps, account, { assetsUnits })
  const { simulation, signOnAccept } = await batches.trial(request, batch)
  if (!simulation.ok) {
    const redeemable = await redeemableShares(deps, request)
    const left = redeemable === undefined ? worthUnits : await vault.assetsOf(redeemable)
    if (left < assetsUnits) throw insufficientAssets(usdc, assetsUnits, left)
    return explainFailure(deps, request, { sharesUnits: available, simulation })
  }
  const needed = BigInt(simulation.returns.at(-1) ?? '0x0')
  if (needed > available) throw insufficientAssets(usdc, assetsUnits, worthUnits)
  const holdUnits = sharesToHold(needed, available)
  return { assetsUnits, sharesUnits: needed, holdUnits, gas: simulation.gas, signOnAccept }
}

const externalLoss = ({ shareToken }: WithdrawalPlanDeps, available: bigint): Fault =>
  insufficientBalance(shareToken, {
    what: 'The withdrawal',
    requiredUnits: available,
    availableUnits: 0n,
    note: 'the shares of this position were moved out of the account outside this gateway. `earn_sync` takes them off the position',
    reason: 'external_loss',
  })

type FailedSimulation = { sharesUnits: bigint; simulation: Extract<Simulation, { ok: false }> }

/** Throws if the vault lacks liquidity; undefined while the chain lacks the shares, so that the plan is retried. */
async function explainFailure(
  { vault }: WithdrawalPlanDeps,
  { account }: WithdrawalRequest,
  { sharesUnits, simulation }: FailedSimulation,
) {
  const seen = await vault.account(account, simulation.block)
  if (seen.sharesUnits < sharesUnits) return undefined
  throw new Fault('insufficient_liquidity', `The vault cannot pay out now: ${simulation.reason}`, {
    extras: { reason: simulation.reason },
  })
}
