import { setTimeout as pause } from 'node:timers/promises'
import type { BatchTrial } from '#engines/evm-batch/batch.ts'
import type { BatchPlan } from '#engines/evm-batch/batch-plan.ts'
import { conflict, Fault } from '#kernel/contract/fault.ts'
import { taskOf } from '#kernel/contract/operation.ts'
import { uuidv7 } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import { oneEffect } from '#kernel/task/effect-steps.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import { type AccountRef, externalAccount, type TaskView } from '#kernel/task/task.ts'
import type { EarnInput } from './contract.ts'
import { cashStateOf, type EarnAccount, minBlockFor, vaultRefOf } from './earn-account-store.ts'
import { cashAsset, positionAccount, shareAsset, usdcToken, walletAccount } from './ledger-accounts.ts'
import { openPositionsMax } from './limits.ts'
import { adoptedPosition } from './store.ts'
import {
  admissionMs,
  minBlockOf,
  parseAmount,
  positionOf,
  settledFlow,
  type VaultProof,
  type VaultTaskData,
  type VaultTaskDeps,
  vaultDriver,
} from './vault-task.ts'

/** A deposit holds cash of the wallet until the vault's events show the shares that it bought. */

const settleMsMax = 3_000
const settlePollMs = 100

export const createDeposit = (deps: VaultTaskDeps) =>
  taskOf({ admit: admitDeposit(deps), steps: depositSteps(deps), looksUp: true })

const actionOf = ({ vault, usdc }: VaultTaskDeps, amountUnits: bigint): Omit<PlannedAction, 'userId'> => ({
  operation: 'earn_deposit',
  chainId: vault.chainId,
  tokens: [usdc],
  recipients: [vault.address],
  usdMicros: amountUnits,
  exit: false,
})

const batchOf = (deps: VaultTaskDeps, account: string, amountUnits: bigint): BatchPlan => {
  const { vault, usdc } = deps
  return {
    ...actionOf(deps, amountUnits),
    account,
    calls: vault.depositCalls(account, amountUnits),
    spends: [{ token: usdc, amountUnits, spender: vault.address }],
  }
}

const admitDeposit = (deps: VaultTaskDeps) =>
  createAdmission({
    policy: deps.policy,
    async check({ amount_usdc: amountText, position_id }: EarnInput<'deposit'>, { userId }) {
      const { vault, usdc, limits, clock, random } = deps
      const positionId = position_id
        ? (await positionOf(deps, userId, position_id)).id
        : uuidv7(clock.now(), random)
      const amountUnits = parseAmount(amountText, limits.minDepositUsdc)
      const wallet = walletAccount(userId, cashAsset(vault, usdc))
      return {
        action: {
          userId,
          ...actionOf(deps, amountUnits),
          terms: actionTerms(`Deposit ${amountText} USDC into the vault`, {
            token: 'USDC',
            amount: amountText,
            recipient: vault.address,
            cost: noFurtherCost,
          }),
        },
        amountUnits,
        amountText,
        wallet,
        positionId,
        position: positionAccount(userId, shareAsset(vault), positionId),
      }
    },
    fund: (request, { executionId }) => fundDeposit(deps, { ...request, executionId }),
    start({ amountUnits, amountText, wallet, positionId }, { account, apy, seen, gas, signOnAccept }) {
      const { vault, usdc } = deps
      const data: VaultTaskData = {
        position_id: positionId,
        account,
        chain_id: vault.chainId,
        vault: vault.address,
        assets_units: String(amountUnits),
        amount_usdc: amountText,
        apy_at_action: apy,
      }
      const spend = { account: wallet, amountUnits, token: usdcToken(usdc), seen, gas }
      return { first: 'sign', deadlineMs: admissionMs, data, spend, signOnAccept }
    },
  })

type DepositRequest = { wallet: AccountRef; position: AccountRef; amountUnits: bigint }
type DepositAttempt = DepositRequest & { executionId: string | undefined }

async function fundDeposit(deps: VaultTaskDeps, request: DepositAttempt) {
  const { wallet, amountUnits, executionId } = request
  const { vault, batches, rates } = deps
  const userId = wallet.owner
  const account = await deps.evmAddressOf(userId)
  await batches.ready(vault.chainId)
  const readCash = () => awaitFreeCash(deps, { ...request, account })
  const tryBatch = () => batches.trial({ userId, executionId }, batchOf(deps, account, amountUnits))
  const [{ block, ...cash }, firstTrial, { apy }] = await Promise.all([readCash(), tryBatch(), rates.yield()])
  const { simulation, signOnAccept } = await trialOfBlock(block, firstTrial, tryBatch)
  if (!simulation.ok)
    throw conflict(`The vault would reject the deposit: ${simulation.reason}`, simulation.reason)
  const gas = await batches.gasCharge({ chainId: vault.chainId, gas: simulation.gas, fullExit: false })
  return { account, apy, gas, seen: { ...cash, reread: readCash }, signOnAccept }
}

const nodeIsBehind = () =>
  new Fault(
    'unavailable',
    'The node of the chain does not show the latest balance of your account yet; retry in a second',
    { extras: { retry_after: 1 } },
  )

/** Repeats a failed simulation while its node is behind `block`, because such a node may not know the cash yet. */
async function trialOfBlock(
  block: bigint,
  first: BatchTrial,
  tryBatch: () => Promise<BatchTrial>,
): Promise<BatchTrial> {
  const until = performance.now() + settleMsMax
  const isOld = ({ simulation }: BatchTrial) => simulation.block !== undefined && simulation.block < block
  let trial = first
  while (!trial.simulation.ok && isOld(trial)) {
    if (performance.now() > until) throw nodeIsBehind()
    await pause(settlePollMs)
    trial = await tryBatch()
  }
  return trial
}

function assertNotFrozen(account: EarnAccount | undefined): void {
  if (account?.state !== 'frozen') return
  const since = account.frozen_since?.toISOString() ?? null
  throw new Fault('trading_paused', `Deposits into the vault are paused: ${account.reason}`, {
    extras: { scope: 'earn', since, reason: account.reason },
  })
}

function assertPositionLimit(openPositions: number): void {
  if (openPositions < openPositionsMax) return
  throw conflict(
    `A user has at most ${openPositionsMax} positions with shares: give the \`position_id\` of one of them, or withdraw one`,
    `${openPositions} positions have shares`,
  )
}

type CashRequest = DepositRequest & { account: string }

/**
 * An executed deposit counts twice until it is settled, as held and as spent. If only such holds leave too little
 * free cash, this function waits a little for them to settle.
 */
async function awaitFreeCash(
  { db, vault, usdc, clock }: VaultTaskDeps,
  { wallet, account, position, amountUnits }: CashRequest,
): Promise<{ totalUnits: bigint; version: bigint; block: bigint }> {
  const until = performance.now() + settleMsMax
  while (true) {
    // A settlement between these two reads is noticed: either the version that was read is outdated by it, or the block
    // is too old.
    const [{ heldUnits, version, earnAccount, openPositions, isOpen }, { cashUnits, block }] =
      await Promise.all([cashStateOf(db, wallet, position, vaultRefOf(vault)), vault.account(account)])
    assertNotFrozen(earnAccount)
    if (!isOpen) assertPositionLimit(openPositions)
    if (block < minBlockFor(earnAccount, clock.now())) {
      if (performance.now() > until) throw nodeIsBehind()
      await pause(settlePollMs)
      continue
    }
    const free = cashUnits > heldUnits ? cashUnits - heldUnits : 0n
    if (free >= amountUnits) return { totalUnits: cashUnits, version, block }
    const isHopeless = cashUnits < amountUnits || heldUnits === 0n
    if (isHopeless || performance.now() > until)
      throw insufficientBalance(
        { ...usdcToken(usdc), chainId: vault.chainId },
        {
          what: 'The deposit',
          requiredUnits: amountUnits,
          availableUnits: free,
        },
      )
    await pause(settlePollMs)
  }
}

const depositSteps = (deps: VaultTaskDeps) =>
  oneEffect({
    driver: vaultDriver<VaultTaskData>(deps, deps.vault.deposited),
    plan: async (task) => ({
      ...batchOf(deps, task.data.account, BigInt(task.data.assets_units ?? '0')),
      minBlock: await minBlockOf(deps, task.userId),
    }),
    settle: (task, proof) => settleDeposit(deps, task, proof),
  })

async function settleDeposit(deps: VaultTaskDeps, task: TaskView<VaultTaskData>, proof: VaultProof) {
  const asset = shareAsset(deps.vault)
  const { userId, executionId } = task
  // A task without an effect of its own settles an earlier execution that was found on the chain. This execution may
  // have a position already.
  const adopted =
    task.effects.length === 0 ? await adoptedPosition(deps.db, { userId, executionId, asset }) : undefined
  const position_id = adopted?.id ?? task.data.position_id
  const settled = settledFlow(deps, { ...task, data: { ...task.data, position_id } }, proof, 1n)
  const ended = { ...settled, data: { position_id }, spent: proof.flow.assetsUnits }
  // A sync has booked the shares of the adopted position already.
  if (adopted?.has_shares) return { ...ended, writes: async () => {}, moves: [] }
  const bought = {
    move: 'transfer' as const,
    key: `${task.id}:shares`,
    debit: externalAccount(asset),
    credit: positionAccount(userId, asset, position_id),
    amountUnits: proof.flow.sharesUnits,
    reason: 'earn_deposit',
  }
  return { ...ended, moves: [bought] }
}
